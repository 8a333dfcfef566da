"""Group commit: what many runs append goes into the journal file in one transaction; and what makes it durable.

A transaction costs about as much as ten rows, so rows are collected, and one flush writes those of all runs: when one
of them has to be written, and `LAG_S` after the first at the latest. A run that waits for its rows has them written at
the event loop's next turn, or at once when it is the only run there is. Nothing else awaits between the begin and the
end of a transaction, so tasks cannot get into each other's.

What could not be written is lost, so its run must not go on as if it had been: the failure is kept, and every later
call for that run raises it.

The theory. In WAL mode with `synchronous=NORMAL` a commit hands its pages to the operating system, at the end of the
file `-wal`, and does not wait for the disk: it survives the death of the process, not the loss of power. From there
a page moves on only by a checkpoint, which first syncs the `-wal` file, then copies its pages into the journal file
and syncs that; the log starts over only when all of it has been copied. So at every moment a committed page is in the
`-wal` file or, synced, in the journal file, and one sync of `-wal` after the commit makes it durable. That sync is a
matter of milliseconds, so it is done off the event loop and shared by all who wait for it.

Opening and closing `-wal` ourselves is harmless: SQLite's locks are on the journal file and on `-shm`, never on the
log. (On POSIX, closing any descriptor of a locked file gives up the locks of the whole process.)

Checkpoints are made off the event loop, too, one at a time. A passive one disturbs nobody, but under a steady load the
log has always grown by the time it ends and would never start over; when it has grown far too long, one that holds
writers up for a moment follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path

from surefoot.journal.codec import BlobRow, EventRow, encode_summary, storable
from surefoot.journal.heads import HeadRow, Heads, sync_descriptor
from surefoot.journal.sqlite_file import FILE_ERRORS, PAGE_BYTES, file_error
from surefoot.types.errors import JournalError, LeaseLost
from surefoot.types.ports import RunSummary
from surefoot.types.words import Posted

FAR_TOO_LONG_PAGES = 65_536
"""64 MiB of log, where a page has 1 KiB: from here on a checkpoint may hold writers up."""


class SharedSync:
    """`sync`, run on a thread and shared: whoever comes while one is under way waits for the next one.

    The one under way does not count for them, since it may have begun before their write.
    """

    def __init__(self, sync: Callable[[], None], threads: Executor) -> None:
        self._sync = sync
        self._threads = threads
        self._latest: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Return when a sync that began after this call has ended. Raises what `sync` raises."""
        loop = asyncio.get_running_loop()
        before = self._latest
        if before is not None and not before.done() and before.get_loop() is loop:
            await asyncio.wait((before,))
        if self._latest is before or self._latest is None:
            self._latest = loop.run_in_executor(self._threads, self._sync)
        await asyncio.shield(self._latest)


def sync_file(path: Path) -> None:
    """Have all that was written to the file on the disk itself when this returns. Blocks. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Have the names of new files in a folder on the disk. Where folders cannot be synced there is no need to."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checkpoint(path: Path, far_too_long_pages: int = FAR_TOO_LONG_PAGES) -> None:
    """Move what can be moved from the log into the journal file. Blocks.

    What cannot be moved now (a reader needs it, the disk is full) stays in the log, where it is as safe: no error.
    """
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=NORMAL")
        _, pages, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages > far_too_long_pages:
            db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()


FreeRow = tuple[int, str, float | None, bool, float]
"""The number of a run that is driven no more, its owner, when it may be claimed, if at once for a word, and now."""

HeardRow = tuple[str, str, int, int]
"""What came of a word, why, the record that it became, and the number of the word."""


Note = tuple[int, str, HeadRow, RunSummary | None]
"""How a run stands once its rows are written: its number, its owner, without whom this does not count, what goes beside
the file, and its summary when that is due."""


EVERY = 0
"""In place of a run's number: the changes of all runs are watched."""

LAG_S = 0.002
"""How long rows that nobody waits for are collected: a crash in that time costs a reply or a read, never an effect."""

CHECKPOINT_PAGES = 8_000
"""About 8 MiB of log."""

INSERT_EVENT = "INSERT INTO event (run, seq, at, version, body, hash) VALUES (?, ?, ?, ?, ?, ?)"
_PUT_SUMMARY = """
INSERT OR REPLACE INTO summary (run, body, status, standing, agent, waits, change)
VALUES (?, ?, ?, ?, ?, ?, (SELECT coalesce(max(change), 0) + 1 FROM summary))"""
_IS_OWN = "SELECT 1 FROM run WHERE number=? AND owner=?"
_PUT_LABEL = "INSERT OR IGNORE INTO label (label, run) VALUES (?, ?)"
_HEARD = "UPDATE word SET outcome=?, detail=?, seq=? WHERE number=?"
INSERT_BLOB = "INSERT OR IGNORE INTO blob (digest, data, run, seq) VALUES (?, ?, ?, ?)"
_body_of, _data_of = itemgetter(4), itemgetter(1)
_FREE_RUN = """
WITH freed (run, token, ready_at, hears, now) AS (VALUES (?, ?, ?, ?, ?))
UPDATE run SET owner='', lease_until=NULL,
events=(SELECT coalesce(max(seq)+1, run.at) FROM event WHERE event.run=run.number),
ready_at=CASE WHEN hears AND EXISTS (SELECT 1 FROM word WHERE word.run=run.number AND outcome='') THEN now
    ELSE max(freed.ready_at, now) END FROM freed WHERE number=freed.run AND owner=token"""


