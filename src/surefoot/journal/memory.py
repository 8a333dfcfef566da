"""Runs kept in memory: the promises of a journal but the one to outlive the process.

Events are kept as they are; a fork holds its parent and the place where it left it. They are encoded all the same, for
the chain, and so that what no file could hold is refused here too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice

from surefoot.core.summary import summarise
from surefoot.journal.codec import chain, check_fork, digest_of, encode, genesis
from surefoot.types.errors import JournalError, RunBusy, UsageError
from surefoot.types.events import VERSION, Event, RunEnded
from surefoot.types.ports import Durability, Recorded
from surefoot.types.summary import NO_RECORDS, RunSummary, Standing


class MemoryJournal:
    """A `JournalStore` that lasts as long as this object."""

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._blobs: dict[str, bytes] = {}
        self._closings = 0

    async def open(self, run_id: str, *, create: bool = False) -> MemoryRun:
        """Take the right to drive a run. Raises `RunBusy` while another has it, `UsageError` for an unknown run.

        With `create` the run must be new, or have no records: whoever made it died before the first.
        """
        log = self._logs.get(run_id)
        if log is not None and log.driver is not None:
            raise RunBusy(f"run {run_id} is being driven by this process already; wait until it stands still")
        if not create:
            log = self._log(run_id)
        elif log is None or log.length > 0:
            log = self._new(run_id)
        log.driver = MemoryRun(log, self._blobs)
        return log.driver

    async def fork(self, parent: str, at: int, run_id: str) -> None:
        """Make a run that shares the records of `parent` before `at`, at least one. Copies no events."""
        origin = self._log(parent)
        check_fork(parent, at, origin.length)
        self._new(run_id, origin, at)

    async def runs(self, limit: int = 50) -> Sequence[RunSummary]:
        """The newest runs first, but those without records. `status`: the ending's kind, "running", "interrupted"."""
        return [log.listed() for log in islice((log for log in reversed(self._logs.values()) if log.length), limit)]

    async def beginning(self, prefix: str, limit: int = 50) -> Sequence[str]:
        """The ids that begin so, of runs with records."""
        return sorted(name for name, log in self._logs.items() if name.startswith(prefix) and log.length)[:limit]

    async def read_recorded(self, run_id: str, since: int = 0) -> tuple[Sequence[Recorded], str]:
        """All records from `since` on; nothing is ever wrong with them."""
        return self._log(run_id).recorded(max(since, 0)), ""

    async def subscribe(self, run_id: str, since: int = 0) -> AsyncIterator[Recorded]:
        """Records from `since` on, then each new one, until the run ends or this store is closed."""
        log, since, changed, closings = self._log(run_id), max(since, 0), asyncio.Event(), self._closings
        log.watchers.add(changed)
        try:
            while self._closings == closings:
                changed.clear()
                records = log.recorded(since)
                since += len(records)
                for record in records:
                    yield record
                if log.length <= since and log.own and isinstance(log.own[-1], RunEnded):
                    return
                await changed.wait()
        finally:
            log.watchers.discard(changed)

    async def get_blob(self, digest: str) -> bytes:
        """The bytes of that digest. Raises `JournalError` when they are not there."""
        return _blob(self._blobs, digest)

    async def aclose(self) -> None:
        """Give up the runs that are driven, and end the subscriptions."""
        self._closings += 1
        for log in self._logs.values():
            if log.driver is not None:
                await log.driver.release()
            log.tell()

    def _log(self, run_id: str) -> _Log:
        log = self._logs.get(run_id)
        if log is None:
            raise UsageError(f"there is no run {run_id!r} in this journal, which lasts only as long as its process")
        return log

    def _new(self, run_id: str, parent: _Log | None = None, at: int = 0) -> _Log:
        if not run_id or not run_id.isprintable():
            raise UsageError(f"{run_id!r} cannot be the id of a run; give printable text")
        if run_id in self._logs:
            raise UsageError(f"there is a run {run_id} already; choose another id")
        log = self._logs[run_id] = _Log(run_id, parent, at)
        return log


