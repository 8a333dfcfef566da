"""Runs in one SQLite file: many runs and processes write to it, each run has one driver at a time.

Nothing is read or written before the first use. One store belongs to one event loop at a time. Reads and commits are
done on the loop's own thread (tens of microseconds; a very long run takes longer to read); waiting for the disk is not.
While another process writes, a commit waits for it, at most five seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

from surefoot.journal.codec import BlobRow, RunRow, Tail, check_fork, check_id, digest_of, genesis, rows_of
from surefoot.journal.heads import Head, Heads, head_of, heads_of
from surefoot.journal.sqlite_file import (
    FORMAT,
    Owner,
    connect_for,
    form_of,
    has_log,
    is_alive,
    owners_of,
    transaction,
    translate_errors,
    upgrade_tables,
)
from surefoot.journal.sqlite_read import Reader
from surefoot.journal.sqlite_write import SUMMARY_LAG, Note, Writer
from surefoot.types.errors import JournalError, RunBusy, UsageError
from surefoot.types.events import Event
from surefoot.types.ports import NO_RECORDS, Durability, Recorded, RunSummary, Standing

_POLL_S = 0.2
"""How often a subscriber asks whether another process has written."""


class SqliteJournal:
    """A `JournalStore` in one SQLite file, which is made at the first use; its folder must exist.

    With `read_only` nothing can be driven, and a journal is also read where nothing may be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        if path == ":memory:":  # would be a file of that name
            raise UsageError("a SqliteJournal is a file; use a MemoryJournal for runs that nobody keeps")
        self._path = Path(path)
        self._read_only = read_only
        self._opened: _File | None = None

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._path

    async def open(self, run_id: str, *, create: bool = False) -> SqliteRun:
        """Take the right to drive a run. Raises `RunBusy` while another has it, `UsageError` for an unknown run.

        With `create` the run must be new, or have no records and nobody who drives it: whoever made it died before the
        first.
        """
        file = self._file_to_write()
        if run_id in file.driven:
            raise RunBusy(f"run {run_id} is being driven by this process already; wait until it stands still")
        if file.writer.broken:
            raise file.writer.broken
        file.writer.flush()
        number, began = file.create(run_id) if create else (file.take(run_id), None)
        if began is not None:  # what was just made has nothing to be read
            summary = replace(NO_RECORDS, run_id=run_id, started_at=began)
            head, tail = None, Tail(0, genesis(run_id))
        else:
            try:
                head, tail, summary = file.reader.standing(run_id)
            except JournalError:
                file.free(number)
                file.writer.flush()
                raise
        file.writer.failures.pop(number, None)  # those of an earlier driver; this one starts from what is in the file
        run = file.driven[run_id] = SqliteRun(file, number, tail, summary, head.synced if head else 0)
        return run

    async def fork(self, parent: str, at: int, run_id: str) -> None:
        """Make a run that shares the records of `parent` before `at`, at least one. Copies no events."""
        file = self._file_to_write()
        file.writer.flush()
        row = file.reader.find(parent)
        check_fork(parent, at, file.reader.tail(parent).seq)
        file.fork(run_id, row.number, at)

    async def runs(self, limit: int = 50) -> Sequence[RunSummary]:
        """The newest runs first, but those without records.

        `status` is the ending's kind, or "running", "interrupted", "damaged".
        """
        file = self._file()
        file.writer.flush()
        return file.reader.listed(limit, file.is_alive)

    async def beginning(self, prefix: str, limit: int = 50) -> Sequence[str]:
        """The ids that begin so, of runs with records, in their order."""
        file = self._file()
        file.writer.flush()
        return file.reader.beginning(prefix, limit)

    async def read_recorded(self, run_id: str, since: int = 0) -> tuple[Sequence[Recorded], str]:
        """All that can be read, with places and hashes, and what is wrong with the rest ("" when nothing is)."""
        file = self._file()
        file.writer.flush()
        records, wrong = file.reader.load(run_id, max(since, 0))
        return records, "" if wrong is None else str(wrong)

    async def subscribe(self, run_id: str, since: int = 0) -> AsyncIterator[Recorded]:
        """Records from `since` on, then each new one once it is written, until the run ends; also what others write.

        What other processes write is seen within 0.2 s. Ends, too, when this store is closed.
        """
        file, since = self._file(), max(since, 0)
        number, changed = file.reader.find(run_id).number, asyncio.Event()
        file.writer.watchers[number].add(changed)
        try:
            while self._opened is file:
                changed.clear()
                version = file.data_version()
                records, wrong = file.reader.load(run_id, since)
                since += len(records)
                for record in records:
                    yield record
                if wrong is not None:
                    raise wrong
                if file.reader.is_over(run_id, since):
                    return
                while self._opened is file and not changed.is_set() and file.data_version() == version:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_POLL_S):
                            await changed.wait()
        finally:
            file.writer.unwatch(number, changed)

    async def get_blob(self, digest: str) -> bytes:
        """The bytes of that digest. Raises `JournalError` when they are not there, `JournalCorrupt` when altered."""
        file = self._file()
        file.writer.flush()
        return file.reader.blob(digest)

    async def aclose(self) -> None:
        """Write what is queued, give up the runs that are driven, and close; a later use opens the file again.

        While another event loop that is running drives runs of it, nothing is done.
        """
        file = self._opened
        if file is not None and not (file.driven and file.is_foreign()):
            self._opened = None
            await file.aclose()

    def _file_to_write(self) -> _File:
        if self._read_only:
            raise UsageError(f"the journal {self._path} was opened to be read only; open it without read_only")
        return self._file()

    def _file(self) -> _File:
        loop = asyncio.get_running_loop()
        file = self._opened
        if file is None:
            path = self._path.resolve()  # a link's log lies beside the file it leads to
            file = self._opened = _File(path, loop, read_only=self._read_only)
        if file.pid != os.getpid():
            raise UsageError("this journal was opened before the process was forked; make a new one in the child")
        if file.loop is not loop:
            if file.is_foreign():
                raise UsageError(
                    "this journal is in use on another event loop (`run_sync` has its own): make one for each loop"
                )
            file.loop = loop
        return file


