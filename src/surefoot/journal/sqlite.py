"""Runs in one SQLite file: many runs and processes write to it, each run has one driver at a time.

Nothing is read or written before the first use. One store belongs to one event loop at a time. Reads and commits are
done on the loop's own thread (tens of microseconds; a very long run takes longer to read); waiting for the disk is not.
While another process writes, a commit waits for it, at most five seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from surefoot.journal.codec import Blob, check_fork, digest_of, genesis
from surefoot.journal.side import FileSide
from surefoot.journal.sqlite_archive import adopt, origin, rows, sweep
from surefoot.journal.sqlite_file import owners_of
from surefoot.journal.sqlite_list import Lister
from surefoot.journal.sqlite_open import OpenFile, SqliteRun
from surefoot.journal.sqlite_write import EVERY
from surefoot.types.archive import Origin, Row
from surefoot.types.errors import JournalError, RunBusy, UsageError
from surefoot.types.ports import EVERY_RUN, NO_RECORDS, Claimed, Place, Recorded, RunFilter, RunPage, RunSummary
from surefoot.types.words import Posted, Word

_POLL_S = 0.2
"""How often a subscriber asks whether another process has written."""

_PIECE = 200
"""Records that are read at once for a subscriber: what takes about 20 ms."""


class SqliteJournal:
    """A `JournalStore` in one SQLite file, which is made at the first use; its folder must exist.

    With `read_only` nothing can be driven, and a journal is also read where nothing may be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        if path == ":memory:":  # would be a file of that name
            raise UsageError("a SqliteJournal is a file; use a MemoryJournal for runs that nobody keeps")
        self._path = Path(path)
        if not self._path.name:
            raise UsageError(f"{str(path)!r} names no file for the journal; give the path of one")
        self._read_only = read_only
        self._opened: OpenFile | None = None

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._path

    @property
    def side(self) -> FileSide:
        """What is kept beside the runs, in files beside this one."""
        return FileSide(self._path, owners_of(self._path))

    async def open(self, run_id: str, *, create: bool = False, fence: int | None = None) -> SqliteRun:
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
        number, began = file.create(run_id) if create else (file.take(run_id, fence), None)
        if began is not None:  # what was just made has nothing to be read
            summary = replace(NO_RECORDS, run_id=run_id, started_at=began)
            head, tail = None, Place(0, genesis(run_id))
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
        file = self._flushed()
        return file.reader.listed(limit, file.is_alive)

    async def beginning(self, prefix: str, limit: int = 50) -> Sequence[str]:
        """The ids that begin so, of runs with records, in their order."""
        file = self._flushed()
        return file.reader.beginning(prefix, limit)

    async def read_recorded(
        self, run_id: str, since: int = 0, limit: int | None = None
    ) -> tuple[Sequence[Recorded], str]:
        """All that can be read, with places and hashes, and what is wrong with the rest ("" when nothing is)."""
        file = self._flushed()
        records, wrong = file.reader.load(run_id, max(since, 0), limit)
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
                records, wrong = file.reader.load(run_id, since, _PIECE)
                since += len(records)
                for record in records:
                    yield record
                if wrong is not None:
                    raise wrong
                if len(records) == _PIECE:
                    await asyncio.sleep(0)
                    continue
                if file.reader.is_over(run_id, since):
                    return
                await self._changed(file, changed, version)
        finally:
            file.writer.unwatch(number, changed)

    async def put_blob(self, run_id: str, data: bytes) -> str:
        """Keep bytes for a run, without the right to drive it; written when it returns."""
        file = self._file_to_write()
        file.writer.flush()
        place = file.reader.end(run_id)
        file.inbox.keep(digest := digest_of(data), data, file.reader.find(run_id).number, place.seq)
        return digest

    async def get_blob(self, digest: str) -> bytes:
        """The bytes of that digest. Raises `JournalError` when they are not there, `JournalCorrupt` when altered."""
        file = self._flushed()
        return file.reader.blob(digest)

    async def _changed(self, file: OpenFile, changed: asyncio.Event, version: int) -> None:
        """Return once something was written here or elsewhere, or this store is closed."""
        while self._opened is file and not changed.is_set() and file.data_version() == version:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S):
                    await changed.wait()

    async def say(self, run_id: str, word: Word, *, key: str = "") -> Posted:
        """Put a word into the inbox of a run and wake whoever drives it. See `JournalStore`."""
        file = self._file_to_write()
        file.writer.flush()
        posted = file.inbox.say(file.reader.find(run_id).number, word, key)
        if (run := file.driven.get(run_id)) is not None:
            run.wake()
        return posted

    async def posted(self, run_id: str, number: int) -> Posted:
        """A word of a run, with what came of it. Raises `UsageError` where there is none of that number."""
        file = self._flushed()
        return file.inbox.posted(run_id, file.reader.find(run_id).number, number)

    async def list(self, wanted: RunFilter = EVERY_RUN, after: str = "", limit: int = 50) -> RunPage:
        """A page of the runs that are wanted, newest first; `after` is `RunPage.next`. Reads no journal."""
        return await self._lister().page(wanted, after, limit)

    async def count(self, wanted: RunFilter = EVERY_RUN, most: int = 10_000) -> int:
        """How many runs are wanted; counting ends at `most`."""
        return await self._lister().count(wanted, most)

    async def summary(self, run_id: str) -> RunSummary:
        """A run in one line, as of its last record. Raises `UsageError` for an unknown run."""
        file = self._flushed()
        file.reader.find(run_id)
        return file.reader.listed_run(run_id, file.is_alive)

    async def changes(self, since: int | None = None) -> AsyncIterator[RunSummary]:
        """Summaries that were kept after the change `since`, then each as it changes, until this store is closed."""
        file, changed = self._file(), asyncio.Event()
        since = self._lister().last_change() if since is None else since
        file.writer.watchers[EVERY].add(changed)
        try:
            while self._opened is file:
                changed.clear()
                version = file.data_version()
                summaries = self._lister().changed(since)
                for summary in summaries:
                    since = max(since, summary.change)
                    yield summary
                if not summaries:
                    await self._changed(file, changed, version)
        finally:
            file.writer.unwatch(EVERY, changed)

    async def delete(self, run_id: str, *, end: str = "") -> None:
        """Take a run out for good; bytes that others may share stay. See `JournalStore`."""
        file = self._file_to_write()
        file.writer.flush()
        file.delete(run_id, end)

    async def origin(self, run_id: str) -> Origin:
        """Where a run comes from. Raises `UsageError` for an unknown run."""
        return origin(self._flushed(), run_id)

    async def rows(self, run_id: str, since: int = 0, limit: int | None = None) -> Sequence[Row]:
        """Its own records from `since` on, proven, at most `limit`. See `Archive`."""
        return rows(self._flushed(), run_id, since, limit)

    async def adopt(self, origin: Origin, rows: Sequence[Row] = (), blobs: Sequence[Blob] = ()) -> None:
        """Keep records of another journal as they are, all or none. See `Archive`."""
        file = self._file_to_write()
        file.writer.flush()
        adopt(file, origin, rows, blobs)

    async def sweep(self) -> int:
        """Remove the bytes that no record refers to, while others write; how many there were."""
        file = self._file_to_write()
        file.writer.flush()
        return await sweep(file)

    async def claim(self, agents: Collection[str], limit: int, lease_s: float) -> Sequence[Claimed]:
        """Take the right to drive up to so many runs of these agents that are ready, or whose driver is gone."""
        file = self._file_to_write()
        file.writer.flush()
        return file.inbox.claim(file.token, agents, limit, lease_s, file.is_alive)

    async def renew(self, lease_s: float) -> Collection[str]:
        """Extend the leases of all runs that this store has claimed; gives those that others have taken."""
        file = self._file_to_write()
        return file.inbox.renew(file.token, {run.number: run_id for run_id, run in file.driven.items()}, lease_s)

    async def aclose(self) -> None:
        """Write what is queued, give up the runs that are driven, and close; a later use opens the file again.

        While another event loop that is running drives runs of it, nothing is done.
        """
        file = self._opened
        if file is not None and not (file.driven and file.is_foreign()):
            self._opened = None
            await file.aclose()

    def _file_to_write(self) -> OpenFile:
        if self._read_only:
            raise UsageError(f"the journal {self._path} was opened to be read only; open it without read_only")
        return self._file()

    def _flushed(self) -> OpenFile:
        """The file, with all written that was queued."""
        file = self._file()
        file.writer.flush()
        return file

    def _lister(self) -> Lister:
        file = self._flushed()
        return Lister(file.db, file.path, file.reader, file.is_alive, writes=not self._read_only)

    def _file(self) -> OpenFile:
        loop = asyncio.get_running_loop()
        file = self._opened
        if file is None:
            path = self._path.resolve()  # a link's log lies beside the file it leads to
            file = self._opened = OpenFile(path, loop, read_only=self._read_only)
        if file.pid != os.getpid():
            raise UsageError("this journal was opened before the process was forked; make a new one in the child")
        if file.loop is not loop:
            if file.is_foreign():
                raise UsageError(
                    "this journal is in use on another event loop (`run_sync` has its own): make one for each loop"
                )
            file.moved(loop)
        return file
