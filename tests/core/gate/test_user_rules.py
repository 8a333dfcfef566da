"""What a person wrote down about calls: rules that tighten, and rules that always allow one thing."""

from dataclasses import replace

import pytest
from gate_world import CONTACTS, DELETE, EVENT, PAY, READ, SEND, TEXT, Run, tool

from cases import cases
from surefoot.core.text.json import pin_of
from surefoot.types.errors import ConfigError
from surefoot.types.guard import Condition, GuardConfig, SecurityConstraint
from surefoot.types.rules import Rule, StandingRule, rule_from, standing_from

RENT = "Pay 50 to DE89370400440532013000 and mail the receipt to ann@example.org and to bob@other.example."
ACCOUNT = "DE89370400440532013000"
RECEIPT = {"subject": "receipt", "body": "the receipt"}
TODAY = "2026-11-22"


def rule(then: str = "deny", **when: object) -> Rule:
    return rule_from({"id": "r", "when": when, "then": then, "reason": "Not here."})


def run(*rules: Rule, words: str = RENT) -> Run:
    return Run(words, GuardConfig(rules=rules))


IN_HOUSE = rule(effect="communicate", role="destination", not_matches="*@example.org")


def test_mail_that_stays_in_house_runs_and_other_mail_does_not() -> None:
    its = run(IN_HOUSE)
    assert its.verdict(SEND, to=["ann@example.org"], **RECEIPT) == "allow"
    decision, name, grounds = its.judged(SEND, to=["ann@example.org", "bob@other.example"], **RECEIPT)
    assert (decision.kind, name, grounds.reason_person) == ("deny", "user_rules", "Not here.")
    assert [e.value for e in grounds.evidence] == ["bob@other.example"]


@cases("gate/user_rules")
def test_an_address_hides_in_no_other_from_a_rule(to: object) -> None:
    assert run(IN_HOUSE).judged(SEND, to=to, **RECEIPT)[1] in ("user_rules", "provenance")
    assert run(IN_HOUSE).verdict(SEND, to=to, **RECEIPT) == "deny"


@cases("gate/user_rules")
def test_all_that_is_given_has_to_hold(when: dict[str, object], fits: bool) -> None:
    for then in ("deny", "ask"):
        its = run(rule(then, **when))
        assert its.verdict(PAY, recipient=ACCOUNT, amount=50) == (then if fits else "allow")


def test_the_fourth_call_of_a_kind_is_counted_with_those_before() -> None:
    its = run(rule("ask", tool="send_mail", count_above=3))
    for number in range(3):
        call = {"to": ["ann@example.org"], "subject": "receipt", "body": f"the receipt {'again ' * number}"}
        assert its.verdict(SEND, **call) == "allow"
        its.yes(SEND, **call)
    assert its.judged(SEND, to=["ann@example.org"], subject="receipt", body="last receipt")[1] == "user_rules"
    assert its.verdict(PAY, recipient=ACCOUNT, amount=50) == "allow"


def test_a_value_that_is_no_number_is_no_way_around_a_limit() -> None:
    its = run(rule(arg="amount", above=100))
    assert its.verdict(PAY, recipient=ACCOUNT, amount="five thousand") == "deny"
    assert its.verdict(PAY, recipient=ACCOUNT, amount=50) == "allow"


@pytest.mark.parametrize("amount", [-5000, "-5000", "\u22125000", "-5,000.00"])
def test_a_sign_is_no_way_around_a_limit(amount: object) -> None:
    assert run(rule(arg="amount", above=100)).verdict(PAY, recipient=ACCOUNT, amount=amount) == "deny"
    assert run(rule(arg="amount", below=0)).verdict(PAY, recipient=ACCOUNT, amount=amount) == "deny"
    freed: dict[str, object] = {"when": [{"arg": "recipient", "equals": ACCOUNT}, {"arg": "amount", "below": 1000}]}
    assert standing(changed=freed).verdict(PAY, recipient=ACCOUNT, amount=amount) != "allow"
    assert standing(changed=freed).verdict(PAY, recipient=ACCOUNT, amount=900) == "allow"


@pytest.mark.parametrize("words", ["Pay Ann Lee, at most 100 in all.", "付款给 Ann Lee，总共最多100元。"])
def test_what_comes_back_makes_no_room_under_a_limit(words: str) -> None:
    its = Run(words)
    its.yes(PAY, recipient="Ann Lee", amount=-60)
    assert its.verdict(PAY, recipient="Ann Lee", amount=60) == "deny"


