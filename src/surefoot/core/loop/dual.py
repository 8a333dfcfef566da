"""The dual-model reasoner: a Thinker plans and instructs, an Actor calls tools and delivers.

A round is a reply of the Thinker and the Actor's turn, which is up to `actor_steps` requests. Nothing that the Actor
has read can end the run: a deliverable counts once the Thinker has said that the task is done. Source: seed 003 and
spec/reasoners.md, sections 5, 7 and 8.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from surefoot.core.loop.read import read_delivering, shaped
from surefoot.core.loop.slices import proposal_of, request
from surefoot.core.loop.solo import (
    after_failure,
    failed_to_read,
    given_up,
    has_other_shape,
    joined,
    last_word,
    misshapen,
    think,
)
from surefoot.core.parse.instruction import instruction_schema, read_instruction
from surefoot.core.parse.marks import DELIVERABLE
from surefoot.core.state.roles import ACTOR, THINKER, reached_limit
from surefoot.core.state.state import State, Turn, subset
from surefoot.core.view.request import LOOK_FIRST, fitting
from surefoot.core.view.step import without_pager
from surefoot.types.events import RunEnded
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Record, Think
from surefoot.types.outcomes import Completed, CompletedPartial, Failed, Stopped
from surefoot.types.reply import Parsed


def speaker(state: State) -> Think | Record:
    """Who speaks next, or that it is over; a proposal on hand is not lost to a limit."""
    move = _next(state)
    is_last = state.failure is not None and state.failure.want == "answer"
    match move:
        case Record((RunEnded(Stopped() | Failed() as ending),)) if isinstance(ending, Stopped) or is_last:
            proposal = proposed(state)
            return Record((RunEnded(CompletedPartial(proposal, ending.reason)),)) if proposal else move
        case _:
            return move


def _next(state: State) -> Think | Record:
    """The first line that applies decides."""
    if state.failure is not None:
        return after_failure(state)
    turn = state.turn
    if turn is None:
        return think(state, THINKER)
    if turn.outcome == "refused":
        return Record((RunEnded(Stopped("refused")),))
    return _after_thinker(state, turn) if turn.role == THINKER else _after_actor(state, turn)


def _after_thinker(state: State, turn: Turn) -> Think | Record:
    instruction = turn.parsed.instruction
    if instruction is None:
        if state.speakers[THINKER].nudges_running > state.config.nudges:
            return failed_to_read(state, THINKER)
        return given_up(state, THINKER) or think(state, THINKER)
    if not instruction.done:
        return think(state, ACTOR)
    proposal = "" if instruction.text else proposed(state)  # one who still instructs has not confirmed it
    return Record((RunEnded(Completed(proposal)),)) if proposal else think(state, ACTOR, "answer")


def _after_actor(state: State, turn: Turn) -> Think | Record:
    if turn.want == "answer":
        return _after_delivery(state, turn)
    proposal = proposal_of(turn)
    if proposal and state.config.early_deliverable == "accept":
        return Record((RunEnded(Completed(proposal)),))
    if (end := given_up(state, ACTOR)) is not None:
        return end
    if turn.outcome == "answer" or proposal:
        return think(state, THINKER)
    steps = sum(1 for _ in takewhile(lambda one: one.role == ACTOR, reversed(state.turns)))
    # in schema mode the Thinker names each call, and its result is the report
    most = 1 if state.speakers[ACTOR].mode == "schema" else state.config.actor_steps
    if steps >= most:
        return think(state, THINKER)
    return think(state, ACTOR, "no_calls" if steps + 1 == most else "any")


def _after_delivery(state: State, turn: Turn) -> Think | Record:
    """The deliverable was asked for: because the Thinker said so, or because a limit is reached."""
    is_over = reached_limit(state) is not None
    text = joined(state, turn) if turn.outcome == "answer" or (is_over and has_other_shape(turn)) else ""
    spoken = next((one for one in reversed(state.done) if one.role == THINKER), None)
    if spoken is not None and spoken.parsed.instruction is not None and spoken.parsed.instruction.done:
        if turn.outcome == "answer":
            return Record((RunEnded(Completed(text)),))
        if (end := misshapen(state, turn)) is not None:
            return end
        if turn.outcome == "cut" and state.speakers[ACTOR].cuts_running > state.config.continuations:
            return Record((RunEnded(CompletedPartial(joined(state, turn), "truncated")),))
        if state.speakers[ACTOR].nudges_running > state.config.nudges:
            return failed_to_read(state, ACTOR)
        return last_word(state, text) if is_over else given_up(state, ACTOR) or think(state, ACTOR, "answer")
    return last_word(state, text or proposed(state)) if is_over else think(state, THINKER)


def proposed(state: State) -> str:
    """The deliverable that the Actor gave before the Thinker's word, if its last turn ended with one; else ""."""
    turns = (turn for turn in reversed(state.turns) if turn.role == ACTOR)
    newest = next((turn for turn in turns if turn.want != "answer"), None)
    return proposal_of(newest) if newest is not None else ""


def view(state: State, think: Think) -> ModelRequest:
    """What the role sees: its own turns as its own, everything else as told."""
    if think.role == ACTOR:
        return request(state, think)
    speaker = state.speakers[THINKER]
    may_end = speaker.replies > 0 or speaker.traits.get(LOOK_FIRST) != "yes"
    able = fitting(state, ACTOR, without_pager(state.offered))
    idle = _idle_tools(state) if speaker.mode == "schema" else frozenset[str]()
    if may_end and idle:
        able = subset(able, tuple(name for name in able.names if name not in idle))
    return request(state, think, instruction_schema(able, may_end=may_end))


MOST_IDLE = 2


def _idle_tools(state: State) -> frozenset[str]:
    """The tools that the Thinker has named in vain: twice since something new was found out, or for what was known.

    A small model would go on naming them, with names that it makes up.
    """
    named: list[str] = []
    is_known = False
    for turn in reversed(state.turns):
        if any(c.result is not None and not c.result.is_error and not c.known for c in turn.calls):
            break
        is_known = is_known or any(call.known and not call.is_told_once for call in turn.calls)
        if turn.parsed.instruction is not None:
            named.append(turn.parsed.instruction.tool)
    return frozenset(named) - {""} if is_known or len(named) >= MOST_IDLE else frozenset()


def read(state: State, think: Think, message: ModelMessage) -> Parsed:
    """A Thinker's reply as an instruction; an Actor's as calls, a report or a deliverable."""
    if think.role == THINKER:
        return read_instruction(message.content, calls=message.calls, finish_reason=message.finish_reason)
    return shaped(state, think, _reported(think, read_delivering(state, think, message)))


def _reported(think: Think, parsed: Parsed) -> Parsed:
    """What the Actor said without a call and before the deliverable is asked for stands as its report."""
    if think.want == "answer" or parsed.calls or parsed.errors:
        return parsed
    if parsed.format == "schema" and parsed.final is not None:
        return replace(parsed, content=parsed.final, final=None)
    error = parsed.error
    is_plain = error is not None and error.kind == "no_call" and "hallucinated_result_removed" not in parsed.warnings
    if is_plain and DELIVERABLE not in (parsed.content or ""):
        return replace(parsed, error=None)
    return parsed
