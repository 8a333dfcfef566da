"""The table of moves, row by row: events in, moves out.

`tests/data/core/moves.jsonl`, a walk a line: its events as `_events` has them, and between them what is to come next,
`["moves", MOVES, STANDING]` or, while some are under way, `["under", MOVES, MOVES]`. What `mode`, `traits_then`,
`faults` and the last `result` are is looked at in the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cases import each
from scenes import Row, config_of
from surefoot import Catalogue, ModelMessage, NativeCall, ToolResult, ToolSpec, Usage
from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import announce, durability, next_moves, standing
from surefoot.core.state.state import EMPTY, State
from surefoot.types import events as ev
from surefoot.types.moves import Act, Move, Probe, Record, Think
from surefoot.types.outcomes import Allow, Ask, Cancelled, Completed, CompletedPartial, Decision, Deny, Ending
from surefoot.types.reply import Fault, FaultyCall, Parsed, ParsedCall

ANY = {"type": "object"}
TOOLS = Catalogue((
    ToolSpec("look", "Look something up.", ANY, effect="read"), ToolSpec("search", "Search.", ANY, effect="read"),
    ToolSpec("send", "Send a letter.", ANY), ToolSpec("save", "Save a file.", ANY, idempotent=True),
    ToolSpec("pay", "Pay.", ANY, has_probe=True),
    ToolSpec("status", "Status of a job.", ANY, effect="read", polling=True),
    ToolSpec("finish", "Give the answer.", ANY, effect="read", finish=True),
))  # fmt: skip
PROMPTS: dict[str, str] = dict.fromkeys(("native", "schema", "text"), "{tools}\n{input}")
DATA = Path(__file__).parents[1] / "data" / "core" / "moves.jsonl"
ROWS: list[Row] = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


def begun(config: Row, traits: Mapping[str, str]) -> State:
    speakers = {"solo": ev.Speaker("test:m", traits=traits)}
    return fold((ev.RunStarted("run", ev.Task("do it"), speakers, TOOLS, PROMPTS, config=config_of(config)),))


def replied(step: int, *calls: Sequence[Any], tokens: int = 10, at: float = 0.0) -> ev.ModelReplied:  # Any: JSON
    """A reply of calls, [name, arguments] each; one behind which more stands is faulty."""
    native = tuple(NativeCall(f"id{step}_{n}", one[0], one[1]) for n, one in enumerate(calls))
    good = tuple(ParsedCall(n, one[0], one[1]) for n, one in enumerate(calls) if len(one) == 2)
    bad = tuple(FaultyCall(n, Fault("invalid_arguments", "bad"), one[0]) for n, one in enumerate(calls) if len(one) > 2)
    parsed = Parsed(good, error=bad[0].error if bad else None, errors=bad)
    return ev.ModelReplied(step, ModelMessage("assistant", calls=native, usage=Usage(tokens, 0)), parsed, elapsed_s=at)


def decision_of(told: str) -> Decision:
    kind, _, reason = told.partition(" ")
    return {"allow": Allow(), "ask": Ask(reason), "deny": Deny(reason)}[kind]


def _events(told: Sequence[Any]) -> tuple[ev.Event, ...]:  # Any: JSON
    """What an event of a row stands for."""
    has_more = told[0] in ("reply", "ended", "failed") and isinstance(told[-1], dict)
    more: dict[str, Any] = {**told[-1]} if has_more else {}
    kind, *given = told[:-1] if more else told
    elapsed = {"elapsed_s": more.pop("at")} if "at" in more and kind != "reply" else {}
    match kind, *given:
        case "reply", step, *calls:
            return (replied(step, *calls, **more),)
        case "leaked", step:
            return (
                ev.ModelReplied(step, ModelMessage("assistant", "…"), Parsed((ParsedCall(0, "look", {"s": step}),))),
            )
        case "said", step, text, finish:
            message = ModelMessage("assistant", text, finish_reason=finish, usage=Usage(10, 0))
            return (ev.ModelReplied(step, message, Parsed(content=text or None)),)
        case "word", step, text, *calls:
            parsed = Parsed((ParsedCall(0, calls[0], {}),)) if calls else Parsed(content=text or None)
            return (ev.ModelReplied(step, ModelMessage("assistant", text), parsed, want="answer"),)
        case "judged", call_id, verdict, rule, by:
            return (ev.CallJudged(call_id, decision_of(verdict), rule, by),)
        case "started", call_id, attempt:
            return (ev.CallStarted(call_id, attempt),)
        case "ended", call_id, text, result:
            return (ev.CallEnded(call_id, ToolResult(text, result), **elapsed),)
        case "ran", call_id, text:
            ended = ev.CallEnded(call_id, ToolResult(text))
            return (ev.CallJudged(call_id, Allow()), ev.CallStarted(call_id), ended)
        case "settled", call_id, outcome, by:
            return (ev.DoubtSettled(call_id, outcome, by),)
        case "reused", call_id, of:
            return (ev.CallReused(call_id, of),)
        case "resumed", config, *by:
            return (ev.RunResumed("".join(by) or "Ada", config=config_of(config) if config else None),)
        case "failed", failure:
            return (ev.ModelFailed(failure, "m", **more, **elapsed),)
        case "trait", name, value:
            return (ev.ModelTraitLearnt("test:m", name, value, "400: tools are not supported"),)
        case "over", ending, *words:
            kinds = {"completed": Completed, "completed_partial": CompletedPartial, "cancelled": Cancelled}
            return (ev.RunEnded(kinds[ending](*words)),)
        case _:
            raise ValueError(told)


def _ending(ending: Ending) -> str:
    """An ending in words; of a fault in the form, its kind alone."""
    words = [str(getattr(ending, field.name)) for field in fields(ending) if field.name != "kind"]
    return " ".join((ending.kind, *(words[:1] if "parse_failure" in words else words))).strip()


def told(move: Move) -> str:
    """A move as a row has it."""
    match move:
        case Think(step, want=want):
            return f"think {step}" + (f" {want}" if want != "any" else "")
        case Act(call_id):
            return f"act {call_id}"
        case Probe(call_id):
            return f"probe {call_id}"
        case Record((ev.CallJudged(call_id, Allow(), ""),)):
            return f"allow {call_id}"
        case Record((ev.CallJudged(call_id, Deny(reason), rule),)):
            return f"deny {call_id} {rule}: {reason}"
        case Record((ev.CallReused(call_id, of),)):
            return f"reused {call_id} {of}"
        case Record((ev.RunEnded(ending),)):
            return f"end {_ending(ending)}"
        case Record((ev.ModelTraitLearnt(_, trait, value),)):
            return f"learn {trait} {value}"
        case _:
            return repr(move)


@each("row", ROWS)
def test_events_in_moves_out(row: Row) -> None:
    state = begun(row.get("config", {}), row.get("traits", {}))
    for told_ in row["walk"]:
        match told_:
            case ["moves", moves, *stands]:
                assert [*map(told, next_moves(state))] == moves
                assert standing(state) in (stands or [standing(state)])
            case ["under", under, moves]:
                known = {told(one): one for one in (*next_moves(state), *(Act(f"1.{at}") for at in range(3)))}
                found = next_moves(state, frozenset(known[name] for name in under))
                assert [*map(told, found)] == moves
            case ["announced", name, events]:
                (move,) = (one for one in next_moves(state) if told(one) == name)
                found = [e for e in announce(move, state) if isinstance(e, ev.CallStarted)]
                assert [f"{e.type} {e.call_id} {e.attempt}" for e in found] == events
            case ["announce"]:
                (move,) = next_moves(state)
                state = fold(announce(move, state), state)
            case ["dropped", number]:
                assert state.speakers["solo"].fit.dropped == number
            case _:
                state = fold(_events(told_), state)
    solo = state.speakers["solo"]
    assert solo.mode == row.get("mode", solo.mode)
    assert solo.faults_running == row.get("faults", solo.faults_running)
    assert solo.traits == row.get("traits_then", solo.traits)
    if "result" in row:
        assert state.calls[0].result == replace(ToolResult(""), **row["result"])


def test_an_empty_journal_has_no_moves() -> None:
    assert next_moves(EMPTY) == ()


def test_only_calls_wait_for_the_disk_and_only_dangerous_ones_for_the_platter() -> None:
    state = fold((replied(1, ("look", {}), ("send", {}), ("save", {})),), begun({}, {}))
    moves = (Think(1), Act("1.0"), Act("1.1"), Act("1.2"), Record((ev.RunEnded(Completed("x")),)))
    assert [durability(move, state) for move in moves] == ["soon", "written", "synced", "written", "written"]
