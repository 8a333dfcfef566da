"""Which directories a run has touched whose conventions were not read yet. Source: spec/primitives.md, 4.5."""

from __future__ import annotations

from surefoot.core.state import Call, State

ROOT = "."
MOST_DIRECTORIES = 50
"""Directories of one run whose conventions are read; a run over a whole tree is not to read all of it."""

_PATHS = ("path", "directory", "file", "folder")
"""Parameters that name a place in the workspace."""


def unread_directory(state: State) -> str | None:
    """The next directory whose conventions are to be read: the workspace itself, then those that calls touched."""
    config = state.config.conventions
    if config is None or not config.files or len(state.conventions) >= MOST_DIRECTORIES:
        return None
    read = {one.directory for one in state.conventions}
    touched = (directory for call in state.calls for directory in _directories(call))
    return next((directory for directory in (ROOT, *touched) if directory not in read), None)


def _directories(call: Call) -> list[str]:
    if call.result is None or call.result.is_error:
        return []
    named = (call.arguments.get(name) for name in _PATHS)
    return [_directory_of(place) for place in named if isinstance(place, str) and place.strip()]


def _directory_of(place: str) -> str:
    """The directory that a place is, or is in: what has an extension is a file."""
    plain = place.replace("\\", "/").rstrip("/") or ROOT
    head, slash, last = plain.rpartition("/")
    is_file = "." in last.strip(".")
    return (head or (slash and "/") or ROOT) if is_file else plain
