"""One run in memory: its records, who drives it, who waits for what is added, and who keeps its lines."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from itertools import chain
from threading import Lock

from surefoot.core.state.summary import ready_at, status_of, summarise
from surefoot.journal import codec
from surefoot.types.archive import Origin, Row
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.events import VERSION, Event
from surefoot.types.ports import NO_RECORDS, Durability, Place, Recorded, RunSummary, Standing
from surefoot.types.words import Posted

Keep = Callable[[Sequence[str]], object]
"""Puts lines where they are safe, all or none and in this order, before it returns."""


class MemoryRun:
    """A `RunJournal` of one run in memory."""

    __slots__ = ("_blobs", "_is_released", "_keeper", "_log", "_put", "_wake", "loop", "run_id")

    def __init__(self, log: Log, blobs: dict[str, bytes], keeper: Keeper | None) -> None:
        self.run_id = log.run_id
        self.loop = asyncio.get_running_loop()
        self._log = log
        self._blobs = blobs
        self._keeper = keeper
        self._put: list[codec.Blob] = []
        self._is_released = False
        self._wake: Callable[[], None] | None = None

    @property
    def place(self) -> Place:
        return self._log.place

    async def read(self, since: int = 0) -> Sequence[Event]:
        self._check()
        return [record.event for record in self._log.records(max(since, 0))]

    async def append(
        self,
        events: Sequence[Event],
        durability: Durability = "soon",  # noqa: ARG002 - of the port
        *,
        heard: Sequence[Posted] = (),
        at: float | None = None,
        place: Place | None = None,
    ) -> Place:
        self._check()
        log, now = self._log, time.time() if at is None else at
        rows, blobs, tail, summary = codec.rows_of(0, events, now, place or log.place, log.summary)
        if place not in (None, log.place):
            codec.check_there(self.run_id, log.records(max(tail.seq - 1, 0))[:1], tail)
            return tail
        if self._keeper is not None and rows:
            self._keeper.put(log, [*self._put, *((digest, data) for digest, data, _, _ in blobs)], rows)
            self._put.clear()
        self._blobs |= {digest: data for digest, data, _, _ in blobs}
        records = (Recorded(row[1], row[2], row[5].hex(), event) for row, event in zip(rows, events, strict=True))
        log.add(records, tail, summary)
        if heard:
            of = {one.number: one for one in heard}
            for number, one in enumerate(log.inbox):  # in place: another thread may be adding to it
                log.inbox[number] = of.get(one.number, one)
        return tail

    async def words(self) -> Sequence[Posted]:
        return [one for one in self._log.inbox if not one.outcome]

    def listen(self, wake: Callable[[], None] | None) -> None:
        self._wake = wake
        if any(not one.outcome for one in self._log.inbox):
            self.wake()

    def wake(self) -> None:
        """Have whoever drives the run, perhaps on another loop, hear what was said."""
        if (wake := self._wake) is not None:
            with suppress(RuntimeError):  # a loop that was closed hears nothing
                self.loop.call_soon_threadsafe(lambda: wake() if self._wake is wake else None)

    async def put_blob(self, data: bytes) -> str:
        self._check()
        digest = codec.digest_of(data)
        self._blobs[digest] = data
        if self._keeper is not None:
            self._put.append((digest, data))
        return digest

    async def get_blob(self, digest: str) -> bytes:
        self._check()
        return blob_in(self._blobs, digest)

    async def release(self, standing: Standing = "", wake_at: float | None = None, *, why: str = "") -> None:
        if not self._is_released:
            log, self._wake = self._log, None
            log.summary = replace(
                log.summary, standing=standing or log.summary.standing, reason=why or log.summary.reason
            )
            self._is_released = True
            log.driver = None  # before it is looked for words: whoever says one makes the run ready from here on
            has_words = any(not one.outcome for one in log.inbox)
            if (at := ready_at(log.summary, wake_at, has_words=has_words)) is not None:
                log.ready_at = max(at, time.time())
            log.note()

    def _check(self) -> None:
        if self._is_released:
            raise UsageError(f"run {self.run_id} was released, or its agent or journal closed; resume it to go on")


class Keeper:
    """Who keeps lines, and the names of the runs and bytes that have theirs."""

    def __init__(self, keep: Keep) -> None:
        self.known: set[str] = set()
        self._keep = keep
        self._at_work = Lock()
        self._has_failed = False

    def put(self, log: Log, blobs: Iterable[codec.Blob], rows: Iterable[codec.EventRow]) -> None:
        with self._at_work:
            parent = None if log.parent is None else log.parent.run_id
            run = {"run": log.run_id, "parent": parent, "fork": log.at, "began": log.summary.started_at}
            new = {log.run_id: run, **{name: {"blob": name, "data": b64encode(data).decode()} for name, data in blobs}}
            lines = [line for name, line in new.items() if name not in self.known] + [
                {"run": log.run_id, "seq": seq, "at": at, "form": form, "hash": hash_.hex(), "body": body.decode()}
                for _, seq, at, form, body, hash_ in rows
            ]
            self._put(lines)
            self.known |= new.keys()

    def put_deleted(self, run_id: str) -> None:
        with self._at_work:
            if run_id in self.known:
                self._put([{"deleted": run_id}])
                self.known.discard(run_id)

    def put_side(self, name: str, data: bytes) -> None:
        with self._at_work:
            self._put([{"side": name, "data": b64encode(data).decode()}])

    def _put(self, lines: Iterable[Mapping[str, object]]) -> None:
        if self._has_failed:
            raise JournalError("an earlier record could not be kept; start a new journal from the lines that were")
        self._has_failed = True
        try:
            self._keep([json.dumps(line) for line in lines])
        except Exception as error:
            raise JournalError(f"a record could not be kept: {error}") from error
        self._has_failed = False


class Watcher:
    """Somebody who waits on their event loop for what may be added on another."""

    def __init__(self) -> None:
        self.loop, self.changed, self.is_over = asyncio.get_running_loop(), asyncio.Event(), False

    def wake(self) -> None:
        if asyncio.get_running_loop() is self.loop:
            self.changed.set()
        else:
            with suppress(RuntimeError):  # a loop that was closed waits for nothing
                self.loop.call_soon_threadsafe(self.changed.set)


class Changes:
    """How often anything has changed, and who follows that."""

    def __init__(self) -> None:
        self.count = 0
        self.watchers: set[Watcher] = set()

    def next(self) -> int:
        self.count += 1
        for watcher in tuple(self.watchers):
            watcher.wake()
        return self.count


class Log:
    """One run: what it shares with its parent, and its own records from `at` on."""

    def __init__(self, origin: Origin, number: int, parent: Log | None, changes: Changes) -> None:
        run_id, at = origin.run_id, origin.fork
        self.number, self.changes, self.change = number, changes, 0
        self.inbox: list[Posted] = []
        self.ready_at: float | None = None
        self.run_id = run_id
        self.parent = parent
        self.at = at
        self.own: list[Recorded] = []
        self.raw: dict[int, Row] = {}  # those that would be written in another way today
        self.driver: MemoryRun | None = None
        self.watchers: set[Watcher] = set()
        self.place, summary = Place(0, codec.genesis(run_id)), NO_RECORDS
        if parent is not None:
            shared = parent.records(0)[:at]
            self.place = Place(at, bytes.fromhex(shared[-1].hash))
            summary = reduce(lambda before, one: summarise(before, (one.event,), one.at), shared, summary)
            if at == parent.place.seq:
                summary = parent.summary
        self.origin = origin
        self.summary = replace(summary, run_id=run_id, started_at=origin.began, parent=origin.parent)

    def add(self, records: Iterable[Recorded], tail: Place, summary: RunSummary) -> None:
        self.own += records
        self.place = tail
        self.summary = replace(summary, run_id=self.run_id, started_at=self.summary.started_at)
        self.note()
        for watcher in tuple(self.watchers):
            watcher.wake()

    def note(self) -> None:
        """Count a change, and tell whoever follows the changes of all runs."""
        self.change = self.changes.next()

    def records(self, since: int) -> list[Recorded]:
        """Those from `since` on, of all ancestors. A loop: forks may be deep."""
        pieces: list[list[Recorded]] = []
        log, stop = self, self.place.seq
        while log is not None and stop > since:
            pieces.append(log.own[max(since - log.at, 0) : max(stop - log.at, 0)])
            log, stop = log.parent, min(stop, log.at)
        return list(chain.from_iterable(reversed(pieces)))

    def take(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """Add records as they were written. Raises `JournalCorrupt`, with nothing added."""
        records, place, summary = list[Recorded](), self.place, self.summary
        for row in rows:
            record, hash_ = codec.record_of_row(
                self.run_id, *place, row, lambda digest, form: codec.decode_catalogue(blob_in(blobs, digest), form)
            )
            if (row.form, row.body) != (VERSION, codec.encode(record.event)[0]):
                self.raw[row.seq] = row
            records.append(record)
            place, summary = Place(row.seq + 1, hash_), summarise(summary, (record.event,), record.at)
        if records:
            self.add(records, place, summary)

    def rows(self, since: int, limit: int | None) -> list[Row]:
        """Its own records as they were written."""
        own = self.own[max(since - self.at, 0) :][:limit]
        return [
            self.raw.get(one.seq) or Row(one.seq, one.at, VERSION, codec.encode(one.event)[0], bytes.fromhex(one.hash))
            for one in own
        ]

    def current_summary(self) -> RunSummary:
        status = status_of(self.summary, is_driven=self.driver is not None, is_ready=self.ready_at is not None)
        return replace(self.summary, status=status, change=self.change)


def blob_in(blobs: Mapping[str, bytes], digest: str) -> bytes:
    """The bytes of that digest. Raises `JournalError` when they are not there."""
    if digest not in blobs:
        raise JournalError(f"no bytes of digest {digest} in this journal")
    return blobs[digest]
