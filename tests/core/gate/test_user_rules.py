"""What a person wrote down about calls: rules that tighten, rules that always allow one thing, Cedar."""

import pytest
from gate_world import PAY, SEND, Run

from cases import cases
from surefoot.core.gate.rules import check_cedar
from surefoot.core.text.json import pin_of
from surefoot.types.errors import ConfigError
from surefoot.types.guard import GuardConfig
from surefoot.types.rules import rule_from, standing_from

ACCOUNT = "DE89370400440532013000"
RENT = f"Pay 50 to {ACCOUNT} and mail the receipt to ann@example.org and to bob@other.example."


def test_mail_that_stays_in_house_runs_and_other_mail_does_not() -> None:
    when = {"effect": "communicate", "role": "destination", "not_matches": "*@example.org"}
    config = GuardConfig(rules=(rule_from({"id": "r", "when": when, "then": "deny", "reason": "Not here."}),))
    mail = {"to": ["ann@example.org", "bob@other.example"], "subject": "receipt", "body": "the receipt"}
    decision, name, grounds = Run(RENT, config).judged(SEND, **mail)
    assert (decision.kind, name, grounds.reason_person) == ("deny", "user_rules", "Not here.")
    assert [e.value for e in grounds.evidence] == ["bob@other.example"]
    assert Run(RENT, config).verdict(SEND, **{**mail, "to": ["ann@example.org"]}) == "allow"


STANDING: dict[str, object] = {
    "id": "rent",
    "tool": "pay",
    "pin": pin_of(PAY),
    "by": "Ada",
    "expires_at": "2026-12-31",
    "covers": ["intent", "provenance", "touch"],
    "when": [{"arg": "recipient", "equals": ACCOUNT}, {"arg": "amount", "below": 1000}],
}


def test_what_a_person_always_allows_is_not_asked_again_and_their_name_is_on_record() -> None:
    words, call = "Pay the bill of last month.", {"recipient": ACCOUNT, "amount": 900}
    config = GuardConfig(two_faults="ask", standing=(standing_from(STANDING),))
    decision, name, grounds = Run(words, config).judged(PAY, **call)
    assert (decision.kind, name) == ("allow", "standing")
    assert "Ada" in grounds.reason_person
    assert "provenance" in grounds.also
    assert Run(words).verdict(PAY, **call) == "ask"


@cases("gate/user_rules")
def test_a_standing_rule_that_could_mean_more_than_it_says_is_refused(changed: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigError) as told:
        standing_from({**STANDING, **changed})
    assert told.value.field == field


@pytest.mark.parametrize("missing", ["id", "tool", "pin", "by", "expires_at", "covers"])
def test_a_standing_rule_is_whole(missing: str) -> None:
    with pytest.raises(ConfigError, match="it is missing"):
        standing_from({key: value for key, value in STANDING.items() if key != missing})


@cases("gate/user_rules")
def test_a_rule_that_cannot_be_meant_is_refused_by_its_field(table: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigError) as told:
        rule_from(table)
    assert told.value.field == field


def test_a_standing_rule_holds_to_the_end_of_its_last_day() -> None:
    assert standing_from(STANDING).holds_on("2026-12-31T10:00:00")


@cases("gate/user_rules")
def test_what_cannot_be_evaluated_is_refused(policies: str) -> None:
    run = Run(RENT, GuardConfig(cedar=policies, user="ada"))
    decision, rule, grounds = run.judged(PAY, recipient=ACCOUNT, amount=50)
    assert (decision.kind, rule) == ("deny", "cedar")
    assert "evaluat" in f"{decision} {grounds.reason_person}"


def test_text_that_is_no_cedar_is_told_before_a_run() -> None:
    check_cedar("permit(principal, action, resource);")
    with pytest.raises(ConfigError, match="not valid Cedar"):
        check_cedar("permit(everything);")
