"""The ReAct loop as a pure reasoner: one model thinks, calls tools, reads results, answers.

Source: seed 002 and spec/react.md, sections 1, 2, 7, 9 and 10.
"""

from __future__ import annotations

from surefoot.core.loop.endings import (
    WITHOUT_TOOLS,
    after_branch,
    after_failure,
    finished,
    given_up,
    has_other_shape,
    joined,
    last_word,
    misshapen,
    said,
    think,
)
from surefoot.core.loop.read import read_step, shaped
from surefoot.core.loop.slices import request
from surefoot.core.state.roles import SOLO, reached_limit
from surefoot.core.state.state import State, Turn
from surefoot.types.events import RunEnded
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Record, Think
from surefoot.types.outcomes import Completed, CompletedPartial, Ending, Stopped
from surefoot.types.reply import Parsed


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
    if turn.want in WITHOUT_TOOLS and (move := after_branch(state, turn)) is not None:
        return move
    if (answer := accepted_answer(state, turn)) is not None:
        return Record((RunEnded(answer),))
    if turn.outcome == "refused":
        return Record((RunEnded(Stopped("refused")),))
    return misshapen(state, turn) or given_up(state, SOLO) or think(state, SOLO)


def view(state: State, think: Think) -> ModelRequest:
    """What the model sees: the task, its own steps and their results."""
    return request(state, think)


def read(state: State, think: Think, message: ModelMessage) -> Parsed:
    """The reply as calls, an answer or a fault. With no tool offered, a call in it is none that could run."""
    return shaped(state, think, read_step(state, think, message))


def accepted_answer(state: State, turn: Turn) -> Ending | None:
    """The end that a reply gives by itself: an answer, a finish tool, or text after the last nudge."""
    if (ending := finished(turn)) is not None:
        return ending
    solo = state.speakers[SOLO]
    match turn.outcome:
        case "answer" if turn.want in WITHOUT_TOOLS:
            return None  # it was for thinking; what it says is no answer yet
        case "answer":
            return Completed(joined(state, turn))
        case "cut" if solo.cuts_running > state.config.continuations:
            return CompletedPartial(joined(state, turn), "truncated")
        case "no_step" if solo.nudges_running > state.config.nudges:
            return CompletedPartial(said(turn).strip(), "unlabelled_answer")
        case _:
            return None
