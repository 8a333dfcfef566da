"""Find a run in the journal by its id or the beginning of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.core.fold import fold
from surefoot.core.state import State
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.ports import JournalStore, Recorded

_ALL = 1_000_000
_NAMED = 5
"""How many runs a message names."""


@dataclass(frozen=True, slots=True)
class Found:
    """A run's records as far as they can be read, and what is wrong with the rest ("" when nothing is)."""

    run_id: str
    records: Sequence[Recorded]
    wrong: str

    @property
    def state(self) -> State:
        """All that can be read, folded."""
        return fold(record.event for record in self.records)

    def whole(self) -> Found:
        """This, or `JournalError` when a part of it cannot be read."""
        if self.wrong:
            raise JournalError(self.wrong)
        return self


async def find(store: JournalStore, given: str) -> Found:
    """The run of that id, or the only one whose id begins so. Raises `UsageError` when there is none, or several."""
    try:
        return Found(given, *await store.read_recorded(given))
    except UsageError:
        ids = [info.run_id for info in await store.runs(_ALL) if given and info.run_id.startswith(given)]
    if not ids:
        raise UsageError(f"there is no run {given!r}; `surefoot runs` lists them")
    if len(ids) > 1:
        named = ", ".join(ids[:_NAMED]) + (", …" if len(ids) > _NAMED else "")
        raise UsageError(f"{len(ids)} runs begin with {given!r}: {named}; give more of the id")
    return Found(ids[0], *await store.read_recorded(ids[0]))


async def state_of(store: JournalStore, run_id: str) -> State:
    """How a run stands now. Raises `UsageError` for no such run."""
    try:
        return (await find(store, run_id)).state
    finally:
        await store.aclose()
