"""Cedar policies in front of the tools: what they do not clearly permit does not run."""

import pytest
from gate_world import CONTACTS, PAY, SEND, Run

from cases import cases
from surefoot.core.gate.rules import check_cedar
from surefoot.types.errors import ConfigError
from surefoot.types.guard import GuardConfig

WORDS = "Pay 50 to DE89370400440532013000 and mail the receipt to ann@example.org."
CALL = {"recipient": "DE89370400440532013000", "amount": 50}
PERMIT = "permit(principal, action, resource);"


def run(cedar: str, *, user: str = "ada") -> Run:
    return Run(WORDS, GuardConfig(cedar=cedar, user=user))


@cases("gate/cedar")
def test_only_what_is_permitted_and_not_forbidden_runs(policies: str, verdict: str) -> None:
    decision, rule, _ = run(policies).judged(PAY, **CALL)
    assert (decision.kind, rule) == (verdict, "" if verdict == "allow" else "cedar")


@cases("gate/cedar")
def test_what_cannot_be_evaluated_is_refused(policies: str) -> None:
    decision, rule, grounds = run(policies).judged(PAY, **CALL)
    assert (decision.kind, rule) == ("deny", "cedar")
    assert "evaluat" in f"{decision} {grounds.reason_person}"


@cases("gate/cedar")
def test_a_value_that_cedar_would_read_as_another_is_refused(arguments: dict[str, object]) -> None:
    assert run(PERMIT).judged(PAY, **{**CALL, **arguments})[1] == "cedar"


def test_fractions_are_decimals_and_whole_ones_numbers() -> None:
    above = (
        f"{PERMIT} forbid(principal, action, resource) when"
        ' { context.arguments.amount.greaterThan(decimal("10.25")) };'
    )
    its = Run("Pay 10.25 or 10.5 to DE89370400440532013000", GuardConfig(cedar=above))
    assert its.verdict(PAY, recipient=CALL["recipient"], amount=10.25) == "allow"
    assert its.verdict(PAY, recipient=CALL["recipient"], amount=10.5) == "deny"
    assert run(f"{PERMIT} forbid(principal, action, resource) when {{ context.arguments.amount > 49 }};").verdict(
        PAY, recipient=CALL["recipient"], amount=50.0
    ) == "deny"  # fmt: skip


def test_the_calls_so_far_are_counted_by_effect() -> None:
    its = run(
        f"{PERMIT} forbid(principal, action, resource) when"
        " { context.counts has communicate && context.counts.communicate >= 2 };"
    )
    for number in range(2):
        call = {"to": "ann@example.org", "subject": "receipt", "body": "the receipt" + " again" * number}
        assert its.verdict(SEND, **call) == "allow"
        its.yes(SEND, **call)
    assert its.verdict(CONTACTS) == "deny"


def test_a_person_who_is_asked_by_a_policy_is_asked_for_it_alone() -> None:
    decision, rule, grounds = run(f"{PERMIT} @ask forbid(principal, action, resource);").judged(
        PAY, recipient="GB29NWBK60161331926819", amount=50
    )
    assert (decision.kind, rule, grounds.also) == ("ask", "provenance", ("cedar",))


def test_policies_permit_nothing_that_the_gate_refuses() -> None:
    its = Run("Read the news.", GuardConfig(cedar=PERMIT))
    assert its.judged(PAY, **CALL)[1] == "two_faults"


def test_text_that_is_no_cedar_is_told_before_a_run() -> None:
    check_cedar(PERMIT)
    with pytest.raises(ConfigError, match="not valid Cedar"):
        check_cedar("permit(everything);")