class MemoryRun:
    """A `RunJournal` of one run in memory."""

    __slots__ = ("_blobs", "_is_released", "_log", "run_id")

    def __init__(self, log: _Log, blobs: dict[str, bytes]) -> None:
        self.run_id = log.run_id
        self._log = log
        self._blobs = blobs
        self._is_released = False

    async def read(self, since: int = 0) -> Sequence[Event]:
        """Events from position `since` on, oldest first."""
        self._check()
        return self._log.events(max(since, 0))

    async def append(self, events: Sequence[Event], durability: Durability = "soon") -> None:  # noqa: ARG002 - of the port
        """Add events at the end, all or none, in this order. There is nothing safer than memory, whatever is asked.

        Raises `JournalError` for what no journal could hold.
        """
        self._check()
        self._log.add(events)

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

    async def release(self, standing: Standing = "") -> None:
        """Let others drive this run."""
        if not self._is_released:
            self._log.summary = replace(self._log.summary, standing=standing or self._log.summary.standing)
            self._is_released = True
            self._log.driver = None

    def _check(self) -> None:
        if self._is_released:
            raise UsageError(f"run {self.run_id} was released; open it again to go on")


class _Log:
    """One run: what it shares with its parent, and its own records."""

    __slots__ = ("_before", "_hashes", "at", "driver", "own", "parent", "run_id", "summary", "times", "watchers")

    def __init__(self, run_id: str, parent: _Log | None, at: int) -> None:
        self.run_id = run_id
        self.parent = parent
        self.at = at
        self.summary = replace(
            self._so_far(), run_id=run_id, started_at=time.time(), parent=parent.run_id if parent else ""
        )
        self.own: list[Event] = []
        self.times: list[float] = []
        self.driver: MemoryRun | None = None
        self.watchers: set[asyncio.Event] = set()
        self._hashes: list[bytes] = []
        self._before = genesis(run_id) if parent is None else parent.hash_of(at - 1)

    @property
    def length(self) -> int:
        return self.at + len(self.own)

    def tell(self) -> None:
        for changed in self.watchers:
            changed.set()

    def add(self, events: Sequence[Event]) -> None:
        at, hashes, summary = time.time(), list[bytes](), self.summary
        previous = self._hashes[-1] if self._hashes else self._before
        for event in events:
            previous = chain(previous, VERSION, at, encode(event)[0])
            hashes.append(previous)
            summary = summarise(summary, event, at)
        self.own += events
        self.times += [at] * len(events)
        self._hashes += hashes
        self.summary = replace(summary, run_id=self.run_id, started_at=self.summary.started_at)
        self.tell()

    def events(self, since: int) -> list[Event]:
        return [event for log, own in self._pieces(since) for event in log.own[own]]

    def recorded(self, since: int) -> list[Recorded]:
        return [
            Recorded(seq, at, hash_.hex(), event)
            for log, own in self._pieces(since)
            for seq, at, hash_, event in zip(
                range(log.at + own.start, log.at + own.stop),
                log.times[own],
                log._hashes[own],  # noqa: SLF001 - of its own kind
                log.own[own],
                strict=True,
            )
        ]

    def hash_of(self, seq: int) -> bytes:
        log = self
        while log.parent is not None and seq < log.at:
            log = log.parent
        return log._hashes[seq - log.at]  # noqa: SLF001 - of its own kind

    def _pieces(self, since: int) -> list[tuple[_Log, slice]]:
        """Whose own records from `since` on this run consists of, oldest ancestor first. A loop: forks may be deep."""
        pieces: list[tuple[_Log, slice]] = []
        log, stop = self, self.length
        while True:
            if max(since, log.at) < stop:
                pieces.append((log, slice(max(since - log.at, 0), stop - log.at)))
            stop = min(stop, log.at)
            if log.parent is None or stop <= since:
                return pieces[::-1]
            log = log.parent

    def listed(self) -> RunSummary:
        is_left = self.driver is None and self.summary.status == "running"
        return replace(self.summary, status="interrupted") if is_left else self.summary

    def _so_far(self) -> RunSummary:
        """What is shared with the parent, summed up."""
        if self.parent is not None and self.at == self.parent.length:
            return self.parent.summary
        shared = self.parent.recorded(0)[: self.at] if self.parent else []
        return reduce(lambda before, one: summarise(before, one.event, one.at), shared, NO_RECORDS)


def _blob(blobs: dict[str, bytes], digest: str) -> bytes:
    if digest not in blobs:
        raise JournalError(f"there are no bytes of digest {digest} in this journal")
    return blobs[digest]
