"""One reply, its calls, and no more: what `ModelService.call_function` drives. Source: spec/reasoners.md, section 1."""

from __future__ import annotations

from surefoot.core.loop.read import read_step
from surefoot.core.loop.slices import request
from surefoot.core.state.state import State
from surefoot.types.events import RunEnded
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Record, Think
from surefoot.types.outcomes import Completed, Failed
from surefoot.types.reply import Parsed


def speaker(state: State) -> Record:
    """It is over as soon as every call of the reply has its result."""
    if state.turn is None:
        return Record((RunEnded(Failed("no_reply", "the run was to carry out the calls of a reply, and holds none")),))
    return Record((RunEnded(Completed("")),))


def view(state: State, think: Think) -> ModelRequest:
    """Never sent: no model is asked in such a run."""
    return request(state, think)


def read(state: State, think: Think, message: ModelMessage) -> Parsed:
    """The tagged calls of the reply."""
    return read_step(state, think, message)
