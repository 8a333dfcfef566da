"""Budgets, modes, templates, step schemas and replays: the small pure questions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from cases import cases
from surefoot import Budget, Catalogue, ConfigError, LoopConfig, Task, ToolResult, ToolSpec
from surefoot.core.guard.judge import POLICIES, judge
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.core.state.roles import CHOICES, mode_for, seconds_left, spent_limit
from surefoot.core.state.state import EMPTY, Call, State
from surefoot.core.view.shape import name_schema, step_schema
from surefoot.core.view.turns import check_template, split_template
from surefoot.runtime.cast import chosen_templates
from surefoot.types import events as e
from surefoot.types.messages import CallMode, ModelMessage, NativeCall, Usage
from surefoot.types.outcomes import Allow, Ask, Completed, Decision, Deny
from surefoot.types.reply import Parsed, ParsedCall

TOOLS = Catalogue(
    (ToolSpec("look", "Look.", {"type": "object", "properties": {"q": {"type": "string"}}}, effect="read"),)
)


def state_with(budget: Budget, *, requests: int = 0, tokens: int = 0, elapsed_s: float = 0.0) -> State:
    config = LoopConfig(budget=budget)
    return replace(EMPTY, config=config, requests=requests, usage=Usage(tokens, 0, cost_usd=1.0), elapsed_s=elapsed_s)


@cases("core/small_rooms")
def test_a_limit_is_reached_a_little_earlier_with_the_reserve(
    budget: Mapping[str, Any], used: dict[str, int], reserved: str | None, whole: str | None
) -> None:
    state = state_with(Budget(**budget), **used)  # type: ignore[arg-type]  # parametrised
    assert spent_limit(state, reserve=True) == reserved
    assert spent_limit(state) == whole


def test_the_time_left_keeps_the_reserve_for_the_last_word() -> None:
    state = state_with(Budget(max_seconds=10, reserve=0.2), elapsed_s=5)
    assert (seconds_left(state), seconds_left(state, last=True)) == (3.0, 5.0)
    assert seconds_left(state_with(Budget())) is None


@cases("core/small_rooms")
def test_a_mode_that_fails_gives_way_to_the_next(start: CallMode, traits: dict[str, str], mode: CallMode) -> None:
    assert mode_for(start, traits) == mode


def test_a_template_is_filled_in_one_pass() -> None:
    assert split_template("{x} {tools}\n\nQ: {input} {y}", tools="T {input}", task="I {tools}") == (
        "{x} T {input}",
        "Q: I {tools} {y}",
    )
    assert split_template("all in {input} one {tools} line", tools="T", task="I") == ("", "all in I one T line")


@pytest.mark.parametrize("template", ["{input}", "{tools}", "{tools}\n{input}\n{input}", ""])
def test_a_template_without_both_places_once_is_refused(template: str) -> None:
    with pytest.raises(ConfigError, match="must occur exactly once"):
        check_template(template, "mine.md")


@pytest.mark.parametrize("reasoner", CHOICES)
def test_our_own_templates_hold_both_places_and_no_other(reasoner: str) -> None:
    for name, text in chosen_templates(reasoner, "states", frozenset(), {}).items():
        check_template(text, name)
        assert "{thinking}" not in text


def test_the_step_schema_has_a_branch_for_each_tool_and_the_answer() -> None:
    schema = step_schema(TOOLS)
    assert step_schema(TOOLS) is schema
    branches = cast("list[dict[str, dict[str, dict[str, str]]]]", schema["anyOf"])  # the shape that is tested
    assert [branch["properties"]["action"]["const"] for branch in branches] == ["look", "Final Answer"]
    assert list(branches[0]["properties"]) == ["thought", "action", "action_input"]
    assert len(cast("list[object]", step_schema(TOOLS, answer=False)["anyOf"])) == 1
    assert name_schema(schema)["required"] == ["thought", "action"]


def ask(_state: State, _call: Call) -> Decision:
    return Ask("a")


def deny(_state: State, _call: Call) -> Decision:
    return Deny("d")


def test_the_strictest_policy_wins() -> None:
    state = fold((STARTED, REPLIED))
    call = state.calls[0]
    assert judge(state, call)[:2] == (Allow(), "")
    for special in (state, replace(state, redeclared={"look": "read"}), replace(state, is_foreign=True)):
        assert judge(special, call) == judge(special, call, POLICIES)
    assert judge(state, call, (ask,))[0] == Ask("a")
    assert judge(state, call, (deny, ask))[0] == Deny("d")
    hidden = replace(state, offered=Catalogue())
    decision, rule, _ = judge(hidden, call)
    assert isinstance(decision, Deny)
    assert rule == "profile"


STARTED = e.RunStarted(
    "run", Task("go"), {"solo": e.Speaker("m")}, TOOLS, chosen_templates("react", "auto", frozenset(), {})
)
REPLIED = e.ModelReplied(
    1,
    ModelMessage("assistant", "", (NativeCall("a", "look", '{"q": "x"}'),)),
    Parsed((ParsedCall(0, "look", {"q": "x"}, "a"),), format="native"),
)
ANSWERED = e.ModelReplied(2, ModelMessage("assistant", "42"), Parsed(content="42"))
WHOLE: tuple[e.Event, ...] = (
    STARTED,
    REPLIED,
    e.CallJudged("1.0", Allow()),
    e.CallStarted("1.0"),
    e.CallEnded("1.0", ToolResult("x")),
    ANSWERED,
    e.RunEnded(Completed("42")),
)


def as_parsed_today(events: tuple[e.Event, ...]) -> tuple[e.Event, ...]:
    """The events with each reply as the parser reads it now, so that only what the test changes differs."""
    events_now: list[e.Event] = []
    for event in events:
        result = replay((*events_now, event))
        events_now.append(result.got if isinstance(result.got, e.ModelReplied) else event)
    return tuple(events_now)


@pytest.mark.parametrize(
    ("at", "other"),
    [
        (2, e.CallJudged("1.0", Deny("no"))),
        (3, e.CallStarted("1.1")),
        (3, e.CallEnded("1.0", ToolResult("never started"))),
        (5, e.RunEnded(Completed("42"))),
        (6, e.RunEnded(Completed("43"))),
    ],
)
def test_a_replay_says_where_a_journal_differs(at: int, other: e.Event) -> None:
    events = as_parsed_today(WHOLE)
    result = replay((*events[:at], other, *events[at + 1 :]))
    assert (result.differs_at, result.expected) == (at, other)
