"""Runs kept in memory: the promises of a journal but the one to outlive the process.

Events are kept as they are; a fork holds its parent and the place where it left it. They are encoded all the same, for
the chain, and so that what no file could hold is refused here too. Event loops on several threads may share a journal.

Whoever gives `keep` has what is encoded as lines of JSON, to be kept where they like, and begins another journal with
them. A line is a run (with the one that it was forked from), bytes that are kept beside records, or a record.
"""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import Any

from surefoot.core.state.summary import summarise
from surefoot.journal.codec import (
    Blob,
    EventRow,
    Tail,
    check_fork,
    check_id,
    decode_catalogue,
    digest_of,
    genesis,
    record_of_row,
    rows_of,
)
from surefoot.types.errors import JournalError, RunBusy, UsageError
from surefoot.types.events import Event, RunEnded
from surefoot.types.ports import NO_RECORDS, Durability, JournalStore, Recorded, RunSummary, Standing

Keep = Callable[[Sequence[str]], object]
"""Puts lines where they are safe, all or none and in this order, before it returns."""


class MemoryJournal:
    """A `JournalStore` that lasts as long as this object, or as what `keep` puts its lines into.

    `keep` is called before anything that its lines announce is done, by one thread at a time. `lines` are those that it
    was given so far, in their order; one process at a time may go on with them. Raises `JournalError` for a line that
    was altered or is missing. When `keep` fails nothing is recorded from then on: begin anew with what was kept.
    """

    def __init__(self, lines: Iterable[str] = (), keep: Keep | None = None) -> None:
        self._logs: dict[str, _Log] = {}
        self._blobs: dict[str, bytes] = {}
        self._making = Lock()
        self._keeper = None if keep is None else _Keeper(keep)
        for number, line in enumerate(lines):
            try:
                self._take(json.loads(line))
            except (AttributeError, KeyError, TypeError, ValueError, UsageError) as error:
                raise JournalError(f"line {number} of the journal cannot be read: {error}") from error

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
            log.driver = MemoryRun(log, self._blobs, self._keeper)
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

    async def read_recorded(self, run_id: str, since: int = 0) -> tuple[Sequence[Recorded], str]:
        """All records from `since` on; nothing is ever wrong with them."""
        return self._log(run_id).records(max(since, 0)), ""

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

    async def aclose(self) -> None:
        """Give up the runs that this event loop drives, and end its subscriptions."""
        here = asyncio.get_running_loop()
        for log in tuple(self._logs.values()):
            if (driver := log.driver) is not None and (driver.loop is here or not driver.loop.is_running()):
                await driver.release()
            for watcher in tuple(log.watchers):
                if watcher.loop is here:
                    watcher.is_over = True
                    watcher.wake()

    def _take(self, line: dict[str, Any]) -> None:  # Any: JSON, and what it lacks is said
        match line:
            case {"blob": str(digest), "data": str(data)}:
                if digest_of(whole := b64decode(data)) != digest:
                    raise ValueError("its bytes were altered")
                self._blobs[digest] = whole
            case {"run": str(run_id), "parent": parent, "fork": int(at), "began": float(began)}:
                log = self._new(run_id, None if parent is None else self._log(parent), at)
                log.summary = replace(log.summary, started_at=began)
            case _:
                row = (line["seq"], line["at"], line["form"], line["body"].encode(), bytes.fromhex(line["hash"]))
                log = self._log(line["run"])
                record, hash_ = record_of_row(
                    log.run_id, *log.tail, row, lambda digest, form: decode_catalogue(_blob(self._blobs, digest), form)
                )
                log.add([record], Tail(record.seq + 1, hash_), summarise(log.summary, record.event, record.at))
        if self._keeper is not None:
            self._keeper.known.add(line["blob"] if "blob" in line else line["run"])

    def _log(self, run_id: str) -> _Log:
        log = self._logs.get(run_id)
        if log is None:
            raise UsageError(f"unknown run {run_id!r} in this journal, which lasts only as long as its process")
        return log

    def _new(self, run_id: str, parent: _Log | None = None, at: int = 0) -> _Log:
        check_id(run_id)
        if run_id in self._logs:
            raise UsageError(f"there is a run {run_id} already; choose another id")
        log = self._logs[run_id] = _Log(run_id, parent, at)
        return log


