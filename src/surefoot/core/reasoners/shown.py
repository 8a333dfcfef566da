"""What each role is shown of the turns of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from surefoot.core.context import Show, window_of
from surefoot.core.reasoners.dual_view import actor_turns, thinker_turns, undroppable
from surefoot.core.roles import ACTOR, SOLO, THINKER
from surefoot.core.state import State
from surefoot.core.view import composed, fit_for, own_turns
from surefoot.core.window import Fit
from surefoot.types.messages import ModelRequest
from surefoot.types.moves import Think

_SHOWN: Mapping[str, Callable[[State], Show]] = {SOLO: own_turns, THINKER: thinker_turns, ACTOR: actor_turns}


def request(state: State, think: Think, schema: Mapping[str, object] | None = None) -> ModelRequest:
    """The next request of a role; the caller adds settings and time limits. `schema` as `composed` has it."""
    return composed(state, think, _SHOWN[think.role](state), fit_of(state, think), schema)


def fit_of(state: State, think: Think) -> Fit:
    """How much of the turns a role is shown in its next request; the same for the same state."""
    if window_of(state, think.role) is None:
        return state.speakers[think.role].fit
    return fit_for(state, think, _SHOWN[think.role](state), droppable(state, think.role))


def droppable(state: State, role: str) -> int:
    """How many of the oldest turns a role may do without: never the newest, and not what the Actor is to do now."""
    newest = state.steps - 1
    return min(undroppable(state), newest) if role == ACTOR else newest
