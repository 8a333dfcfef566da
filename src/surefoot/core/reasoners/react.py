"""The ReAct loop as a pure reasoner: one model thinks, calls tools, reads results, answers.

Source: seed 002 and spec/react.md, sections 1, 2, 7, 9 and 10.
"""

from __future__ import annotations

from dataclasses import replace

from surefoot.core.budget import spent_limit
from surefoot.core.gate.judge import answer_of_finish
from surefoot.core.parse.reply import parse
from surefoot.core.state import State, Turn
from surefoot.core.view import offered_now, request
from surefoot.types.endings import Completed, CompletedPartial, Ending, Failed, Stopped
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import End, Learn, Think
from surefoot.types.reply import Fault, Parsed

LEAKS_UNTIL_LEARNT = 2
NARRATED_UNTIL_WEAK = 2
MOST_OVERFLOWS = 2

_DIALECTS = {"native": "native", "schema": "schema", "text": "react"}


def speaker(state: State) -> Think | Learn | End:
    """Who speaks next, or that it is over. The first line that applies decides."""
    if state.failure is not None:
        return _after_failure(state)
    turn = state.turn
    if turn is None:
        return _think(state)
    if turn.want == "answer":  # the last word; unless the run was resumed with more room
        return End(_last_word(state, turn)) if spent_limit(state, reserve=True) else _think(state)
    if (answer := accepted_answer(state, turn)) is not None:
        return End(answer)
    if turn.outcome == "refused":
        return End(Stopped("refused"))
    if (learnt := _learnt(state)) is not None:
        return learnt
    if state.faults_running >= state.config.parse_faults or state.empty_running >= state.config.empty_replies:
        return End(Failed("parse_failure", _unreadable(state)))
    return _think(state)


def view(state: State, think: Think) -> ModelRequest:
    """What the model sees: the task, its own steps and their results."""
    return request(state, think)


def read(state: State, think: Think, message: ModelMessage) -> Parsed:
    """The reply as calls, an answer or a fault. With no tool offered, a call in it is none that could run."""
    config = state.config
    parsed = parse(
        message.content,
        offered_now(state, think),
        dialect=_DIALECTS[state.mode],
        tool_calls=message.calls,
        finish_reason=message.finish_reason,
        repair=config.repair,
        on_conflict=config.on_conflict,
    )
    if (
        state.mode == "native"
        and not message.calls
        and (parsed.calls or parsed.errors)
        and _is_quoted(state, parsed, message)
    ):
        return Parsed(content=message.content, format="native")
    if state.mode == "schema" and parsed.final is not None and parsed.final.strip().casefold() in _NOTHING:
        return replace(parsed, final=None, error=Fault("empty_final", "the answer is not given in words"))
    if think.want == "answer" and (parsed.calls or parsed.errors):
        told = "no tool can be called any more; nothing was run"
        return replace(parsed, calls=(), errors=(), error=Fault("calls_not_allowed", told))
    return parsed


_NOTHING = frozenset({"none", "null", "nil", "n/a", "undefined", "无"})
"""What a model that is held to a form puts where it has nothing to say, even when it knows the answer."""

_MARKERLESS = frozenset({"llama3_json", "pythonic", "fenced_json"})


def _is_quoted(state: State, parsed: Parsed, message: ModelMessage) -> bool:
    """Whether what looks like a call in the text of a native reply is something that the model only writes about.

    A model that has called natively in this run does not fall back to text. A form without a marker counts only if it
    is all that the reply says, and none counts inside a code span: a page or file that holds such text must not act
    because the model quotes it. Source: spec/react.md, section 13.5.
    """
    if state.calls_natively:
        return True
    before = (parsed.content or "").rstrip()
    if parsed.format in _MARKERLESS:
        return bool(before) or message.content.strip()[-1:] not in ("}", "]", "`", ";", ")", ">")
    return before.endswith("`")


