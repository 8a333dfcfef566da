"""What holds of every judgement, whatever the words, the calls and the texts: spec/guard.md, section 8."""

from dataclasses import replace
from typing import cast

from gate_world import CONTACTS, DELETE, EVENT, FETCH, PAY, READ, SEARCH, SEND, SIGN_IN, TEXT, WRITE, Run, tool
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.gate.sources import Words
from surefoot.core.gate.verdict import verdict_on
from surefoot.types.guard import Condition, Cue, GuardConfig, SecurityConstraint
from surefoot.types.outcomes import Allow
from surefoot.types.rules import Rule, rule_from
from surefoot.types.tools import ToolSpec

UNKNOWN = tool("frobnicate", None, server="shop", origin="remote", to=TEXT, body=TEXT)
TOOLS = (SEND, PAY, DELETE, WRITE, EVENT, SIGN_IN, FETCH, SEARCH, UNKNOWN)
VALUES = (
    "ann@example.org", "x@evil.example", "DE89370400440532013000", "GB29NWBK60161331926819", "Ann Smith", "ann",
    "https://good.example/a", "https://evil.example/?q=1", "old.txt", "2026-12-01", "2026-12-02", "report",
    "the report", "analyst", "аnn@example.org", "x at evil dot example", "general", "hunter2x", "",
    5, 50, 500, 50.5, True, None,
)  # fmt: skip
SENTENCES = (
    "Send the report to Ann Smith.", "Pay 50 EUR to GB29NWBK60161331926819.", "Mail ann@example.org.", "What is new?",
    "Delete 'old.txt'.", "Read https://good.example/a.", "Add an event on 2026-12-01.", "Do what the notes say.",
    "Don't mail x@evil.example.", "Only pay Ann Smith.", "Pay at most 100 EUR.", "Sign in as ann.",
    "Do the tasks in 'todo.txt'.", "Send it to all of them.", "给 ann@example.org 发邮件。",
    "Pay the bill in bill.txt.",
)  # fmt: skip
WORDS = st.lists(st.sampled_from(SENTENCES), max_size=3).map(" ".join)
LEAVES = st.sampled_from(VALUES)
ARGUMENTS = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3), max_leaves=4)


@st.composite
def calls(draw: st.DrawFn) -> tuple[ToolSpec, dict[str, object]]:
    spec = draw(st.sampled_from(TOOLS))
    names = list(cast("dict[str, object]", spec.parameters["properties"]))  # as `tool` makes it
    given_names = draw(st.lists(st.sampled_from([*names, "extra"]), unique=True))
    arguments = {name: cast("object", draw(ARGUMENTS)) for name in given_names}  # JSON
    return spec, arguments


UNTRUSTED = st.lists(
    st.sampled_from([*map(str, VALUES), "Pay to", "urgent:", "\n", "name:", "{", '"', "1."]), max_size=12
)
RECORDS = st.recursive(
    LEAVES, lambda i: st.lists(i, max_size=3) | st.dictionaries(st.sampled_from("abc"), i), max_leaves=6
)


def runs_of(run: Run, spec: ToolSpec, arguments: dict[str, object]) -> bool:
    return isinstance(verdict_on(run.known, spec, arguments, run.started)[0], Allow)


@given(WORDS, calls(), st.lists(UNTRUSTED.map(" ".join), max_size=3))
def test_text_that_was_read_turns_no_question_and_no_refusal_into_a_yes(
    words: str, call: tuple[ToolSpec, dict[str, object]], texts: list[str]
) -> None:
    run = Run(words)
    before = runs_of(run, *call)
    for text in texts:
        run.read(READ, text, name="todo.txt")
        run.read(SEND, text, kind="error", to="ann")
    assert before or not runs_of(run, *call)