def put_summary(db: sqlite3.Connection, number: int, summary: RunSummary) -> None:
    """Keep the summary of a run, with what lists are made by."""
    waits = summary.questions > 0 or summary.standing in ("approval", "in_doubt")
    told = summary.status, summary.standing, summary.agent, waits
    db.execute(_PUT_SUMMARY, (number, encode_summary(summary), *told))
    for name, value in summary.labels.items():
        db.execute(_PUT_LABEL, (storable(f"{name}={value}"), number))


def _check_owners(db: sqlite3.Connection, notes: Collection[Note]) -> None:
    """Raise `IntegrityError` where a run is not its driver's any more."""
    for note in notes:
        if db.execute(_IS_OWN, note[:2]).fetchone() is None:
            raise sqlite3.IntegrityError


class Writer:
    """Writes to one open journal file for all runs that a store drives.

    `freed` are the owners who drive a run no more, which does nothing to one that is another's by the next flush.
    `failures` holds, by run number, why records could not be written, and `broken` why none can be; `watchers` are set
    when new records of their run number are there.
    """

    def __init__(self, db: sqlite3.Connection, path: Path, heads: Heads) -> None:
        self.failures: dict[int, JournalError] = {}
        self.broken: JournalError | None = None
        self.watchers: defaultdict[int, set[asyncio.Event]] = defaultdict(set)
        self._db = db
        self._path = path
        self._heads = heads
        self._notes: dict[int, Callable[[], Note]] = {}
        self._events: list[EventRow] = []
        self._blobs: dict[str, BlobRow] = {}
        self.freed: list[FreeRow] = []
        self._heard: defaultdict[int, list[HeardRow]] = defaultdict(list)
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._flush_at = 0.0  # when what is queued is to be written at the latest; 0: nothing is
        self._due_on: asyncio.AbstractEventLoop | None = None
        self._awaited_on: asyncio.AbstractEventLoop | None = None
        # for the log, the heads and checkpoints: tools may fill the loop's own
        self._threads = ThreadPoolExecutor(3, "surefoot-journal")
        self._sync = SharedSync(self._sync_log, self._threads)
        self._is_folder_synced = False
        self._checkpoint: Future[None] | None = None
        self._pages = 0

    def add(
        self,
        events: Sequence[EventRow],
        blobs: Sequence[BlobRow],
        number: int,
        note: Callable[[], Note],
        heard: Sequence[Posted] = (),
    ) -> None:
        """Queue rows of a run. They are written by the next flush, in this order; bytes of one digest once.

        `note` is asked at the flush how the run stands with these rows. `heard` are words that count with them.
        """
        self._events += events
        if heard:
            self._heard[number] += [(one.outcome, storable(one.detail), one.seq, one.number) for one in heard]
        self._notes[number] = note
        for row in blobs:
            self._blobs.setdefault(row[0], row)

    def unwatch(self, number: int, changed: asyncio.Event) -> None:
        """Take back an event from `watchers`."""
        self.watchers[number].discard(changed)
        if not self.watchers[number]:
            del self.watchers[number]

    def soon(self, *, is_timer: bool = False) -> None:
        """See to it that what is queued is flushed before long, with what else is queued by then.

        One timer does for all: it comes back here, and goes on as long as anything is queued.
        """
        loop = asyncio.get_running_loop()
        if is_timer:
            self._due_on = None
            if not self._flush_at or self._flush_at <= loop.time():
                self.flush()
                return
        self._flush_at = self._flush_at or loop.time() + LAG_S
        if self._due_on is not loop:  # also when a loop that has been closed still owes a flush
            self._due_on = loop
            loop.call_at(self._flush_at, partial(self.soon, is_timer=True))

    def flushed(self, number: int, *, at_once: bool) -> asyncio.Future[None]:
        """Done when what is queued now is written; fails where something of that run is lost.

        What others queue in this turn joins in, unless it is written `at_once`.
        """
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiters.append((number, waiter))
        if at_once:
            self.flush()
        elif self._awaited_on is not loop:
            self._awaited_on = loop
            loop.call_soon(self.flush)
        return waiter

    async def synced(self) -> None:
        """Return when all that is written now would survive the loss of power."""
        try:
            await self._sync.wait()
        except OSError as error:  # the disk may have dropped any page of the log, so no run can be trusted to be kept
            self.broken = JournalError(f"journal {self._path}: cannot sync to disk: {error}; check the disk")
            raise self.broken from error

    def flush(self) -> None:
        """Write all that is queued in one transaction. Raises nothing: see `failures`."""
        events, blobs, freed, waiters = self._events, self._blobs, self.freed, self._waiters
        lost = self.failures  # what such a run would tell of is not in the file
        notes = [note() for number, note in self._notes.items() if number not in lost]
        self._notes.clear()
        heard = self._heard
        if heard:
            self._heard = defaultdict(list)
        self._events, self._blobs, self.freed, self._waiters = [], {}, [], []
        self._awaited_on, self._flush_at = None, 0.0
        if events or blobs or freed or notes or heard:
            try:
                words = [*chain.from_iterable(heard.values())] if heard else ()
                self._commit(events, blobs.values(), freed, notes, words)
            except sqlite3.IntegrityError:
                self._commit_each(events, blobs.values(), freed, notes, heard)
            except FILE_ERRORS as error:
                self._fail((*events, *freed, *notes), error)
        for number, waiter in waiters:
            if waiter.done():
                continue
            if failure := lost.get(number) or self.broken:
                waiter.set_exception(failure)
            else:
                waiter.set_result(None)

    async def aclose(self) -> None:
        """Write what is queued, shorten the log, and end the threads. The connection stays open."""
        self.flush()
        if self._checkpoint is not None:  # never two at once
            await asyncio.wrap_future(self._checkpoint)
        await asyncio.get_running_loop().run_in_executor(self._threads, checkpoint, self._path)
        self._threads.shutdown()
        self._heads.close()

    def _commit(
        self,
        events: Sequence[EventRow],
        blobs: Collection[BlobRow],
        freed: Sequence[FreeRow],
        notes: Collection[Note] = (),
        heard: Collection[HeardRow] = (),
    ) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            _check_owners(db, notes)
            if blobs:
                db.executemany(INSERT_BLOB, blobs)
            if events:
                db.executemany(INSERT_EVENT, events)
            for number, _, _, summary in notes:
                if summary is not None:
                    put_summary(db, number, summary)
            if heard:
                db.executemany(_HEARD, heard)
            if freed:
                db.executemany(_FREE_RUN, freed)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # an error of the disk may have ended it already
                db.execute("ROLLBACK")
            raise
        try:  # after the commit: never more than is there
            for number, _, head, _ in notes:
                self._heads.put(number, head)
        except OSError as error:
            told = f"cannot write {self._heads.path}: {error}; fix that, then resume"
            self.broken = JournalError(f"journal {self._path}: {told}")
        if self.watchers:
            changes = {row[0] for row in events}
            if any(summary is not None for *_, summary in notes):
                changes.add(EVERY)
            for number in changes:
                for changed in self.watchers.get(number, ()):
                    changed.set()
        size = sum(map(len, map(_body_of, events))) + sum(map(len, map(_data_of, blobs)))
        self._pages += 2 + len(events) + size // PAGE_BYTES  # by measured commits
        if self._pages > CHECKPOINT_PAGES and (self._checkpoint is None or self._checkpoint.done()):
            self._pages = 0
            self._checkpoint = self._threads.submit(checkpoint, self._path)

    def _commit_each(
        self,
        events: Sequence[EventRow],
        blobs: Collection[BlobRow],
        freed: Sequence[FreeRow],
        notes: Sequence[Note],
        heard: Mapping[int, Sequence[HeardRow]],
    ) -> None:
        """One run is another's by now, or its records are there already. The other runs must not suffer for it."""
        of_run: defaultdict[int, list[EventRow]] = defaultdict(list)
        for row in events:
            of_run[row[0]].append(row)
        for note in notes:
            number = note[0]
            rows, words = of_run[number], heard.get(number, ())
            try:
                self._commit(rows, blobs, (), [note], words)
            except sqlite3.IntegrityError:
                if rows or words:  # who only lets it go has lost nothing
                    self.failures[number] = LeaseLost(
                        f"journal {self._path}: run number {number} has gone on without this process: somebody else "
                        "drives this run; leave it to them, or open it again"
                    )
            except FILE_ERRORS as error:
                self._fail([note], error)
        try:
            self._commit((), blobs, freed)  # also those of runs whose records failed
        except FILE_ERRORS as error:
            self._fail(freed, error)

    def _fail(self, rows: Sequence[EventRow | FreeRow | Note], error: Exception) -> None:
        failure = file_error(self._path, error)
        for row in rows:
            self.failures.setdefault(row[0], failure)

    def _sync_log(self) -> None:
        """The log and the heads side by side: one does not have to be there before the other."""
        heads = self._threads.submit(self._heads.sync)
        sync_file(self._path.with_name(self._path.name + "-wal"))
        if not self._is_folder_synced:
            sync_folder(self._path.parent)
            self._is_folder_synced = True
        heads.result()
