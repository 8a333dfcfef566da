"""One model alone: `react`, `mono`, and the calls of a single reply; and what they share with `dual`.

`react` thinks, calls tools, reads results, answers. A round of `mono` is one reply, also one of analysis alone; it
delivers. What `ModelService.call_function` drives is one reply, its calls, and no more. Each is a `speaker`, who speaks
next or that it is over, where the first line that applies decides; a view; and a `read`, what a reply is.
Source: seeds 002 and 003; spec/react.md, sections 1, 2, 7, 9 and 10; spec/reasoners.md, sections 1, 5, 6 and 8.
"""

from __future__ import annotations

from surefoot.core.guard.judge import answer_of_finish
from surefoot.core.loop.read import AMONG_WORDS, read_delivering, read_isolated, read_step, shaped
from surefoot.core.loop.slices import request
from surefoot.core.state.roles import ROLES, SOLO, limit_for, reached_limit, spent_limit
from surefoot.core.state.state import State, Turn
from surefoot.core.view.step import isolated_request
from surefoot.types.events import ModelTraitLearnt, RunEnded, Want
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Record, Think
from surefoot.types.outcomes import Completed, CompletedPartial, Ending, Failed, Stopped
from surefoot.types.reply import Parsed

LEAKS_UNTIL_LEARNT = 2
MOST_OVERFLOWS = 2


def think(state: State, role: str, want: Want = "any") -> Think | Record:
    """Another request, as far as the budget goes; the last one asks for what is known, of the role that answers."""
    if (limit := spent_limit(state)) is not None:
        return Record((RunEnded(Stopped(limit)),))
    if state.turn is not None and limit_for(state, role) is not None:
        return Think(state.steps + 1, ROLES[state.reasoner][-1], "answer")
    if want == "any" and state.plan is not None and state.current_step_is_reasoning:
        want = "reasoning"
    return Think(state.steps + 1, role, want)


def after_failure(state: State) -> Think | Record:
    """What follows when a model gave no reply: the same request once more where that may help, else the end."""
    failure = state.failure
    assert failure is not None  # noqa: S101  # asked only then
    overflows = state.speakers[failure.role].overflows
    if failure.kind == "context_overflow" and overflows <= MOST_OVERFLOWS and state.turn is not None:
        return think(state, failure.role, failure.want)
    if failure.kind == "refused":
        return Record((RunEnded(Stopped("refused")),))
    if (limit := spent_limit(state, reserve=True)) is not None:
        has_reserve = failure.want != "answer" and state.turn is not None  # the last word was not tried yet
        return think(state, failure.role) if has_reserve else Record((RunEnded(Stopped(limit)),))
    named = failure.kind in ("auth", "bad_request", "context_overflow")
    return Record((RunEnded(Failed(failure.kind if named else "model_unavailable", failure.message)),))


def finished(turn: Turn) -> Ending | None:
    """The end that a finish tool gave."""
    for call in turn.calls:
        if call.spec is not None and call.spec.finish and call.result is not None and not call.result.is_error:
            return Completed(answer_of_finish(call.arguments))
    return None


def given_up(state: State, role: str) -> Record | None:
    """What follows when a role's replies cannot be read any more: another way to speak to it, else the end.

    What the replies so far have shown about the model is put on record once (spec/react.md, section 2).
    """
    speaker, turn = state.speakers[role], state.turn
    alone = role if len(state.speakers) > 1 else ""
    if speaker.mode == "native" and speaker.leaks >= LEAKS_UNTIL_LEARNT and "native_tools" not in speaker.traits:
        evidence = f"{speaker.leaks} replies held calls as text although tools were sent"
        return Record((ModelTraitLearnt(speaker.model, "native_tools", "leaks", evidence, alone),))
    is_unread = speaker.faults_running >= state.config.parse_faults
    if not is_unread and speaker.empty_running < state.config.empty_replies:
        return None
    if speaker.mode == "schema" or speaker.traits.get("json_schema") != "yes":
        return failed_to_read(state, role)
    trait, value = "text_steps", "weak"
    if speaker.mode == "native":
        # nothing says how well a model calls but calls that could not be used
        error = turn.parsed.error if turn is not None else None
        is_block = error is not None and error.kind == "text_call" and error.detail != AMONG_WORDS
        is_call = turn is not None and (bool(turn.parsed.errors) or is_block)
        trait, value = "native_tools", "weak" if is_unread and is_call else "mute"
    return Record((ModelTraitLearnt(speaker.model, trait, value, _unreadable(state, role), alone),))


def failed_to_read(state: State, role: str) -> Record:
    """The end of a run whose replies cannot be read; says whose."""
    named = "" if role == SOLO else f"{role}: "
    return Record((RunEnded(Failed("parse_failure", named + _unreadable(state, role))),))


def last_word(state: State, text: str) -> Record:
    """The end when the answer was asked for because of a limit."""
    limit = reached_limit(state) or "steps"
    return Record((RunEnded(CompletedPartial(text, limit) if text else Stopped(limit)),))


def has_other_shape(turn: Turn) -> bool:
    """Whether the reply answers, but not in the shape that was asked for."""
    return turn.parsed.error is not None and turn.parsed.error.kind == "invalid_output"