class MemoryRun:
    """A `RunJournal` of one run in memory."""

    __slots__ = ("_blobs", "_is_released", "_keeper", "_log", "_put", "loop", "run_id")

    def __init__(self, log: _Log, blobs: dict[str, bytes], keeper: _Keeper | None) -> None:
        self.run_id = log.run_id
        self.loop = asyncio.get_running_loop()
        self._log = log
        self._blobs = blobs
        self._keeper = keeper
        self._put: list[Blob] = []
        self._is_released = False

    async def read(self, since: int = 0) -> Sequence[Event]:
        """Events from position `since` on, oldest first."""
        self._check()
        return [record.event for record in self._log.records(max(since, 0))]

    async def append(self, events: Sequence[Event], durability: Durability = "soon") -> None:  # noqa: ARG002 - of the port
        """Add events at the end, all or none, in this order. There is nothing safer than memory, whatever is asked.

        Raises `JournalError` for what no journal could hold, and when it could not be kept.
        """
        self._check()
        log = self._log
        rows, blobs, tail, summary = rows_of(0, events, time.time(), log.tail, log.summary)
        if self._keeper is not None and rows:
            self._keeper.put(log, [*self._put, *((digest, data) for digest, data, _, _ in blobs)], rows)
            self._put.clear()
        records = (Recorded(row[1], row[2], row[5].hex(), event) for row, event in zip(rows, events, strict=True))
        log.add(records, tail, summary)

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes under their SHA-256 (hex), which is returned."""
        self._check()
        digest = digest_of(data)
        self._blobs[digest] = data
        if self._keeper is not None:
            self._put.append((digest, data))
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


class _Keeper:
    """Who keeps lines, and the names of the runs and bytes that have theirs."""

    def __init__(self, keep: Keep) -> None:
        self.known: set[str] = set()
        self._keep = keep
        self._at_work = Lock()
        self._has_failed = False

    def put(self, log: _Log, blobs: Iterable[Blob], rows: Iterable[EventRow]) -> None:
        with self._at_work:
            if self._has_failed:
                raise JournalError("an earlier record could not be kept; begin a journal anew with the lines that were")
            parent = None if log.parent is None else log.parent.run_id
            run = {"run": log.run_id, "parent": parent, "fork": log.at, "began": log.summary.started_at}
            new = {log.run_id: run, **{name: {"blob": name, "data": b64encode(data).decode()} for name, data in blobs}}
            lines = [line for name, line in new.items() if name not in self.known] + [
                {"run": log.run_id, "seq": seq, "at": at, "form": form, "hash": hash_.hex(), "body": body.decode()}
                for _, seq, at, form, body, hash_ in rows
            ]
            self._has_failed = True
            try:
                self._keep([json.dumps(line) for line in lines])
            except Exception as error:
                raise JournalError(f"a record could not be kept: {error}") from error
            self._has_failed = False
            self.known |= new.keys()


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


class _Log:
    """One run: what it shares with its parent, and its own records from `at` on."""

    __slots__ = ("at", "driver", "own", "parent", "run_id", "summary", "tail", "watchers")

    def __init__(self, run_id: str, parent: _Log | None, at: int) -> None:
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

    def add(self, records: Iterable[Recorded], tail: Tail, summary: RunSummary) -> None:
        self.own += records
        self.tail = tail
        self.summary = replace(summary, run_id=self.run_id, started_at=self.summary.started_at)
        for watcher in tuple(self.watchers):
            watcher.wake()

    def records(self, since: int) -> list[Recorded]:
        """Those from `since` on, of all ancestors. A loop: forks may be deep."""
        pieces: list[list[Recorded]] = []
        log, stop = self, self.tail.seq
        while log is not None and stop > since:
            pieces.append(log.own[max(since - log.at, 0) : max(stop - log.at, 0)])
            log, stop = log.parent, min(stop, log.at)
        return list(chain.from_iterable(reversed(pieces)))

    def listed(self) -> RunSummary:
        is_left = self.driver is None and self.summary.status == "running"
        return replace(self.summary, status="interrupted") if is_left else self.summary


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
