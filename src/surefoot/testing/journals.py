"""Journal stores around another one: one that dies at a chosen moment, as a process would; one that checks events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from types import CoroutineType
from typing import Any, Literal, ParamSpec, TypeVar

from surefoot.journal.codec import decode, decode_catalogue, digest_of, encode, rows_of
from surefoot.types.events import VERSION, Event
from surefoot.types.ports import NO_RECORDS, Durability, JournalStore, Place, RunJournal, Standing
from surefoot.types.words import Posted

P = ParamSpec("P")
T = TypeVar("T")

Operation = Literal["open", "append", "put_blob", "release"]
"""What a process does to its journal, and so when it can die."""


class Crash(BaseException):  # it is not an error that a program could meet
    """The process is gone. No `except Exception` can hold it, as none holds a `kill -9`."""


class _AroundStore:
    """A journal store that passes on what its kinds do not change; `settle` comes before what needs its newest."""

    def __init__(self, store: JournalStore) -> None:
        self._store = store
        self.side = store.side
        self.origin, self.rows, self.adopt, self.sweep = store.origin, store.rows, store.adopt, store.sweep
        self.subscribe, self.changes = store.subscribe, store.changes
        self.renew, self.put_blob = store.renew, store.put_blob
        settled = self._after_writes
        self.fork, self.delete, self.claim = settled(store.fork), settled(store.delete), settled(store.claim)
        self.runs, self.list, self.count = settled(store.runs), settled(store.list), settled(store.count)
        self.summary, self.beginning = settled(store.summary), settled(store.beginning)
        self.read_recorded, self.get_blob = settled(store.read_recorded), settled(store.get_blob)
        self.say, self.posted = settled(store.say), settled(store.posted)

    async def settle(self) -> None:
        """Give the store behind what it needs to know."""

    async def aclose(self) -> None:
        await self.settle()
        await self._store.aclose()

    def _after_writes(self, call: Callable[P, CoroutineType[Any, Any, T]]) -> Callable[P, CoroutineType[Any, Any, T]]:
        async def make(*args: P.args, **keywords: P.kwargs) -> T:
            await self.settle()
            return await call(*args, **keywords)

        return make


class CheckedJournal(_AroundStore):
    """A journal store that takes no event but those that can be read back as they were.

    `append` raises `AssertionError` for one that would come back as another, or not at all: a mistake of ours that a
    store in memory would hide.
    """

    async def open(self, run_id: str, *, create: bool = False, fence: int | None = None) -> RunJournal:
        return _CheckedRun(await self._store.open(run_id, create=create, fence=fence))


class AroundRun:
    """One run of a store around another one, which passes on all but its appends."""

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal
        self.run_id = journal.run_id
        self.read = journal.read
        self.put_blob = journal.put_blob
        self.get_blob = journal.get_blob
        self.words = journal.words
        self.listen = journal.listen
        self.release = journal.release

    @property
    def place(self) -> Place:
        return self._journal.place


class _CheckedRun(AroundRun):
    async def append(self, events: Sequence[Event], *given: Any, **more: Any) -> Place:  # Any: passed on as they are
        for event in events:
            check_comes_back(event)
        return await self._journal.append(events, *given, **more)


def check_comes_back(event: Event) -> None:
    """Raise `AssertionError` unless the event, written and read again, is what it was.

    Raises `JournalError` when it cannot even be written.
    """
    body, kept = encode(event)
    data = b"" if kept is None else kept[1]
    try:
        back = decode(body, VERSION, lambda _, version: decode_catalogue(data, version))
    except ValueError as error:
        raise AssertionError(f"{event!r} can be written but not read: {error}") from error
    if back != event:
        raise AssertionError(f"{event!r} comes back as {back!r}")


class CrashingStore(_AroundStore):
    """A journal store whose process crashes before or after operation number `at` (1 is the first; 0: never).

    Only operations named in `of` are counted, in `operations`; `appends` counts all appends. When it comes, all runs
    that were opened here die: what was appended "soon" and had no turn of the event loop yet is lost, with bytes that
    came with it; nobody drives the runs any more, so the store behind can open them, as after a restart. From then on
    nothing is written or released here; whoever still appends gets a `Crash`, since the dead do not get past a write
    to what it would allow. `when_it_comes` is what happens at that moment (a `Crash`, unless a subclass kills the
    process for real).
    """

    def __init__(
        self, store: JournalStore, at: int, when: Literal["before", "after"], of: Sequence[Operation] = ("append",)
    ) -> None:
        super().__init__(store)
        self._at = at
        self._when = when
        self._of = frozenset(of)
        self._runs: list[_CrashingRun] = []
        self.is_dead = False
        self.operations = 0
        self.appends = 0

    async def open(self, run_id: str, *, create: bool = False, fence: int | None = None) -> RunJournal:
        await self.begin("open")
        run = _CrashingRun(await self._store.open(run_id, create=create, fence=fence), self)
        self._runs.append(run)
        await self.end("open")
        return run

    async def begin(self, operation: Operation) -> None:
        """Count an operation, and die if that is to be before it."""
        if self.is_dead:
            raise Crash
        self.appends += operation == "append"
        if operation in self._of:
            self.operations += 1
            if self.operations == self._at and self._when == "before":
                await self._die()

    async def end(self, operation: Operation) -> None:
        if operation in self._of and self.operations == self._at and not self.is_dead:
            await self._die()

    def when_it_comes(self) -> None:
        raise Crash

    async def settle(self) -> None:
        for run in self._runs:
            await run.pass_on()

    async def aclose(self) -> None:
        if not self.is_dead:
            await super().aclose()

    async def _die(self) -> None:
        self.is_dead = True
        for run in self._runs:
            run.lose()  # all of them at once, before the event loop has another turn
        await self.settle()
        try:
            self.when_it_comes()
        finally:
            for run in self._runs:
                await run.vanish()


class _CrashingRun:
    """One run of such a store.

    What is appended "soon" waits here and not in the store behind, which could not be kept from writing it. It counts
    as written from the event loop's next turn on, when a store would write it, and goes to the store behind with the
    next call that needs it there.
    """

    def __init__(self, journal: RunJournal, store: CrashingStore) -> None:
        self.run_id, self.place = journal.run_id, journal.place
        self.vanish = journal.release  # it holds the run no more
        self._journal = journal
        self._store = store
        self.words = journal.words
        self.listen = journal.listen
        # appends that wait, with their bytes
        self._waiting: list[tuple[tuple[Event, ...], tuple[bytes, ...], Sequence[Posted], float]] = []
        self._blobs: dict[str, bytes] = {}
        self._written = 0  # how many of those that wait
        self._is_due = False

    async def read(self, since: int = 0) -> Sequence[Event]:
        await self.pass_on()
        return await self._journal.read(since)

    async def append(
        self,
        events: Sequence[Event],
        durability: Durability = "soon",
        *,
        heard: Sequence[Posted] = (),
        at: float | None = None,
        place: Place | None = None,
    ) -> Place:
        await self._store.begin("append")
        if place not in (None, self.place):
            await self.pass_on()
            return await self._journal.append(events, durability, heard=heard, at=at, place=place)
        now = time.time() if at is None else at  # what cannot be recorded is refused at once, as by the store behind
        self.place = rows_of(0, events, now, self.place, NO_RECORDS)[2]
        self._waiting.append((tuple(events), tuple(self._blobs.values()), heard, now))
        self._blobs.clear()
        if durability != "soon":
            await self.pass_on(durability)
        elif not self._is_due:

            def turn() -> None:
                self._is_due = False
                self._written = len(self._waiting)

            self._is_due = True
            asyncio.get_running_loop().call_soon(turn)
        await self._store.end("append")
        return self.place

    async def put_blob(self, data: bytes) -> str:
        await self._store.begin("put_blob")
        digest = digest_of(data)
        self._blobs[digest] = data
        await self._store.end("put_blob")
        return digest

    async def get_blob(self, digest: str) -> bytes:
        if digest in self._blobs:
            return self._blobs[digest]
        await self.pass_on()
        return await self._journal.get_blob(digest)

    async def release(self, standing: Standing = "", wake_at: float | None = None, *, why: str = "") -> None:
        if self._store.is_dead:  # an `async with` that is left
            return
        await self._store.begin("release")
        await self.pass_on()
        for data in self._blobs.values():
            await self._journal.put_blob(data)
        await self._journal.release(standing, wake_at, why=why)
        await self._store.end("release")

    async def pass_on(self, durability: Durability = "written") -> None:
        waiting, self._waiting, self._written = self._waiting, [], 0
        for number, (events, blobs, heard, at) in enumerate(waiting, 1):
            for data in blobs:
                await self._journal.put_blob(data)
            await self._journal.append(events, durability if number == len(waiting) else "soon", heard=heard, at=at)

    def lose(self) -> None:
        """Forget what would not be in a file by now."""
        del self._waiting[self._written :]
        self._blobs.clear()
