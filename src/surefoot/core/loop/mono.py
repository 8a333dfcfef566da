"""The mono-model reasoner: one model thinks, acts and delivers. A round is one reply, also one of analysis alone.

Source: seed 003 and spec/reasoners.md, sections 5, 6 and 8.
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
    think,
)
from surefoot.core.loop.read import read_delivering, shaped
from surefoot.core.loop.slices import request
from surefoot.core.state.roles import SOLO, reached_limit
from surefoot.core.state.state import State, Turn
from surefoot.types.events import RunEnded
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Record, Think
from surefoot.types.outcomes import Completed, CompletedPartial, Stopped
from surefoot.types.reply import Parsed


def speaker(state: State) -> Think | Record:
    """Who speaks next, or that it is over. The first line that applies decides."""
    if state.failure is not None:
        return after_failure(state)
    turn = state.turn
    if turn is None:
        return think(state, SOLO)
    if turn.want == "answer":  # asked for at a limit; unless the run was resumed with more room
        is_over = reached_limit(state) is not None
        text = joined(state, turn) if has_other_shape(turn) else _answer(state, turn)
        return last_word(state, text) if is_over else think(state, SOLO)
    if (ending := finished(turn)) is not None:
        return Record((RunEnded(ending),))
    if turn.want in WITHOUT_TOOLS and (move := after_branch(state, turn)) is not None:
        return move
    if turn.want not in WITHOUT_TOOLS and (answer := _answer(state, turn)):
        return Record((RunEnded(Completed(answer)),))
    if turn.outcome == "refused":
        return Record((RunEnded(Stopped("refused")),))
    if turn.outcome == "cut" and state.speakers[SOLO].cuts_running > state.config.continuations:
        return Record((RunEnded(CompletedPartial(joined(state, turn), "truncated")),))
    return misshapen(state, turn) or given_up(state, SOLO) or think(state, SOLO)


def view(state: State, think: Think) -> ModelRequest:
    """What the model sees: the task, its own rounds and their results."""
    return request(state, think)


def read(state: State, think: Think, message: ModelMessage) -> Parsed:
    """The reply as calls, a deliverable or a fault."""
    return shaped(state, think, read_delivering(state, think, message))


def _answer(state: State, turn: Turn) -> str:
    return joined(state, turn) if turn.outcome == "answer" else ""
