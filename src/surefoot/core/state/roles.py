"""Questions to a state that many rooms ask: its roles and their modes, what is left of its budget, which places of the
workspace it has touched whose conventions were not read yet.
"""  # noqa: D205  # one sentence

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from surefoot.core.state.state import State
from surefoot.core.state.turn import ACTOR, SpeakerState, changed
from surefoot.core.state.window import TRAIT
from surefoot.core.text.json import as_list
from surefoot.core.text.words import words_of_name
from surefoot.types.events import ConventionsRead, Speaker
from surefoot.types.knowledge import ROOT
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
GUARD = "guard"
"""The role of a model that is asked for the stages of the guard alone; without one the model that leads is asked."""
PLANNER = "planner"
"""The role of a model that is asked for proposals about a plan alone; without one the run's own is asked."""
PREFETCH = "prefetch"  # the role of the turn in which calls are made before anybody has spoken

ROLES: Mapping[str, tuple[str, ...]] = {
    "react": (SOLO,),
    "mono": (SOLO,),
    "dual": (THINKER, ACTOR),
    "plan": (SOLO,),
    "once": (SOLO,),
}
"""The roles of each reasoner."""

CHOICES = ("react", "mono", "dual", "plan")
"""The reasoners that an agent can have; the other drives the calls of a single reply."""

TAGGED = frozenset({"mono", "dual", "once"})
"""The reasoners whose text form is the tags dialect; the others write labels."""


ROUNDED = frozenset({"mono", "dual"})
"""The reasoners whose rounds are limited: after so many the deliverable is asked for."""


def prompt_name(role: str, mode: CallMode) -> str:
    """Under which name a role's template for a call mode is kept. One who calls no tools needs no native one."""
    if role == THINKER and mode == "native":
        mode = "text"
    return mode if role == SOLO else f"{role}_{mode}"


def rounds(state: State) -> int:
    """The rounds so far: replies of the role that leads, but those for which the answer was asked."""
    leading = state.speakers.get(ROLES[state.reasoner][0])
    return leading.rounds if leading is not None else 0


def rounds_to_tell(state: State, role: str) -> int:
    """How many rounds are left, from four fifths of the limit on, for the one who leads; else 0."""
    limit = state.config.max_rounds
    is_limited = state.reasoner in ROUNDED and role == ROLES[state.reasoner][0]
    if not is_limited or rounds(state) * 5 < (limit - 1) * 4:
        return 0
    return max(0, limit - rounds(state))


NO_COUNTERS: dict[str, object] = {"faults_running": 0, "empty_running": 0, "nudges_running": 0, "cuts_running": 0}


def speaking(speaker: Speaker) -> SpeakerState:
    """A speaker as a run begins with it."""
    mode = mode_for(speaker.call_mode, speaker.traits)
    return SpeakerState(speaker.model, speaker.call_mode, mode, speaker.traits)


def goes_on(kept: SpeakerState, speaker: Speaker | None) -> SpeakerState:
    """A speaker when the run is taken up: what counts in a row begins anew, and so does all of another model."""
    if speaker is not None and speaker.model != kept.model:
        # what the other model did says nothing about this one
        return changed(speaking(speaker), usage=kept.usage, replies=kept.replies)
    start = speaker.call_mode if speaker else kept.start_mode
    mode = mode_for(start, kept.traits)
    nothing_learnt = frozenset[tuple[str, str]]()
    return changed(kept, start_mode=start, mode=mode, learnt=nothing_learnt, overflows=0, **NO_COUNTERS)


Limit = Literal["steps", "tokens", "cost", "time", "round_limit", "stuck"]


def spent_limit(state: State, *, reserve: bool = False) -> Limit | None:
    """The first limit that is reached. With `reserve`, also counts what is kept back for the last request."""
    budget = state.config.budget
    share = 1 - budget.reserve if reserve else 1.0
    if budget.max_steps is not None:  # one request is kept for the last word, unless there is only one
        most = max(1, budget.max_steps - 1) if reserve else budget.max_steps
        if (state.requests if state.gate is None else steps_so_far(state)) >= most:
            return "steps"
    if budget.max_tokens is not None and state.usage.total_tokens >= budget.max_tokens * share:
        return "tokens"
    if budget.max_cost_usd is not None and (state.usage.cost_usd or 0.0) >= budget.max_cost_usd * share:
        return "cost"
    if budget.max_seconds is not None and state.elapsed_s >= budget.max_seconds * share:
        return "time"
    return None


def steps_so_far(state: State) -> int:
    """The steps of a run, or of a step with a state of its own: requests, and turns made without one."""
    return state.requests + turns_unasked(state)


