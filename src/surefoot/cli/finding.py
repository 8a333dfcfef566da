"""Find a run in the journal by its id or the beginning of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.core.loop.fold import fold
from surefoot.core.state.state import State
from surefoot.run import Run
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.ports import JournalStore, Recorded

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

    @property
    def run(self) -> Run:
        """How it stands, as far as that can be read."""
        return Run.of(self.state, self.records[-1].event if self.records else None)

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
        ids = await store.beginning(given, _NAMED + 1) if given else ()
    if not ids:
        raise UsageError(f"there is no run {given!r}; `surefoot runs` lists them")
    if len(ids) > 1:
        several, more = (str(len(ids)), "") if len(ids) <= _NAMED else ("many", ", …")
        named = ", ".join(ids[:_NAMED]) + more
        raise UsageError(f"{several} runs begin with {given!r}: {named}; give more of the id")
    return Found(ids[0], *await store.read_recorded(ids[0]))


async def state_of(store: JournalStore, run_id: str) -> State:
    """How a run stands now. Raises `UsageError` for no such run."""
    try:
        return (await find(store, run_id)).state
    finally:
        await store.aclose()