def accepted_answer(state: State, turn: Turn) -> Ending | None:
    """The end that a reply gives by itself: an answer, a finish tool, or text after the last nudge."""
    for call in turn.calls:
        if call.spec is not None and call.spec.finish and call.result is not None and not call.result.is_error:
            return Completed(answer_of_finish(call.arguments))
    match turn.outcome:
        case "answer":
            return Completed(_joined(state, turn))
        case "cut" if state.cuts_running > state.config.continuations:
            return CompletedPartial(_joined(state, turn), "truncated")
        case "no_step" if state.nudges_running > state.config.nudges:
            return CompletedPartial(said(turn).strip(), "unlabelled_answer")
        case _:
            return None


def said(turn: Turn) -> str:
    """The visible words of a reply, as they stand."""
    parsed = turn.parsed
    return parsed.final if parsed.final is not None else parsed.content or turn.message.content


def _think(state: State) -> Think | End:
    """Another request, as far as the budget goes; the last one asks for what is known."""
    if (limit := spent_limit(state)) is not None:
        return End(Stopped(limit))
    want = "answer" if state.turn is not None and spent_limit(state, reserve=True) else "any"
    return Think(state.steps + 1, want=want)


def _last_word(state: State, turn: Turn) -> Ending:
    limit = spent_limit(state, reserve=True) or "steps"
    has_words = turn.outcome in ("answer", "cut", "no_step", "narrated")
    text = _joined(state, turn) if has_words else ""
    return CompletedPartial(text, limit) if text else Stopped(limit)


def _joined(state: State, turn: Turn) -> str:
    """The answer of a reply, with the pieces before it that were cut by length. Trimmed once it is whole."""
    pieces = [said(turn)]
    for earlier in reversed(state.done):
        if earlier.outcome != "cut":
            break
        pieces.append(said(earlier))
    return "".join(reversed(pieces)).strip()


def _after_failure(state: State) -> Think | End:
    failure = state.failure
    assert failure is not None  # noqa: S101  # asked only then
    if failure.kind == "context_overflow" and state.overflows <= MOST_OVERFLOWS and state.turn is not None:
        return _think(state)
    if failure.kind == "refused":
        return End(Stopped("refused"))
    if (limit := spent_limit(state, reserve=True)) is not None:
        has_reserve = failure.want == "any" and state.turn is not None  # the last word was not tried yet
        return _think(state) if has_reserve else End(Stopped(limit))
    named = failure.kind in ("auth", "bad_request", "context_overflow")
    return End(Failed(failure.kind if named else "model_unavailable", failure.message))


def _learnt(state: State) -> Learn | None:
    """What the replies so far have shown about the model (spec/react.md, section 2), if it is new."""
    native = state.traits.get("native_tools")
    if state.mode == "native" and state.leaks >= LEAKS_UNTIL_LEARNT and native is None:
        return Learn("native_tools", "leaks", f"{state.leaks} replies held calls as text although tools were sent")
    fails = (
        state.faults_running >= state.config.parse_faults
        or state.empty_running >= state.config.empty_replies
        or state.narrated >= NARRATED_UNTIL_WEAK
    )
    if not fails:
        return None
    has_schema = state.traits.get("json_schema") == "yes"
    if state.mode == "native" and (has_schema or state.narrated >= NARRATED_UNTIL_WEAK):
        return Learn("native_tools", "weak", _unreadable(state))
    if state.mode == "text" and has_schema:
        return Learn("text_steps", "weak", _unreadable(state))
    return None


def _unreadable(state: State) -> str:
    """What was wrong with the last replies, for a person."""
    if state.empty_running:
        return f"{state.empty_running} empty replies in a row"
    if not state.faults_running:
        return "the model announced a call and made none, again after it was told"
    error = state.turn.parsed.error if state.turn else None
    kind = f", the last one {error.kind}: {error.detail}" if error else ""
    return f"{state.faults_running} replies in a row could not be read{kind}"