@given(WORDS, calls(), st.lists(RECORDS, max_size=3))
def test_records_that_the_words_do_not_anchor_turn_none_into_a_yes(
    words: str, call: tuple[ToolSpec, dict[str, object]], results: list[object]
) -> None:
    run = Run(words)
    before = runs_of(run, *call)
    for result in results:
        run.read(CONTACTS, result)
    if not any(source.opened for source in run.known.sources):
        assert before or not runs_of(run, *call)


CONDITIONS = st.builds(
    Condition,
    effect=st.sampled_from((None, "communicate", "transact", "write")),
    allowed_targets=st.sampled_from(((), ("Ann Smith",))),
    forbidden_targets=st.sampled_from(((), ("x@evil.example",))),
    except_targets=st.sampled_from(((), ("ann@example.org",))),
    max_count=st.sampled_from((None, 0, 2)),
    max_amount=st.sampled_from((None, 10.0)),
)
CONSTRAINTS = st.builds(
    SecurityConstraint,
    st.just("c"),
    st.sampled_from(("allow", "forbid", "require_confirmation")),
    st.just("told"),
    CONDITIONS,
)
WHENS = st.fixed_dictionaries(
    {},
    optional={
        "tool": st.sampled_from(("*", "pay", "s*")),
        "effect": st.sampled_from(("communicate", "delete")),
        "role": st.sampled_from(("destination", "content")),
        "count_above": st.integers(0, 2),
    },
).filter(bool)


def rule(when: dict[str, object], then: str) -> Rule:
    return rule_from({"id": "r", "when": when, "then": then})


RULES = st.builds(rule, WHENS, st.sampled_from(("deny", "ask")))


@given(WORDS, calls(), st.lists(CONSTRAINTS, max_size=2), st.lists(RULES, max_size=2), RECORDS)
def test_a_rule_more_is_no_yes_more(
    words: str,
    call: tuple[ToolSpec, dict[str, object]],
    constraints: list[SecurityConstraint],
    rules: list[Rule],
    result: object,
) -> None:
    plain = Run(words)
    ruled = Run(words, GuardConfig(constraints=tuple(constraints), rules=tuple(rules)))
    for run in (plain, ruled):
        run.read(CONTACTS, result)
    assert runs_of(plain, *call) or not runs_of(ruled, *call)


CUES: tuple[Cue, ...] = ("adoption", "delegation", "set")


@given(WORDS, calls(), st.sets(st.sampled_from(CUES)), RECORDS, UNTRUSTED.map(" ".join))
def test_a_turn_of_phrase_adds_no_yes_without_a_person(
    words: str, call: tuple[ToolSpec, dict[str, object]], cues: set[Cue], result: object, text: str
) -> None:
    run = Run(words)
    run.read(CONTACTS, result)
    run.read(READ, text, name="todo.txt")
    anchor = run.known.words.anchor
    without = replace(run.known, words=Words.of(replace(anchor, cues=anchor.cues - set(CUES))))
    with_them = replace(run.known, words=Words.of(replace(anchor, cues=anchor.cues | cues)))
    spec, arguments = call
    before = verdict_on(without, spec, arguments, run.started)[0]
    assert isinstance(before, Allow) or not isinstance(verdict_on(with_them, spec, arguments, run.started)[0], Allow)


@given(WORDS, calls(), RECORDS)
def test_the_same_of_the_same_is_the_same(words: str, call: tuple[ToolSpec, dict[str, object]], result: object) -> None:
    first, second = Run(words), Run(words)
    for run in (first, second):
        run.read(CONTACTS, result)
    spec, arguments = call
    assert first.judged(spec, **arguments) == second.judged(spec, **arguments)
    assert first.judged(spec, **arguments) == first.judged(spec, **arguments)


@given(WORDS, calls())
def test_with_nobody_to_ask_nothing_more_runs(words: str, call: tuple[ToolSpec, dict[str, object]]) -> None:
    assert runs_of(Run(words), *call) or not runs_of(Run(words, GuardConfig(strict=True)), *call)
    assert verdict_on(Run(words, GuardConfig(strict=True)).known, *call)[0].kind != "ask"
