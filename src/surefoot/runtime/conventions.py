"""The conventions of a directory that a run has come to. Source: spec/primitives.md, 4.5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from surefoot.core.state import State
from surefoot.core.text import clean
from surefoot.knowledge.files import files_message
from surefoot.knowledge.prefetch.frame import mark_for
from surefoot.types.errors import ConfigError
from surefoot.types.events import ConventionsRead, Event
from surefoot.types.knowledge import KnowledgeError

if TYPE_CHECKING:
    from surefoot.runtime.hands import LiveHands


async def read_conventions(hands: LiveHands, directory: str, state: State) -> Sequence[Event]:
    """The files that count there and were not shown before. A place outside the workspace has none."""
    if hands.knowledge is None:
        return (ConventionsRead(directory),)
    try:
        found = await hands.knowledge.files(directory)
    except (ConfigError, KnowledgeError) as error:
        return (ConventionsRead(directory, error=clean(str(error))),)
    known = {digest for one in state.conventions for _, digest in one.files}
    new = [file for file in found.files if file.digest not in known]
    mark = mark_for(f"{state.run_id}:conventions:{directory}", [file.text for file in new])
    shown = tuple((file.path, file.digest) for file in new)
    return (ConventionsRead(directory, shown, clean(files_message(new, mark)), clean("; ".join(found.errors))),)