class SqliteRun:
    """A `RunJournal` of one run in a SQLite file."""

    def __init__(self, file: _File, number: int, tail: Tail, summary: RunSummary, synced: int) -> None:
        self.run_id = summary.run_id
        head = head_of(self.run_id, 0, b"", 0)
        self._mark = head.key, head.name
        self._summary = self._kept = summary
        self._synced = synced
        self._file = file
        self._number = number
        self._tail = tail
        self._blobs: dict[str, BlobRow] = {}
        self._is_released = False

    async def read(self, since: int = 0) -> Sequence[Event]:
        """Events from position `since` on, oldest first. Raises `JournalCorrupt`, never gives a part."""
        self._file.writer.flush()
        self._check()
        records, wrong = self._file.reader.load(self.run_id, max(since, 0))
        if wrong is not None:
            raise wrong
        return [record.event for record in records]

    async def append(self, events: Sequence[Event], durability: Durability = "soon") -> None:
        """Add events at the end, all or none, in this order. Returns when they are as safe as asked.

        Raises `JournalError` when these, or any before them, could not be written.
        """
        self._check()
        writer, number = self._file.writer, self._number
        rows, blobs, tail, summary = rows_of(number, events, time.time(), self._tail, self._summary)
        if blobs:
            blobs = [blob for blob in blobs if not self._file.reader.has_blob(blob[0])]
        if self._blobs:
            blobs = [*self._blobs.values(), *blobs]
            self._blobs.clear()
        self._tail, self._summary = tail, summary
        if durability == "synced":
            self._synced = tail.seq
        writer.add(rows, blobs, number, self._note)
        if durability == "soon":
            writer.soon()
            return
        await self._written()
        if durability == "synced":
            await writer.synced()

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes under their SHA-256 (hex), which is returned. Written with the next append."""
        self._check()
        digest = digest_of(data)
        self._blobs[digest] = (digest, data, self._number, self._tail.seq)
        return digest

    async def get_blob(self, digest: str) -> bytes:
        """The bytes of that digest. Raises `JournalError` when they are not there, `JournalCorrupt` when altered."""
        if digest in self._blobs:
            return self._blobs[digest][1]
        self._file.writer.flush()
        self._check()
        return self._file.reader.blob(digest)

    async def release(self, standing: Standing = "") -> None:
        """Write all that is queued and let others drive this run. Raises `JournalError` when something was lost."""
        if not self._is_released:
            if standing:
                self._summary = replace(self._summary, standing=standing)
            self.give_up()
            await self._written()

    def give_up(self) -> None:
        """Queue what is left to write, with the right to drive as the last thing."""
        self._is_released = True
        self._file.writer.add((), tuple(self._blobs.values()), self._number, self._note)
        self._file.free(self._number)
        self._file.driven.pop(self.run_id, None)

    @property
    def failure(self) -> JournalError | None:
        """Why something that was to be appended is lost, if it is."""
        writer = self._file.writer
        return writer.failures.get(self._number) or writer.broken

    def _note(self) -> Note:
        """How the run stands. Its summary is kept when a list would show another one, and when the run is released."""
        (key, name), now = self._mark, self._summary
        was = self._kept
        is_due = self._is_released or now.events > was.events + SUMMARY_LAG or now.models is not was.models
        is_due = is_due or (now.status, now.standing) != (was.status, was.standing)
        if is_due:
            self._kept = now
        return Note(self._number, Head(key, *self._tail, self._synced, name), now if is_due else None)

    async def _written(self) -> None:
        writer = self._file.writer
        if len(self._file.driven) > 1:
            await writer.flushed()  # the others' rows join in
        else:
            writer.flush()
        if (writer.failures or writer.broken) and (failure := self.failure):
            raise failure

    def _check(self) -> None:
        if self._is_released:
            raise UsageError(f"run {self.run_id} was released; open it again to go on")
        writer = self._file.writer
        if (writer.failures or writer.broken) and (failure := self.failure):
            raise failure


class _File:
    """The file of a store while it is open, and who drives which of its runs.

    The right to drive is taken in a transaction of its own: of two who take it at once, the second sees the first.
    """

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop, *, read_only: bool) -> None:
        self.loop = loop
        self.pid = os.getpid()
        self._path = path
        self._owner: Owner | None = None
        self.driven: dict[str, SqliteRun] = {}
        if not read_only and not path.exists():
            heads_of(path).unlink(missing_ok=True)  # those of another journal, which is not there any more
        self.db, self._may_write = connect_for(path, read_only=read_only)
        with contextlib.ExitStack() as failed, translate_errors(path):
            failed.callback(self.db.close)
            self.heads = Heads(path, may_write=not read_only)
            self.reader = Reader(self.db, path, self.heads)
            if not read_only and form_of(self.db) != FORMAT:
                upgrade_tables(self.db, self.reader.note_heads)
            failed.pop_all()
        self.writer = Writer(self.db, path, self.heads)

    def is_foreign(self) -> bool:
        """Whether another event loop uses it, which is still running."""
        return self.loop is not asyncio.get_running_loop() and self.loop.is_running()

    def create(self, run_id: str) -> tuple[int, float | None]:
        """Become the driver of a new run, or of one that has no records and no living driver.

        Gives its number, and when it was made if that is now.
        """
        token = self._token()
        with translate_errors(self._path), transaction(self.db):
            row = self.reader.look_up(run_id)
            if row is None:
                return self._insert(run_id, None, 0, token)
            if not self.reader.is_empty(row):
                raise self._taken(run_id)
            return self._hand_over(row, token), None

    def fork(self, run_id: str, parent: int, at: int) -> None:
        """Put a run that nobody drives yet into the list."""
        with translate_errors(self._path), transaction(self.db):
            if self.reader.look_up(run_id) is not None:
                raise self._taken(run_id)
            number, _ = self._insert(run_id, parent, at, "")
        self.reader.note_head(number, run_id)

    def take(self, run_id: str) -> int:
        """Become the driver of a run that nobody living drives; its number."""
        token = self._token()
        with translate_errors(self._path), transaction(self.db):
            return self._hand_over(self.reader.find(run_id), token)

    def free(self, number: int) -> None:
        """Queue that this store drives a run no more."""
        self.writer.freed.append((number, self._token()))

    def is_alive(self, token: str) -> bool:
        """Whether the store of that token still exists."""
        may_live = self._may_write or has_log(self._path)  # whoever drives a run has written to the log
        return may_live and is_alive(owners_of(self._path), token)

    def data_version(self) -> int:
        """A number that changes when another connection has written."""
        with translate_errors(self._path):
            return self.db.execute("PRAGMA data_version").fetchone()[0]

    async def aclose(self) -> None:
        """Write what is queued, let others drive the runs, and close. Raises `JournalError` when something was lost."""
        driven = tuple(self.driven.values())
        try:
            for run in driven:
                run.give_up()
            await self.writer.aclose()
        finally:
            self.db.close()
            if self._owner is not None:
                self._owner.give_up()
        if failure := next((run.failure for run in driven if run.failure), None):
            raise failure

    def _insert(self, run_id: str, parent: int | None, at: int, owner: str) -> tuple[int, float]:
        check_id(run_id)
        self.reader.check_not_lost(run_id)
        (last,) = self.db.execute("SELECT coalesce(max(number), 0) FROM run").fetchone()
        number, now = self.heads.claim(run_id, last), time.time()
        self.db.execute(
            "INSERT INTO run (number, run_id, started_at, parent, at, owner) VALUES (?, ?, ?, ?, ?, ?)",
            (number, run_id, now, parent, at, owner),
        )
        return number, now

    def _hand_over(self, row: RunRow, token: str) -> int:
        if row.owner not in ("", token) and self.is_alive(row.owner):
            raise RunBusy(f"run {row.run_id} is being driven by another process; wait for it or end it")
        self.db.execute("UPDATE run SET owner=? WHERE number=?", (token, row.number))
        return row.number

    def _taken(self, run_id: str) -> UsageError:
        return UsageError(f"there is a run {run_id} in the journal {self._path} already; choose another id")

    def _token(self) -> str:
        if self._owner is None:
            self._owner = Owner(owners_of(self._path))
        return self._owner.token