def turns_unasked(state: State) -> int:
    """The turns of calls that were made without a request: of a run all, of a step with a state of its own its own."""
    if state.gate is None:
        return 0
    kept = state.gate.choosing
    own = kept.values() if not state.scope else (kept[state.scope],) if state.scope in kept else ()
    return sum(one.turns for one in own)


def limit_for(state: State, role: str) -> Limit | None:
    """The limit for which the answer is asked for in place of another step of that role, if one is reached.

    Rounds are counted where they begin, so that the last one is not broken off in the middle.
    """
    if state.stuck:
        return "stuck"
    if (limit := spent_limit(state, reserve=True)) is not None:
        return limit
    budget = state.config.budget
    for each, share in budget.shares.items():
        if (speaker := state.speakers.get(each)) is None:
            continue
        if budget.max_tokens is not None and speaker.usage.total_tokens >= budget.max_tokens * share:
            return "tokens"
        if budget.max_cost_usd is not None and (speaker.usage.cost_usd or 0.0) >= budget.max_cost_usd * share:
            return "cost"
    is_limited = state.reasoner in ROUNDED and role == ROLES[state.reasoner][0]
    return "round_limit" if is_limited and rounds(state) >= state.config.max_rounds else None


def reached_limit(state: State) -> Limit | None:
    """The limit for which no further round is begun."""
    return limit_for(state, ROLES[state.reasoner][0])


def seconds_left(state: State, *, last: bool = False) -> float | None:
    """How long the next move may take, in seconds; the last request may use the reserve. None: no limit."""
    budget = state.config.budget
    if budget.max_seconds is None:
        return None
    share = 1.0 if last else 1 - budget.reserve
    return max(0.0, budget.max_seconds * share - state.elapsed_s)


def window_of(state: State, role: str) -> int | None:
    """The window of a role's model in tokens: as configured, else as its traits tell; less if an overflow said so."""
    speaker = state.speakers[role]
    known, limit = state.config.context_tokens, speaker.fit.limit
    if not known and (told := speaker.traits.get(TRAIT)) and told.isdecimal():
        known = int(told)
    return min(known, limit) if known and limit else known or limit


MOST_DIRECTORIES = 50
"""Directories of one run whose conventions are read; a run over a whole tree is not to read all of it."""

_PATHS = frozenset(
    ("path", "paths", "file", "files", "filename", "filepath", "folder", "dir", "directory", "directories")
)
"""Last words in the names of parameters that name places in the workspace."""
_LONGEST_PLACE = 1000


def unread_directory(state: State) -> str | None:
    """The next place whose conventions are to be read: the workspace itself, then those that calls touched.

    A file stands for its directory; which of the two a place is, only the disk knows, and the event says. A place is
    read again after a call that changed something there, and when a file of conventions itself is touched.
    What the task names is read together with the workspace itself, before a model is asked: `runtime/fetch.py`.
    """
    config, told = state.config.conventions, state.conventions
    if config is None or not config.files or len({one.scope for one in told}) >= MOST_DIRECTORIES:
        return None
    if not told:
        return ROOT
    step = state.turn.step if state.turn else 0
    read = {key for one in told for key in _keys(one)}
    read_now = {key for one in told if one.step == step for key in _keys(one)}
    for call in state.calls:
        is_changed = call.spec is not None and call.spec.effect != "read"
        if call.result is None or call.result.is_error:
            continue
        named = (value for name, value in call.arguments.items() if _names_place(words_of_name(name)))
        for given in (one for value in named for one in as_list(value) or [value]):
            if not isinstance(given, str) or not given.strip() or "\n" in given or len(given) > _LONGEST_PLACE:
                continue
            place = given.replace("\\", "/").rstrip("/") or ROOT
            is_again = is_changed or _name(place) in config.files
            if {place, _key(place)}.isdisjoint(read_now if is_again else read):
                return place
    return None


def _names_place(words: tuple[str, ...]) -> bool:
    """Whether a parameter names places: "file_path", "dirs", "file_name"; "file_text" does not."""
    last = words[-2:-1] if words[-1:] in (("name",), ("names",)) else words[-1:]
    return not _PATHS.isdisjoint(last)


def _keys(one: ConventionsRead) -> set[str]:
    """What is known to be read with a place: where it was a file, the files beside it that are named alike."""
    is_file = _name(one.scope).casefold() != _name(one.directory).casefold()
    return {one.directory, _key(one.directory)} if is_file else {one.directory}


def _key(place: str) -> str:
    """The same for the files of one directory that have the same extension."""
    head, _, name = place.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    return f"{head}/*.{extension}" if stem and dot and extension else place


def _name(place: str) -> str:
    return place.rpartition("/")[2]
