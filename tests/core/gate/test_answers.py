"""What is asked, how often, and what an answer is for: spec/guard.md, section 9, rows 7, 8, 12 and 16."""

from collections.abc import Mapping

from gate_world import FETCH, NUMBER, PAY, READ, SEND, TEXT, Run, tool
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.gate.effects import guess, may_only_read
from surefoot.types.tools import ToolSpec


def guessed(name: str, arguments: Mapping[str, object]) -> ToolSpec:
    """A tool of our own that nobody has declared, with the parameters of a call."""
    return tool(name, None, **{key: NUMBER if isinstance(one, int) else TEXT for key, one in arguments.items()})


@cases("gate/answers")
def test_what_may_only_read_is_asked_about_and_never_refused(
    words: str, name: str, arguments: Mapping[str, object]
) -> None:
    assert guess(guessed(name, arguments)).effect not in ("read", None)
    assert Run(words).verdict(guessed(name, arguments), **arguments) == "ask"


@cases("gate/answers")
def test_what_has_the_shape_of_its_name_is_refused_as_before(
    words: str, name: str, arguments: Mapping[str, object]
) -> None:
    assert Run(words).verdict(guessed(name, arguments), **arguments) == "deny"


NAMES = st.sampled_from(("acquire_rate", "frobnicate", "book_info", "post_count", "订单状态", "share_price", "do_it"))
VALUES = st.sampled_from(("Ann Lee", "x", "A-77", "inbox", "EUR"))
WORDS = st.sampled_from(("What is new?", "Don't delete or pay Ann Lee.", "Pay Ann Lee.", "有什么新消息?", ""))


@given(WORDS, NAMES, st.dictionaries(st.sampled_from(("pair", "number", "name", "query", "text")), VALUES))
def test_no_refusal_rests_on_a_doubtful_guess(words: str, name: str, arguments: dict[str, object]) -> None:
    spec, run = guessed(name, arguments), Run(words)
    if may_only_read(spec, guess(spec)):
        assert run.verdict(spec, **arguments) != "deny"


TRANSFER = tool("transfer", "transact", to=TEXT, sum=TEXT, fee=NUMBER)
DONATE = tool("move_funds", None, to=TEXT, sum=TEXT, fee=NUMBER)


def rule_of(run: Run, spec: ToolSpec, arguments: Mapping[str, object]) -> tuple[str, bool]:
    """The verdict, and whether a repetition is among what is asked about."""
    decision, rule, grounds = run.judged(spec, **arguments)
    return decision.kind, "repetition" in (rule, *grounds.also)


@cases("gate/answers")
def test_the_same_payment_by_another_tool_is_asked_about(
    words: str, paid: Mapping[str, object], again: Mapping[str, object]
) -> None:
    run = Run(words)
    run.yes(PAY, **paid)
    for spec in (TRANSFER, DONATE):
        assert rule_of(run, spec, again) == ("ask", True)
    assert rule_of(run, SEND, {"to": ["Ann Lee"], "body": "paid"})[1] is False


@cases("gate/answers")
def test_another_payment_is_no_repetition(words: str, paid: Mapping[str, object], again: Mapping[str, object]) -> None:
    run = Run(words)
    run.yes(PAY, **paid)
    assert rule_of(run, TRANSFER, again) == ("allow", False)


@given(
    st.sampled_from(("Ann Lee", "Bo Yi")), st.integers(1, 99), st.sampled_from(("Ann Lee", "Bo Yi")), st.integers(1, 99)
)
def test_only_as_much_to_the_same_place_is_a_repetition(who: str, amount: int, other: str, again: int) -> None:
    run = Run("Pay what I owe to Ann Lee and Bo Yi.")
    run.yes(PAY, recipient=who, amount=amount)
    assert rule_of(run, TRANSFER, {"to": other, "sum": again})[1] is ((who, amount) == (other, again))


EVE = "eve@evil.example"
SHARE = tool("share_mail", "communicate", to=TEXT, body=TEXT)


def after_yes(words: str, read: str, first: str) -> Run:
    """A run in which a note was read, and a person has let one text go to somebody."""
    run = Run(words)
    run.read(READ, read, name="plan.txt")
    run.yes(SEND, to=[EVE], subject="", body=first)
    run.yes(PAY, recipient="Ann Lee", amount=5)  # an effect in between: nothing here is a repetition
    return run


@cases("gate/answers")
def test_a_yes_to_one_text_is_no_yes_to_another(words: str, read: str, first: str, other: str) -> None:
    run = after_yes(words, read, first)
    assert run.verdict(SEND, to=[EVE], subject="", body=other) == "ask"
    assert run.verdict(SHARE, to=EVE, body=first) != "allow", "another tool"
    run.yes(SEND, to=[EVE], subject="", body=other)
    run.yes(PAY, recipient="Ann Lee", amount=6)
    assert run.verdict(SEND, to=[EVE], subject="", body=other) == "allow", "asked once"


@cases("gate/answers")
def test_plain_words_follow_a_yes(words: str, read: str, first: str, other: str) -> None:
    assert after_yes(words, read, first).verdict(SEND, to=[EVE], subject="", body=other) == "allow"


def test_a_yes_to_a_read_makes_nobody_a_recipient() -> None:
    for words in ("Look up who is meant and send them the news.", "查一下是谁，把新闻发给他们"):
        run = Run(words)
        run.yes(FETCH, url="https://page.example/a", user=EVE)
        assert run.verdict(FETCH, url="https://page.example/a", user=EVE) == "allow"
        assert run.verdict(SEND, to=[EVE], subject="", body="the news") == "ask"


@given(st.sampled_from((SEND, PAY, SHARE, FETCH)), st.sampled_from((SEND, PAY, SHARE)))
def test_a_yes_is_for_calls_of_its_tool(asked: ToolSpec, then: ToolSpec) -> None:
    def to_eve(spec: ToolSpec) -> dict[str, object]:
        names: Mapping[str, object] = {"to": EVE, "recipient": EVE, "url": EVE, "amount": 5, "body": "the news"}
        properties = spec.parameters["properties"]
        assert isinstance(properties, dict)
        return {name: value for name, value in names.items() if name in properties}

    run = Run("Pay 5 and send the news to whoever is meant.")
    run.yes(asked, **to_eve(asked))
    run.yes(DONATE, to="Ann Lee", sum="7")
    assert (run.verdict(then, **to_eve(then)) == "allow") is (asked.name == then.name)
