"""A journal file while it is open: who drives which of its runs, and how a run is appended to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from surefoot.core.state.summary import is_outdated, ready_at
from surefoot.journal.codec import BlobRow, RunRow, check_id, check_there, digest_of, genesis, rows_of
from surefoot.journal.heads import Heads, head_of, heads_of
from surefoot.journal.raw import check_end
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
from surefoot.journal.sqlite_inbox import Inbox
from surefoot.journal.sqlite_read import Reader
from surefoot.journal.sqlite_write import Note, Writer, put_summary
from surefoot.types.errors import JournalError, RunBusy, RunExists, UsageError, overtaken
from surefoot.types.events import Event
from surefoot.types.ports import NO_RECORDS, Durability, Place, RunSummary, Standing
from surefoot.types.words import Posted

_DELETE = (
    # the count of changes goes on, as of a run that there cannot be
    "INSERT OR REPLACE INTO summary (run, body, change) SELECT 0, x'', max(change) FROM summary WHERE ?",
    "DELETE FROM event WHERE run=?",
    "DELETE FROM summary WHERE run=?",
    "DELETE FROM label WHERE run=?",
    "DELETE FROM word WHERE run=?",
    "DELETE FROM run WHERE number=?",
)

_LISTEN_S = 0.2
"""How often it is looked whether another process has said something to a run that is driven here."""


class OpenFile:
    """The file of a store while it is open, and who drives which of its runs.

    The right to drive is taken in a transaction of its own: of two who take it at once, the second sees the first.
    """

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop, *, read_only: bool) -> None:
        self.loop = loop
        self.pid = os.getpid()
        self.path = path
        self._owner: Owner | None = None
        self.driven: dict[str, SqliteRun] = {}
        self._listening: asyncio.TimerHandle | None = None
        self._heard_at = 0
        if not read_only and not path.exists():
            heads_of(path).unlink(missing_ok=True)  # those of another journal, which is not there any more
        self.db, self._may_write = connect_for(path, read_only=read_only)
        with contextlib.ExitStack() as failed, translate_errors(path):
            failed.callback(self.db.close)
            self.heads = Heads(path, may_write=not read_only)
            self.reader = Reader(self.db, path, self.heads)
            if not read_only and form_of(self.db) != FORMAT:
                upgrade_tables(self.db, path, self.reader.note_heads, self._note_summaries)
            failed.pop_all()
        self.writer = Writer(self.db, path, self.heads)
        self.inbox = Inbox(self.db, path)

    def rebind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Go on on another event loop; the one before is not running any more."""
        self.loop = loop
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None

    def is_foreign(self) -> bool:
        """Whether another event loop uses it, which is still running."""
        return self.loop is not asyncio.get_running_loop() and self.loop.is_running()

    def create(self, run_id: str) -> tuple[int, float | None]:
        """Become the driver of a new run, or of one that has no records and no living driver.

        Gives its number, and when it was made if that is now.
        """
        token = self.token
        with translate_errors(self.path), transaction(self.db):
            row = self.reader.look_up(run_id)
            if row is None:
                return self.insert(run_id, None, 0, token)
            if not self.reader.is_empty(row):
                raise self._exists_error(run_id)
            return self._hand_over(row, token), None

    def fork(self, run_id: str, parent: int, at: int) -> None:
        """Put a run that nobody drives yet into the list."""
        with translate_errors(self.path), transaction(self.db):
            if self.reader.look_up(run_id) is not None:
                raise self._exists_error(run_id)
            number, _ = self.insert(run_id, parent, at, "")
        self.reader.note_head(number, run_id)

    def take(self, run_id: str, fence: int | None) -> int:
        """Become the driver of a run that nobody living drives, or that was claimed with that `fence`; its number."""
        token = self.token
        with translate_errors(self.path), transaction(self.db):
            return self._hand_over(self.reader.find(run_id), token, fence)

    def free(self, number: int, ready_at: float | None = None, *, hears: bool = True) -> None:
        """Queue that this store drives a run no more; from `ready_at` on a worker may, where that is given.

        One that `hears` is ready for what was said to it.
        """
        self.writer.freed.append((number, self.token, ready_at, hears, time.time()))

    def delete(self, run_id: str, end: str) -> None:
        """Take a run out for good, as a store promises it. Bytes that others may share stay."""
        with translate_errors(self.path), transaction(self.db):
            row = self.reader.find(run_id)
            if row.owner and self.is_alive(row.owner):
                raise RunBusy(f"run {run_id} is being driven; cancel it, or wait until it stands still")
            if self.db.execute("SELECT 1 FROM run WHERE parent=?", (row.number,)).fetchone():
                raise UsageError(f"run {run_id} cannot be deleted: another run shares its records")
            check_end(run_id, self.reader.end(run_id).hash, end)
            for statement in _DELETE:
                self.db.execute(statement, (row.number,))
            if self.db.execute("SELECT 1 FROM sqlite_master WHERE name='search'").fetchone():
                self.db.execute("DELETE FROM search WHERE rowid=?", (row.number,))
            self.heads.put(row.number, head_of(run_id, 0, genesis(run_id), 0))

    def is_alive(self, token: str) -> bool:
        may_live = self._may_write or has_log(self.path)  # whoever drives a run has written to the log
        return may_live and is_alive(owners_of(self.path), token)

    def data_version(self) -> int:
        """A number that changes when another connection has written."""
        with translate_errors(self.path):
            return self.db.execute("PRAGMA data_version").fetchone()[0]

    def listen(self) -> None:
        """Look again and again whether another process has said something to a run that is driven here."""
        if self._listening is None:
            self._listening = asyncio.get_running_loop().call_later(_LISTEN_S, self._look)

    def _look(self) -> None:
        self._listening = None
        if not self.driven:
            return
        if (version := self.data_version()) != self._heard_at:
            self._heard_at = version
            for number in self.inbox.has_unheard([run.number for run in self.driven.values()]):
                for run in self.driven.values():
                    if run.number == number:
                        run.wake()
        self.listen()

    def _note_summaries(self) -> None:
        for number, run_id in self.db.execute("SELECT number, run_id FROM run").fetchall():
            with contextlib.suppress(JournalError):  # what is damaged has none, and says so in a list
                put_summary(self.db, number, self.reader.summary(run_id))

    async def aclose(self) -> None:
        """Write what is queued, let others drive the runs, and close. Raises `JournalError` when something was lost."""
        driven = tuple(self.driven.values())
        if self._listening is not None:
            self._listening.cancel()
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

    def insert(
        self, run_id: str, parent: int | None, at: int, owner: str, began: float | None = None
    ) -> tuple[int, float]:
        """Put a run into the list, inside of a transaction; its number, and when it began: now if nothing is said."""
        check_id(run_id)
        self.reader.check_not_lost(run_id)
        (last,) = self.db.execute("SELECT coalesce(max(number), 0) FROM run").fetchone()
        number, now = self.heads.claim(run_id, last), time.time() if began is None else began
        self.db.execute(
            "INSERT INTO run (number, run_id, started_at, parent, at, owner) VALUES (?, ?, ?, ?, ?, ?)",
            (number, run_id, now, parent, at, owner),
        )
        return number, now

    def _hand_over(self, row: RunRow, token: str, fence: int | None = None) -> int:
        is_anothers = fence is None and row.owner not in ("", token)
        if is_anothers and self.is_alive(row.owner) and not self.inbox.is_lease_over(row.number):
            raise RunBusy(f"run {row.run_id} is being driven by another process; wait for it or end it")
        if not self.inbox.take(row.number, token, fence):
            raise overtaken(row.run_id)
        return row.number

    def _exists_error(self, run_id: str) -> RunExists:
        return RunExists(f"journal {self.path} already has a run {run_id}; resume it, or choose another id")

    @property
    def token(self) -> str:
        """What a run that is driven here names as its owner."""
        if self._owner is None:
            self._owner = Owner(owners_of(self.path))
        return self._owner.token