def misshapen(state: State, turn: Turn) -> Record | None:
    """The end of a run whose newest output does not fit its schema, once a correction was asked for in vain."""
    if turn.parsed.error is None or not has_other_shape(turn):
        return None
    before = next((one for one in reversed(state.done) if one.role == turn.role), None)
    is_second = before is not None and has_other_shape(before)
    return Record((RunEnded(CompletedPartial(said(turn).strip(), "schema")),)) if is_second else None


def said(turn: Turn) -> str:
    """The visible words of a reply, as they stand."""
    parsed = turn.parsed
    return parsed.final if parsed.final is not None else parsed.content or turn.message.content


def joined(state: State, turn: Turn) -> str:
    """The answer of a reply, with the pieces before it that were cut by length. Trimmed once it is whole."""
    pieces = [said(turn)]
    is_whole = turn.parsed.format == "tags" and turn.parsed.final is not None  # a deliverable is whole or none
    for at in range(len(state.done) - 1, -1, -1) if not is_whole else ():
        earlier = state.done[at]
        is_other = (earlier.role, earlier.want, earlier.step_id) != (turn.role, turn.want, turn.step_id)
        if earlier.outcome != "cut" or is_other:
            break
        pieces.append(said(earlier))
    return "".join(reversed(pieces)).strip()


def _unreadable(state: State, role: str) -> str:
    """What was wrong with the last replies, for a person."""
    speaker = state.speakers[role]
    if speaker.empty_running:
        return f"{speaker.empty_running} empty replies in a row"
    error = state.turn.parsed.error if state.turn else None
    kind = f", the last one {error.kind}: {error.detail}" if error else ""
    if speaker.nudges_running:
        return f"{speaker.nudges_running} replies in a row held no step{kind}"
    return f"{speaker.faults_running} replies in a row could not be read{kind}"


def speaker(state: State) -> Think | Record:
    """Who speaks next, or that it is over. The first line that applies decides."""
    if state.failure is not None:
        return after_failure(state)
    turn = state.turn
    if turn is None:
        return think(state, SOLO)
    if turn.want == "answer":  # the last word; unless the run was resumed with more room
        has_words = turn.outcome in ("answer", "cut", "no_step", "narrated") or has_other_shape(turn)
        is_over = reached_limit(state) is not None
        return last_word(state, joined(state, turn) if has_words else "") if is_over else think(state, SOLO)
    if (ending := finished(turn)) is not None:
        return Record((RunEnded(ending),))
    solo = state.speakers[SOLO]
    match turn.outcome:
        case "answer" if turn.want != "reasoning":  # what was for thinking is no answer yet
            return Record((RunEnded(Completed(joined(state, turn))),))
        case "cut" if solo.cuts_running > state.config.continuations:
            return Record((RunEnded(CompletedPartial(joined(state, turn), "truncated")),))
        case "no_step" if solo.nudges_running > state.config.nudges:
            return Record((RunEnded(CompletedPartial(said(turn).strip(), "unlabelled_answer")),))
        case "refused":
            return Record((RunEnded(Stopped("refused")),))
        case _:
            return misshapen(state, turn) or given_up(state, SOLO) or think(state, SOLO)


def view(state: State, think: Think) -> ModelRequest:
    """What the model sees: the task, its own steps and their results."""
    return isolated_request(state) if think.want == "isolated" else request(state, think)


def read(state: State, think: Think, message: ModelMessage) -> Parsed:
    """The reply as calls, an answer or a fault. With no tool offered, a call in it is none that could run."""
    if think.want == "isolated":
        return read_isolated(message)
    return shaped(state, think, read_step(state, think, message))


def mono_speaker(state: State) -> Think | Record:
    """Who speaks next, or that it is over. The first line that applies decides."""
    if state.failure is not None:
        return after_failure(state)
    turn = state.turn
    if turn is None:
        return think(state, SOLO)
    if turn.want == "answer":  # asked for at a limit; unless the run was resumed with more room
        is_over = reached_limit(state) is not None
        text = joined(state, turn) if has_other_shape(turn) else _whole_answer(state, turn)
        return last_word(state, text) if is_over else think(state, SOLO)
    if (ending := finished(turn)) is not None:
        return Record((RunEnded(ending),))
    if turn.want != "reasoning" and (answer := _whole_answer(state, turn)):
        return Record((RunEnded(Completed(answer)),))
    if turn.outcome == "refused":
        return Record((RunEnded(Stopped("refused")),))
    if turn.outcome == "cut" and state.speakers[SOLO].cuts_running > state.config.continuations:
        return Record((RunEnded(CompletedPartial(joined(state, turn), "truncated")),))
    return misshapen(state, turn) or given_up(state, SOLO) or think(state, SOLO)


def mono_read(state: State, think: Think, message: ModelMessage) -> Parsed:
    """The reply as calls, a deliverable or a fault."""
    return shaped(state, think, read_delivering(state, think, message))


def _whole_answer(state: State, turn: Turn) -> str:
    return joined(state, turn) if turn.outcome == "answer" else ""


def once_speaker(state: State) -> Record:
    """It is over as soon as every call of the reply has its result."""
    if state.turn is None:
        return Record((RunEnded(Failed("no_reply", "the run was to carry out the calls of a reply, and holds none")),))
    return Record((RunEnded(Completed("")),))
