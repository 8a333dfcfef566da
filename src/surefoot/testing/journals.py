"""A journal that dies at a chosen append, as a process would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from surefoot.types.events import Event
from surefoot.types.ports import Durability, JournalStore, RunJournal


class Crash(BaseException):
    """The process is gone. No `except Exception` can hold it, as none holds a `kill -9`."""


class CrashingStore:
    """A journal store whose runs crash before or after their append number `at` (1 is the first).

    Only what is crashed stays crashed: the store behind it can be opened again, as after a restart.
    """

    def __init__(self, store: JournalStore, at: int, when: Literal["before", "after"]) -> None:
        self._store = store
        self._at = at
        self._when = when
        self.appends = 0

    async def open(self, run_id: str, *, create: bool = False) -> RunJournal:
        """Open a run that will crash."""
        return _CrashingJournal(await self._store.open(run_id, create=create), self)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def pass_through(self, journal: RunJournal, events: Sequence[Event], durability: Durability) -> None:
        """Append, unless this is where it crashes."""
        self.appends += 1
        if self.appends == self._at and self._when == "before":
            raise Crash
        await journal.append(events, "written" if self.appends == self._at else durability)
        if self.appends == self._at:
            raise Crash


class _CrashingJournal:
    def __init__(self, journal: RunJournal, store: CrashingStore) -> None:
        self._journal = journal
        self._store = store

    async def append(self, events: Sequence[Event], durability: Durability = "soon") -> None:
        await self._store.pass_through(self._journal, events, durability)

    def __getattr__(self, name: str) -> object:
        return getattr(self._journal, name)