class SqliteRun:
    """A `RunJournal` of one run in a SQLite file."""

    def __init__(self, file: OpenFile, number: int, place: Place, summary: RunSummary, synced: int) -> None:
        self.run_id = summary.run_id
        self._head = head_of(self.run_id, 0, b"", 0)
        self._token = file.token
        self._summary, self._kept = summary, NO_RECORDS
        self._synced = synced
        self._file = file
        self._writer = file.writer
        self.number = number
        self.place = place
        self._blobs: dict[str, BlobRow] = {}
        self._is_released = False
        self._wake: Callable[[], None] | None = None
        self.may_have_words = True

    async def read(self, since: int = 0) -> Sequence[Event]:
        self._writer.flush()
        self._check()
        records, wrong = self._file.reader.load(self.run_id, max(since, 0))
        if wrong is not None:
            raise wrong
        return [record.event for record in records]

    async def append(
        self,
        events: Sequence[Event],
        durability: Durability = "soon",
        *,
        heard: Sequence[Posted] = (),
        at: float | None = None,
        place: Place | None = None,
    ) -> Place:
        self._check()
        writer, number, now = self._writer, self.number, time.time() if at is None else at
        rows, blobs, tail, summary = rows_of(number, events, now, place or self.place, self._summary)
        if place is None or place == self.place:
            if self._blobs:
                blobs = [*self._blobs.values(), *blobs]
                self._blobs.clear()
            self.place, self._summary = tail, summary
            if durability == "synced":
                self._synced = tail.seq
            writer.add(rows, blobs, number, self._note, heard)
        else:
            writer.flush()
            check_there(self.run_id, self._file.reader.load(self.run_id, max(tail.seq - 1, 0), 1)[0], tail)
        if durability == "soon":
            writer.soon()
            return tail
        await writer.flushed(number, at_once=len(self._file.driven) <= 1)
        if durability == "synced":
            await writer.synced()
        return tail

    async def put_blob(self, data: bytes) -> str:
        self._check()
        digest = digest_of(data)
        self._blobs[digest] = (digest, data, self.number, self.place.seq)
        return digest

    async def get_blob(self, digest: str) -> bytes:
        if digest in self._blobs:
            return self._blobs[digest][1]
        self._writer.flush()
        self._check()
        return self._file.reader.blob(digest)

    async def words(self) -> Sequence[Posted]:
        self._writer.flush()
        self._check()
        return self._file.inbox.unheard(self.number)

    def listen(self, wake: Callable[[], None] | None) -> None:
        self._wake = wake
        if wake is not None:
            self._file.listen()
            if self.may_have_words and self._file.inbox.has_unheard((self.number,)):
                wake()

    def wake(self) -> None:
        """Have whoever drives the run hear what was said."""
        self.may_have_words = True
        if self._wake is not None:
            self._wake()

    async def release(self, standing: Standing = "", wake_at: float | None = None, *, why: str = "") -> None:
        if not self._is_released:
            if standing:
                self._summary = replace(self._summary, standing=standing, reason=why)
            self.give_up(wake_at)
            await self._writer.flushed(self.number, at_once=len(self._file.driven) <= 1)

    def give_up(self, wake_at: float | None = None) -> None:
        """Queue what is left to write, with the right to drive as the last thing."""
        self._is_released, self._wake = True, None
        self._writer.add((), tuple(self._blobs.values()), self.number, self._note)
        hears = self._summary.standing != "set_aside"
        self._file.free(self.number, ready_at(self._summary, wake_at, has_words=False), hears=hears)
        self._file.driven.pop(self.run_id, None)

    @property
    def failure(self) -> JournalError | None:
        """Why something that was to be appended is lost, if it is."""
        return self._writer.failures.get(self.number) or self._writer.broken

    def _note(self) -> Note:
        """How the run stands. Its summary is kept when a list would show another one, and when the run is released.

        One that has ended is shown then as it was before.
        """
        now, (key, _, _, _, name, boot), (seq, hash_) = self._summary, self._head, self.place
        is_left = self._is_released and (now is not self._kept or now.status == "running")
        if is_due := is_left or is_outdated(self._kept, now):
            self._kept = now
        return self.number, self._token, (key, seq, hash_, self._synced, name, boot), now if is_due else None

    def _check(self) -> None:
        if self._is_released:
            raise UsageError(f"run {self.run_id} was released, or its agent or journal closed; resume it to go on")
        if failure := self._writer.failures.get(self.number) or self._writer.broken:
            raise failure
