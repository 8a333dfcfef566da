"""Runs kept in memory: the promises of a journal but the one to outlive the process.

Events are kept as they are; a fork holds its parent and the place where it left it. They are encoded all the same, for
the chain, and so that what no file could hold is refused here too. Event loops on several threads may share a journal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from threading import Lock

from surefoot.core.state.summary import is_listed, ready_at, status_of, summarise
from surefoot.journal.codec import Tail, check_fork, check_id, digest_of, genesis, place_of, rows_of, same_word
from surefoot.types.errors import JournalError, RunBusy, RunExists, RunUnknown, UsageError
from surefoot.types.events import Event, RunEnded
from surefoot.types.ports import (
    EVERY_RUN,
    NO_RECORDS,
    Claimed,
    Durability,
    JournalStore,
    Recorded,
    RunFilter,
    RunPage,
    RunSummary,
    Standing,
)
from surefoot.types.words import Posted, Word


class MemoryJournal:
    """A `JournalStore` that lasts as long as this object."""

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._blobs: dict[str, bytes] = {}
        self._making = Lock()
        self._fences: dict[str, int] = {}
        self._words = 0
        self._changes = _Changes()

    async def open(self, run_id: str, *, create: bool = False) -> MemoryRun:
        """Take the right to drive a run. Raises `RunBusy` while another has it, `UsageError` for an unknown run.

        With `create` the run must be new, or have no records: whoever made it died before the first.
        """
        with self._making:
            log = self._logs.get(run_id)
            if log is not None and log.driver is not None:
                raise RunBusy(f"run {run_id} is being driven by this process already; wait until it stands still")
            if not create:
                log = self._log(run_id)
            elif log is None or log.tail.seq > 0:
                log = self._new(run_id)
            log.driver, log.ready_at = MemoryRun(log, self._blobs), None
            return log.driver

    async def fork(self, parent: str, at: int, run_id: str) -> None:
        """Make a run that shares the records of `parent` before `at`, at least one. Copies no events."""
        origin = self._log(parent)
        check_fork(parent, at, origin.tail.seq)
        with self._making:
            self._new(run_id, origin, at)

    async def runs(self, limit: int = 50) -> Sequence[RunSummary]:
        """The newest runs first, but those without records. `status`: the ending's kind, "running", "interrupted"."""
        with_records = (log for log in reversed(tuple(self._logs.values())) if log.tail.seq)
        return [log.listed() for log in islice(with_records, limit)]

    async def beginning(self, prefix: str, limit: int = 50) -> Sequence[str]:
        """The ids that begin so, of runs with records."""
        return sorted(name for name, log in tuple(self._logs.items()) if name.startswith(prefix) and log.tail.seq)[
            :limit
        ]

    async def read_recorded(
        self, run_id: str, since: int = 0, limit: int | None = None
    ) -> tuple[Sequence[Recorded], str]:
        """All records from `since` on; nothing is ever wrong with them."""
        return self._log(run_id).records(max(since, 0))[:limit], ""

    async def subscribe(self, run_id: str, since: int = 0) -> AsyncIterator[Recorded]:
        """Records from `since` on, then each new one, until the run ends or this store is closed."""
        log, since, watcher = self._log(run_id), max(since, 0), _Watcher()
        log.watchers.add(watcher)
        try:
            while not watcher.is_over:
                watcher.changed.clear()
                records = log.records(since)
                since += len(records)
                for record in records:
                    yield record
                if log.tail.seq <= since and log.own and isinstance(log.own[-1].event, RunEnded):
                    return
                await watcher.changed.wait()
        finally:
            log.watchers.discard(watcher)

    async def get_blob(self, digest: str) -> bytes:
        """The bytes of that digest. Raises `JournalError` when they are not there."""
        return _blob(self._blobs, digest)

    async def say(self, run_id: str, word: Word, *, key: str = "") -> Posted:
        """Put a word into the inbox of a run and wake whoever drives it. See `JournalStore`."""
        log = self._log(run_id)
        with self._making:
            for posted in log.inbox if key else ():
                if posted.key == key:
                    return same_word(posted, word)
            self._words += 1
            log.inbox.append(posted := Posted(self._words, word, key))
            log.ready_at = time.time() if log.driver is None else None
        if log.driver is not None:
            log.driver.wake()
        return posted

    async def posted(self, run_id: str, number: int) -> Posted:
        """A word of a run, with what came of it."""
        found = next((one for one in self._log(run_id).inbox if one.number == number), None)
        if found is None:
            raise UsageError(f"run {run_id}: no word {number} was said to it")
        return found

    async def list(self, wanted: RunFilter = EVERY_RUN, after: str = "", limit: int = 50) -> RunPage:
        """A page of the runs that are wanted, newest first."""
        numbered = reversed(tuple(enumerate((log for log in tuple(self._logs.values()) if log.tail.seq), 1)))
        before = place_of(after)
        found = ((at, log.listed()) for at, log in numbered if before is None or at < before)
        page = tuple(islice(((at, one) for at, one in found if is_listed(one, wanted)), limit + 1))
        more = str(page[limit - 1][0]) if len(page) > limit else ""
        return RunPage(tuple(one for _, one in page[:limit]), more)

    async def count(self, wanted: RunFilter = EVERY_RUN, most: int = 10_000) -> int:
        """How many runs are wanted; counting ends at `most`."""
        return len((await self.list(wanted, limit=most)).runs)

    async def summary(self, run_id: str) -> RunSummary:
        """A run in one line, as of its last record."""
        return self._log(run_id).listed()

    async def changes(self, since: int | None = None) -> AsyncIterator[RunSummary]:
        """Summaries that changed after the change `since`, then each as it changes, until this store is closed."""
        watcher, since = _Watcher(), self._changes.count if since is None else since
        self._changes.watchers.add(watcher)
        try:
            while not watcher.is_over:
                watcher.changed.clear()
                logs = sorted(
                    (log for log in tuple(self._logs.values()) if log.change > since), key=attrgetter("change")
                )
                for log in logs:
                    since = log.change
                    yield log.listed()
                await watcher.changed.wait()
        finally:
            self._changes.watchers.discard(watcher)

    async def delete(self, run_id: str) -> None:
        """Take a run out for good."""
        with self._making:
            log = self._log(run_id)
            if log.driver is not None:
                raise RunBusy(f"run {run_id} is being driven; cancel it, or wait until it stands still")
            if any(one.parent is log for one in self._logs.values()):
                raise UsageError(f"run {run_id} cannot be deleted: another run shares its records")
            del self._logs[run_id]

    async def claim(self, agents: Collection[str], limit: int, lease_s: float) -> Sequence[Claimed]:  # noqa: ARG002  # who dies takes all runs along
        """Take the right to drive up to so many runs of these agents that are ready."""
        now, found = time.time(), list[Claimed]()
        with self._making:
            ready = [log for log in self._logs.values() if log.ready_at is not None and log.ready_at <= now]
            for log in sorted((one for one in ready if one.summary.agent in agents), key=attrgetter("ready_at"))[
                :limit
            ]:
                log.ready_at = None
                fence = self._fences[log.run_id] = self._fences.get(log.run_id, 0) + 1
                found.append(Claimed(log.run_id, log.summary.agent, fence))
        return found

    async def renew(self, lease_s: float) -> Collection[str]:  # noqa: ARG002  # as above
        """Nobody else can take a run of this process."""
        return ()

    async def aclose(self) -> None:
        """Give up the runs that this event loop drives, and end its subscriptions."""
        here = asyncio.get_running_loop()
        for log in tuple(self._logs.values()):
            if (driver := log.driver) is not None and (driver.loop is here or not driver.loop.is_running()):
                await driver.release()
            for watcher in (*log.watchers, *self._changes.watchers):
                if watcher.loop is here:
                    watcher.is_over = True
                    watcher.wake()

    def _log(self, run_id: str) -> _Log:
        log = self._logs.get(run_id)
        if log is None:
            raise RunUnknown(f"unknown run {run_id!r} in this journal, which lasts only as long as its process")
        return log

    def _new(self, run_id: str, parent: _Log | None = None, at: int = 0) -> _Log:
        check_id(run_id)
        if run_id in self._logs:
            raise RunExists(f"there is a run {run_id} already; choose another id")
        log = self._logs[run_id] = _Log(run_id, parent, at, self._changes)
        return log


