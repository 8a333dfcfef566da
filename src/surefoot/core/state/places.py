"""Which places a run has touched whose conventions were not read yet. Source: spec/primitives.md, 4.5."""

from __future__ import annotations

from surefoot.core.state.state import State
from surefoot.types.events import ConventionsRead

ROOT = "."
MOST_DIRECTORIES = 50
"""Directories of one run whose conventions are read; a run over a whole tree is not to read all of it."""

_PATHS = ("path", "directory", "file", "folder")
"""Parameters that name a place in the workspace."""


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
        for given in map(call.arguments.get, _PATHS if call.result is not None and not call.result.is_error else ()):
            if not isinstance(given, str) or not given.strip():
                continue
            place = given.replace("\\", "/").rstrip("/") or ROOT
            is_again = is_changed or _name(place) in config.files
            if {place, _key(place)}.isdisjoint(read_now if is_again else read):
                return place
    return None


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
