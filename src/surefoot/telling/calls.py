"""Calls in rows: what is called with what, what the gate and persons said of it, and what it gave."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import assert_never

from surefoot.core.guard.judge import policy_call
from surefoot.core.state.state import State
from surefoot.core.state.turn import Call
from surefoot.core.text import json_text
from surefoot.core.text.urls import redacted
from surefoot.telling.guard import grounds_lines, question_lines
from surefoot.telling.row import Details, Pen, Row
from surefoot.telling.text import Said, count, program_text, visible, visible_members
from surefoot.types import events as e
from surefoot.types.outcomes import Allow, Ask, Deny
from surefoot.types.tools import ToolResult

OfCall = e.CallJudged | e.ValuesEndorsed | e.CallReused | e.CallStarted | e.CallEnded | e.CallPaused | e.DoubtSettled

_SETTLED = {
    "done": "took effect",
    "not_done": "took no effect",
    "abandoned": "is given up",
    "unknown": "cannot be determined",
}

_PREFETCHED = "0."
"""How the ids of calls begin that fetch what a task refers to, which may hold credentials."""


def call_rows(pen: Pen, state: State, event: OfCall, took_s: float) -> list[Row]:
    """The rows of what befell a call; `state` has it, and `took_s` is how long ago it was started."""
    call = state.call(event.call_id) or Call(event.call_id, "", "?", {})
    pen, what = replace(pen, call_id=call.id), _what(call)
    match event:
        case e.CallJudged():
            return _judged(pen, state, call, event)
        case e.ValuesEndorsed(_, values, by):
            taken = f" accepted {count(len(values), 'value')} of "
            return [pen.row("word", (by, "person"), taken, *what, " as the user's own", style="dim", indent=2)]
        case e.CallReused(_, known):
            reused = pen.row("call", "= ", *what, f"  known from call {known}", style="call", indent=2)
            return [reused, *([] if call.result is None else [_result(pen, state, call, call.result, None)])]
        case e.CallStarted(_, attempt):
            again, opens = f"  (attempt {attempt})" if attempt > 1 else "", _arguments(pen, call)
            return [pen.row("call", "→ ", *what, again, style="call", indent=2, opens=opens)]
        case e.CallEnded(_, result):
            return [_result(pen, state, call, result, took_s)]
        case e.CallPaused(_, inner, by=by):
            told = f"  waits for a person in run {inner.run_id}" if inner.waiting else "  can go on"
            after: tuple[Said, ...] = (", since ", (by, "person"), " has answered") if by else ()
            return [pen.row("question", "? ", (call.name, "model"), told, *after, style="warn", indent=2)]
        case e.DoubtSettled(_, outcome, by):
            told = f"  {_SETTLED[outcome]}, says "
            return [pen.row("word", "? ", *what, told, (by, "person"), style="warn", indent=2)]
        case _:
            assert_never(event)


def shown_call(call: Call) -> tuple[str, str]:
    """Its arguments as JSON, and what it gave, as clients see them; what fetches references has no credentials then."""
    given = call.result.content if call.result is not None else ""
    return _show(call, json_text(visible_members(call.arguments))), _show(call, visible(given))


def _what(call: Call) -> tuple[Said, Said]:
    return (call_text(call), "model"), f"  #{call.id}"


def call_text(call: Call) -> str:
    """A call as it might be written in a program."""
    return _show(call, program_text(call))


def _show(call: Call, text: str) -> str:
    """A text of a call; what a task refers to may hold credentials, so those calls show none."""
    return redacted(text) if call.id.startswith(_PREFETCHED) else text


def _arguments(pen: Pen, call: Call) -> Details:
    values = (
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str))
        for name, value in call.arguments.items()
    )
    return pen.details(call.name, *(_show(call, f"{name}: {text}") for name, text in values))


def _judged(pen: Pen, state: State, call: Call, event: e.CallJudged) -> list[Row]:
    """The verdict; below it what it rests on, and of a question what a person has to look at."""
    what, rule = _what(call), f" [{event.rule}]" if event.rule and event.rule != "person" else ""
    kind = "word" if event.by else "verdict"
    match event.decision:
        case Allow():
            told: tuple[Said, ...] = ("✓ ", *what, "  allowed by ", (event.by, "person"))
            rows = [pen.row(kind, *told, style="good", indent=2)] if event.by else []
        case Ask(reason):
            told = ("? ", *what, f"  waits for a person: {reason}{rule}")
            rows = [pen.row("question", *told, style="warn", indent=2, opens=_arguments(pen, call))]
            asked = policy_call(state, call)
            if question := question_lines(call, event, others=asked.values if asked else ()):
                more = (pen.row("question", (line, "model"), style="dim", indent=4, whole=True) for line in question)
                return [*rows, *more]
        case Deny(reason):
            told = ("✗ ", *what, f"  denied: {reason}{rule}")
            rows = [pen.row(kind, *told, style="bad", indent=2, opens=_arguments(pen, call))]
        case _:
            assert_never(event.decision)
    for at, lines in enumerate(grounds_lines(event)):
        rows += (pen.row(kind, (line, "model"), style="dim", indent=4, folded=at > 0) for line in lines)
    return rows


def _result(pen: Pen, state: State, call: Call, result: ToolResult, took_s: float | None) -> Row:
    content = _show(call, result.content)
    name = f"{call.name}: " if len(state.calls) > 1 else ""
    kind = f"{result.kind}: " if result.is_error else ""
    size = f"  … {result.size:,} characters in all" if result.blob else ""
    first, *others = content.strip().splitlines() or ["(nothing)"]
    rest = f"  … {count(len(others), 'more line')}" if others else size
    return pen.row(
        "result",
        f"← {name}{kind}",
        (first, "tool"),
        rest,
        style="bad" if result.is_error else "result",
        indent=2,
        took_s=took_s,
        opens=pen.details(call.name, content.rstrip() + size, blob=result.blob or "", files=result.files),
    )
