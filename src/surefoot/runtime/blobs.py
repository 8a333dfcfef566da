"""The files of a run: the journal keeps their bytes, each once, and a request is given them before it is sent."""

from __future__ import annotations

from collections.abc import Iterable

from surefoot.core.state.roles import GUARD, PLANNER, THINKER
from surefoot.core.state.state import State
from surefoot.types.attachments import Attachment, files_in
from surefoot.types.errors import UsageError
from surefoot.types.ports import RunJournal

_READ_NO_FILES = frozenset({GUARD, PLANNER})


async def keep_task(journal: RunJournal, state: State) -> State:
    """Keep the files of a task before its run is on record. Raises `UsageError` where its model does not take them."""
    if state.task is not None and state.task.attachments and state.ending is None:
        if untaken := cannot_take(state):
            raise UsageError(untaken)
        await keep_files(journal, state.task.attachments)
    return state


async def keep_files(journal: RunJournal, attachments: Iterable[Attachment]) -> None:
    """Put the bytes of files into the journal. Raises `JournalError` for one that is neither at hand nor kept there."""
    for one in files_in(attachments):
        await bring_files(journal, (one,))
        await journal.put_blob(one.data)


async def bring_files(journal: RunJournal, files: Iterable[Attachment]) -> None:
    """Have the bytes of files at hand, those of a run that was taken up again too. Raises `JournalError`."""
    for one in files:
        if not one.is_at_hand:
            one.keep(await journal.get_blob(one.digest))


def cannot_take(state: State, role: str = "") -> str:
    """Why the task's files cannot be shown to the model in that role, or in any that reads them; "" where they can."""
    files = files_in(state.task.attachments) if state.task is not None else ()
    if not files:
        return ""
    apart = _READ_NO_FILES | (frozenset({THINKER}) if state.config.thinker_sees == "data" else frozenset[str]())
    for name in [role] if role else state.speakers:
        speaker = state.speakers[name]
        refused = [one for one in files if speaker.traits.get(one.trait) != "yes"]
        if refused and name not in apart:
            told = ", ".join(f"{one.name} ({one.media_type})" for one in refused)
            return f"{speaker.model} does not take {told}: use a model that does, or leave the file out"
    return ""
