"""The roles of a run, and the modes in which they call."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.core.state import State
from surefoot.types.messages import CallMode, Traits


def mode_for(start: CallMode, traits: Traits) -> CallMode:
    """The mode to use. A mode that the endpoint cannot carry, or that the model does not master, gives way to the next.

    The order is native, schema, text; `start` is where it begins. "schema" is only chosen where the trait
    `json_schema` is known to be "yes", or where it was started with.
    """
    schema = traits.get("json_schema")
    if start == "native" and traits.get("native_tools") not in ("no", "weak", "mute"):
        return "native"
    if start == "text" and traits.get("text_steps") != "weak":
        return "text"
    if schema == "yes" or (start == "schema" and schema != "no"):
        return "schema"
    return "text"


SOLO = "solo"
THINKER = "thinker"
ACTOR = "actor"
GUARD = "guard"
"""The role of a model that is asked for the stages of the guard alone; without one the model that leads is asked."""
PLANNER = "planner"
"""The role of a model that is asked for proposals about a plan alone; without one the run's own is asked."""
PREFETCH = "prefetch"
"""The role of the turn in which calls are made before anybody has spoken."""

ROLES: Mapping[str, tuple[str, ...]] = {
    "react": (SOLO,),
    "mono": (SOLO,),
    "dual": (THINKER, ACTOR),
    "plan": (SOLO,),
    "once": (SOLO,),
}
"""The roles of each reasoner."""

TAGGED = frozenset({"mono", "dual", "once"})
"""The reasoners whose text form is the tags dialect; the others write labels."""


def prompt_name(role: str, mode: CallMode) -> str:
    """Under which name a role's template for a call mode is kept. One who calls no tools needs no native one."""
    if role == THINKER and mode == "native":
        mode = "text"
    return mode if role == SOLO else f"{role}_{mode}"


def guard_role(state: State) -> str:
    """The role whose model is asked for the stages of the guard."""
    return GUARD if GUARD in state.speakers else ROLES[state.reasoner][0]


def rounds(state: State) -> int:
    """The rounds so far: replies of the role that leads, but those for which the answer was asked."""
    leading = state.speakers.get(ROLES[state.reasoner][0])
    return leading.rounds if leading is not None else 0


def round_limit(state: State) -> int | None:
    """After how many rounds the deliverable is asked for; None where rounds are not limited."""
    return state.config.max_rounds if state.reasoner in ("mono", "dual") else None


def rounds_to_tell(state: State, role: str) -> int:
    """How many rounds are left, from four fifths of the limit on, for the one who leads; else 0."""
    limit = round_limit(state)
    if limit is None or role != ROLES[state.reasoner][0] or rounds(state) * 5 < (limit - 1) * 4:
        return 0
    return max(0, limit - rounds(state))