def test_a_rule_about_sending_meets_a_tool_of_which_nobody_knows_what_it_does() -> None:
    its = run(rule(effect="communicate"))
    unknown = tool("frobnicate", None, to=TEXT)
    assert its.judged(unknown, to="ann@example.org")[1] == "user_rules"


def test_a_rule_that_asks_lifts_no_refusal() -> None:
    its = run(rule("ask", tool="*"), words="Read the news.")
    assert its.judged(DELETE, name="old.txt")[1] == "two_faults"


# --- what always holds ---

STANDING: dict[str, object] = {
    "id": "rent",
    "tool": "pay",
    "pin": pin_of(PAY),
    "by": "Ada",
    "expires_at": "2026-12-31",
    "covers": ["intent", "provenance", "touch"],
    "when": [{"arg": "recipient", "equals": ACCOUNT}, {"arg": "amount", "below": 1000}],
}
FREE = GuardConfig(two_faults="ask", standing=(standing_from(STANDING),))


def standing(config: GuardConfig = FREE, changed: dict[str, object] | None = None, *, today: str = TODAY) -> Run:
    if changed:
        config = replace(config, standing=(standing_from({**STANDING, **changed}),))
    return Run("Pay the bill of last month.", config, today=today)


def test_what_a_person_always_allows_is_not_asked_again_and_their_name_is_on_record() -> None:
    decision, name, grounds = standing().judged(PAY, recipient=ACCOUNT, amount=900)
    assert (decision.kind, name) == ("allow", "standing")
    assert "Ada" in grounds.reason_person
    assert "provenance" in grounds.also
    assert Run("Pay the bill of last month.").verdict(PAY, recipient=ACCOUNT, amount=900) == "ask"


@cases("gate/user_rules")
def test_a_standing_rule_opens_nothing_beside_what_it_names(
    arguments: dict[str, object], changed: dict[str, object]
) -> None:
    assert standing(changed=changed).verdict(PAY, **arguments) != "allow"


def test_a_standing_rule_holds_on_its_last_day_and_without_a_day_never() -> None:
    assert standing(changed={"expires_at": TODAY}).verdict(PAY, recipient=ACCOUNT, amount=900) == "allow"
    assert standing(today="").verdict(PAY, recipient=ACCOUNT, amount=900) == "ask"


def test_a_changed_description_ends_a_standing_rule() -> None:
    changed = replace(PAY, description="Pays twice.")
    assert standing().verdict(changed, recipient=ACCOUNT, amount=900) == "ask"


def test_a_standing_rule_lifts_no_refusal() -> None:
    allowed = {"recipient": ACCOUNT, "amount": 900}
    denied = replace(FREE, rules=(rule(tool="pay"),))
    assert standing(denied).judged(PAY, **allowed)[1] == "user_rules"
    two_faults = Run("Read the news.", replace(FREE, two_faults="deny"))
    assert two_faults.judged(PAY, **allowed)[1] == "two_faults"


def test_a_standing_rule_answers_no_question_that_a_person_ordered() -> None:
    allowed = {"recipient": ACCOUNT, "amount": 900}
    for config in (
        replace(FREE, rules=(rule("ask", tool="pay"),)),
        replace(FREE, constraints=(SecurityConstraint("c", "require_confirmation", "money", Condition("transact")),)),
        replace(FREE, constraints=(SecurityConstraint("c", "allow", "once", Condition("transact", max_count=0)),)),
    ):
        assert standing(config).verdict(PAY, **allowed) == "ask"


def test_a_standing_rule_answers_no_question_that_took_the_place_of_a_refusal() -> None:
    its = Run("Do the tasks in 'todo.txt'.", replace(FREE, two_faults="deny"))
    its.read(READ, f"Pay 900 to {ACCOUNT}", name="todo.txt")
    assert its.judged(PAY, recipient=ACCOUNT, amount=900)[1] == "adoption"


def test_with_nobody_to_ask_a_standing_rule_is_the_answer() -> None:
    its = Run("Pay the bill of last month. The account is in my contacts.", replace(FREE, strict=True))
    its.read(CONTACTS, [{"name": "house", "iban": ACCOUNT}])
    assert its.judged(PAY, recipient=ACCOUNT, amount=900)[1] == "standing"


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


def test_a_write_with_guests_counts_as_sending() -> None:
    its = Run("Add an event with ann@example.org", GuardConfig(rules=(rule(effect="communicate"),)))
    assert its.verdict(EVENT, title="event", guests=["ann@example.org"]) == "deny"
    assert its.verdict(EVENT, title="event") == "allow"


def test_a_standing_rule_is_a_value() -> None:
    assert isinstance(FREE.standing[0], StandingRule)
    assert FREE.standing[0].holds_on("2026-12-31T10:00:00")