class MemoryRun:
    """A `RunJournal` of one run in memory."""

    __slots__ = ("_blobs", "_is_released", "_log", "_wake", "loop", "run_id")

    def __init__(self, log: _Log, blobs: dict[str, bytes]) -> None:
        self.run_id = log.run_id
        self.loop = asyncio.get_running_loop()
        self._log = log
        self._blobs = blobs
        self._is_released = False
        self._wake: Callable[[], None] | None = None

    async def read(self, since: int = 0) -> Sequence[Event]:
        """Events from position `since` on, oldest first."""
        self._check()
        return [record.event for record in self._log.records(max(since, 0))]

    async def append(
        self,
        events: Sequence[Event],
        durability: Durability = "soon",  # noqa: ARG002 - of the port
        *,
        heard: Sequence[Posted] = (),
    ) -> None:
        """Add events at the end, all or none, in this order. There is nothing safer than memory, whatever is asked.

        Raises `JournalError` for what no journal could hold.
        """
        self._check()
        self._log.add(events)
        if heard:
            of = {one.number: one for one in heard}
            self._log.inbox[:] = [of.get(one.number, one) for one in self._log.inbox]

    async def words(self) -> Sequence[Posted]:
        """What was said to this run and has no outcome yet."""
        return [one for one in self._log.inbox if not one.outcome]

    def listen(self, wake: Callable[[], None] | None) -> None:
        """Call `wake` whenever something is said to this run."""
        self._wake = wake
        if any(not one.outcome for one in self._log.inbox):
            self.wake()

    def wake(self) -> None:
        """Have whoever drives the run, perhaps on another loop, hear what was said."""
        if (wake := self._wake) is not None:
            with suppress(RuntimeError):  # a loop that was closed hears nothing
                self.loop.call_soon_threadsafe(lambda: wake() if self._wake is wake else None)

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes under their SHA-256 (hex), which is returned."""
        self._check()
        digest = digest_of(data)
        self._blobs[digest] = data
        return digest

    async def get_blob(self, digest: str) -> bytes:
        """The bytes of that digest. Raises `JournalError` when they are not there."""
        self._check()
        return _blob(self._blobs, digest)

    async def release(self, standing: Standing = "", wake_at: float | None = None, *, why: str = "") -> None:
        """Let others drive this run."""
        if not self._is_released:
            log, self._wake = self._log, None
            log.summary = replace(
                log.summary, standing=standing or log.summary.standing, reason=why or log.summary.reason
            )
            self._is_released = True
            log.ready_at = ready_at(log.summary, wake_at, has_words=any(not one.outcome for one in log.inbox))
            log.driver = None
            log.note()

    def _check(self) -> None:
        if self._is_released:
            raise UsageError(f"run {self.run_id} was released; open it again to go on")


class _Watcher:
    """Somebody who waits on their event loop for what may be added on another."""

    def __init__(self) -> None:
        self.loop, self.changed, self.is_over = asyncio.get_running_loop(), asyncio.Event(), False

    def wake(self) -> None:
        if asyncio.get_running_loop() is self.loop:
            self.changed.set()
        else:
            with suppress(RuntimeError):  # a loop that was closed waits for nothing
                self.loop.call_soon_threadsafe(self.changed.set)


class _Changes:
    """How often anything has changed, and who follows that."""

    def __init__(self) -> None:
        self.count = 0
        self.watchers: set[_Watcher] = set()

    def next(self) -> int:
        self.count += 1
        for watcher in tuple(self.watchers):
            watcher.wake()
        return self.count


class _Log:
    """One run: what it shares with its parent, and its own records from `at` on."""

    def __init__(self, run_id: str, parent: _Log | None, at: int, changes: _Changes) -> None:
        self.changes, self.change = changes, 0
        self.inbox: list[Posted] = []
        self.ready_at: float | None = None
        self.run_id = run_id
        self.parent = parent
        self.at = at
        self.own: list[Recorded] = []
        self.driver: MemoryRun | None = None
        self.watchers: set[_Watcher] = set()
        self.tail, summary = Tail(0, genesis(run_id)), NO_RECORDS
        if parent is not None:
            shared = parent.records(0)[:at]
            self.tail = Tail(at, bytes.fromhex(shared[-1].hash))
            summary = reduce(lambda before, one: summarise(before, one.event, one.at), shared, summary)
            if at == parent.tail.seq:
                summary = parent.summary
        name = parent.run_id if parent else ""
        self.summary = replace(summary, run_id=run_id, started_at=time.time(), parent=name)

    def add(self, events: Sequence[Event]) -> None:
        began = self.summary.started_at
        rows, _, self.tail, summary = rows_of(0, events, time.time(), self.tail, self.summary)
        for (_, seq, at, _, _, hash_), event in zip(rows, events, strict=True):
            self.own.append(Recorded(seq, at, hash_.hex(), event))
        self.summary = replace(summary, run_id=self.run_id, started_at=began)
        self.note()
        for watcher in tuple(self.watchers):
            watcher.wake()

    def note(self) -> None:
        """Count a change, and tell whoever follows the changes of all runs."""
        self.change = self.changes.next()

    def records(self, since: int) -> list[Recorded]:
        """Those from `since` on, of all ancestors. A loop: forks may be deep."""
        pieces: list[list[Recorded]] = []
        log, stop = self, self.tail.seq
        while log is not None and stop > since:
            pieces.append(log.own[max(since - log.at, 0) : max(stop - log.at, 0)])
            log, stop = log.parent, min(stop, log.at)
        return list(chain.from_iterable(reversed(pieces)))

    def listed(self) -> RunSummary:
        status = status_of(self.summary, is_driven=self.driver is not None, is_ready=self.ready_at is not None)
        return replace(self.summary, status=status, change=self.change)


def _blob(blobs: dict[str, bytes], digest: str) -> bytes:
    if digest not in blobs:
        raise JournalError(f"no bytes of digest {digest} in this journal")
    return blobs[digest]


def store_of(journal: JournalStore | str | Path | None) -> JournalStore:
    """Where runs are kept: as given, a file of that path, or memory."""
    if journal is None:
        return MemoryJournal()
    if isinstance(journal, str | Path):
        from surefoot.journal.sqlite import SqliteJournal  # noqa: PLC0415  # sqlite3 loads when it is used

        return SqliteJournal(journal)
    return journal
