"""A journal that dies at a chosen append, as a process would."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal

from surefoot.types.events import Event
from surefoot.types.ports import Durability, JournalStore, Recorded, RunInfo, RunJournal


class Crash(BaseException):  # it is no error that a program could meet
    """The process is gone. No `except Exception` can hold it, as none holds a `kill -9`."""


class CrashingStore:
    """A journal store whose runs crash before or after append number `at` (1 is the first; 0: never).

    What was appended before stays as it is; the store behind it can be opened again, as after a restart. `appends`
    counts them, `when_it_comes` is what happens then (a `Crash`, unless a subclass kills the process for real).
    """

    def __init__(self, store: JournalStore, at: int, when: Literal["before", "after"]) -> None:
        self._store = store
        self._at = at
        self._when = when
        self.appends = 0

    async def open(self, run_id: str, *, create: bool = False) -> RunJournal:
        """Open a run that will crash."""
        return _CrashingJournal(await self._store.open(run_id, create=create), self)

    async def append_to(self, journal: RunJournal, events: Sequence[Event], durability: Durability) -> None:
        """Append, unless this is where it crashes."""
        self.appends += 1
        if self.appends == self._at and self._when == "before":
            self.when_it_comes()
        await journal.append(events, durability)
        if self.appends == self._at:
            self.when_it_comes()

    def when_it_comes(self) -> None:
        """Die."""
        raise Crash

    async def fork(self, parent: str, at: int, run_id: str) -> None:
        """As the store behind it."""
        await self._store.fork(parent, at, run_id)

    async def runs(self, limit: int = 50) -> Sequence[RunInfo]:
        """As the store behind it."""
        return await self._store.runs(limit)

    async def read_recorded(self, run_id: str, since: int = 0) -> tuple[Sequence[Recorded], str]:
        """As the store behind it."""
        return await self._store.read_recorded(run_id, since)

    def subscribe(self, run_id: str, since: int = 0) -> AsyncIterator[Recorded]:
        """As the store behind it."""
        return self._store.subscribe(run_id, since)

    async def get_blob(self, digest: str) -> bytes:
        """As the store behind it."""
        return await self._store.get_blob(digest)

    async def aclose(self) -> None:
        """As the store behind it."""
        await self._store.aclose()


class _CrashingJournal:
    """One run of such a store."""

    def __init__(self, journal: RunJournal, store: CrashingStore) -> None:
        self._journal = journal
        self._store = store

    @property
    def run_id(self) -> str:
        return self._journal.run_id

    async def read(self, since: int = 0) -> Sequence[Event]:
        return await self._journal.read(since)

    async def append(self, events: Sequence[Event], durability: Durability = "soon") -> None:
        await self._store.append_to(self._journal, events, durability)

    async def put_blob(self, data: bytes) -> str:
        return await self._journal.put_blob(data)

    async def get_blob(self, digest: str) -> bytes:
        return await self._journal.get_blob(digest)

    async def release(self) -> None:
        await self._journal.release()
