"""Runs in one SQLite file: many runs and processes write to it, each run has one driver at a time.

Nothing is read or written before the first use. One store belongs to one event loop at a time. Reads and commits are
done on the loop's own thread (tens of microseconds; a very long run takes longer to read); waiting for the disk is not.
While another process writes, a commit waits for it, at most five seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path

from surefoot.journal.codec import Blob, check_fork, digest_of, genesis
from surefoot.journal.heads import head_of
from surefoot.journal.raw import all_proven, check_blobs, check_origin, new_rows
from surefoot.journal.side import FileSide
from surefoot.journal.sqlite_file import owners_of, transaction, translate_errors
from surefoot.journal.sqlite_list import Lister
from surefoot.journal.sqlite_open import OpenFile, SqliteRun
from surefoot.journal.sqlite_write import EVERY, INSERT_BLOB, INSERT_EVENT, put_summary
from surefoot.types.archive import Origin, Row
from surefoot.types.errors import JournalError, JournalUnavailable, RunBusy, UsageError
from surefoot.types.ports import EVERY_RUN, Claimed, Place, Recorded, RunFilter, RunPage, RunSummary
from surefoot.types.words import Posted, Word

_POLL_S = 0.2
"""How often a subscriber asks whether another process has written."""

_PIECE = 200
"""Records that are read at once for a subscriber: what takes about 20 ms."""


_ROWS = "SELECT seq, at, version, body, hash FROM event WHERE run=? AND seq>=? ORDER BY seq LIMIT ?"
_HASH = "SELECT hash FROM event WHERE run=? AND seq=?"
_BODIES = "SELECT rowid, hash, body FROM event WHERE rowid>? ORDER BY rowid LIMIT 1000"
_OPEN = "SELECT number FROM run LEFT JOIN summary ON summary.run=number WHERE owner<>'' OR status='running'"
_CANDIDATES = f"SELECT digest FROM blob WHERE run NOT IN ({_OPEN})"  # noqa: S608  # words of ours
_REMOVE = "DELETE FROM blob WHERE digest=? RETURNING length(data)"
_START = (0, b"")
_MENTIONS = re.compile(rb"[0-9a-f]{64}").findall


class SqliteJournal:
    """A `JournalStore` in one SQLite file, which is created on first use; its folder must exist.

    With `read_only` nothing can be driven, and a journal is also read where nothing may be written. What other
    processes write is seen within 0.2 s.
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
        return self._path

    @property
    def side(self) -> FileSide:
        return FileSide(self._path, owners_of(self._path))

    async def open(self, run_id: str, *, create: bool = False, fence: int | None = None) -> SqliteRun:
        file = self._file_to_write()
        if run_id in file.driven:
            raise RunBusy(f"run {run_id} is being driven by this process already; wait until it stands still")
        if file.writer.broken:
            raise file.writer.broken
        if file.writer.freed:  # only of what nobody drives any more something may be queued that counts here
            file.writer.flush()
        number, began = file.create(run_id) if create else (file.take(run_id, fence), None)
        if began is not None:  # what was just made has nothing to be read
            summary = RunSummary(run_id, began)
            head, tail = None, Place(0, genesis(run_id))
        else:
            try:
                head, tail, summary = file.reader.standing(run_id)
            except JournalError as error:  # where it is damaged, a word would have it claimed again, for ever
                file.free(number, hears=isinstance(error, JournalUnavailable))
                file.writer.flush()
                raise
        file.writer.failures.pop(number, None)  # those of an earlier driver; this one starts from what is in the file
        run = file.driven[run_id] = SqliteRun(file, number, tail, summary, head.synced if head else 0)
        run.may_have_words = began is None
        return run

    async def fork(self, parent: str, at: int, run_id: str) -> None:
        file = self._flushed(writes=True)
        row = file.reader.find(parent)
        check_fork(parent, at, file.reader.tail(parent).seq)
        file.fork(run_id, row.number, at)

    async def runs(self, limit: int = 50) -> Sequence[RunSummary]:
        file = self._flushed()
        return file.reader.newest(limit, file.is_alive)

    async def beginning(self, prefix: str, limit: int = 50) -> Sequence[str]:
        return self._flushed().reader.beginning(prefix, limit)

    async def read_recorded(
        self, run_id: str, since: int = 0, limit: int | None = None
    ) -> tuple[Sequence[Recorded], str]:
        file = self._flushed()
        records, wrong = file.reader.load(run_id, max(since, 0), limit)
        return records, "" if wrong is None else str(wrong)

    async def subscribe(self, run_id: str, since: int = 0) -> AsyncIterator[Recorded]:
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
        file = self._flushed(writes=True)
        place = file.reader.end(run_id)
        file.inbox.keep(digest := digest_of(data), data, file.reader.find(run_id).number, place.seq)
        return digest

    async def get_blob(self, digest: str) -> bytes:
        return self._flushed().reader.blob(digest)

    async def _changed(self, file: OpenFile, changed: asyncio.Event, version: int) -> None:
        """Return once something was written here or elsewhere, or this store is closed."""
        while self._opened is file and not changed.is_set() and file.data_version() == version:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S):
                    await changed.wait()

    async def say(self, run_id: str, word: Word, *, key: str = "") -> Posted:
        file = self._flushed(writes=True)
        posted = file.inbox.say(file.reader.find(run_id).number, word, key)
        if (run := file.driven.get(run_id)) is not None:
            run.wake()
        return posted

    async def posted(self, run_id: str, number: int) -> Posted:
        file = self._flushed()
        return file.inbox.posted(run_id, file.reader.find(run_id).number, number)

    async def list(self, wanted: RunFilter = EVERY_RUN, after: str = "", limit: int = 50) -> RunPage:
        return await self._lister().page(wanted, after, limit)

    async def count(self, wanted: RunFilter = EVERY_RUN, most: int = 10_000) -> int:
        return await self._lister().count(wanted, most)

    async def summary(self, run_id: str) -> RunSummary:
        file = self._flushed()
        file.reader.find(run_id)
        return file.reader.listed_run(run_id, file.is_alive)

    async def changes(self, since: int | None = None) -> AsyncIterator[RunSummary]:
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
        self._flushed(writes=True).delete(run_id, end)

    async def origin(self, run_id: str) -> Origin:
        return self._origin(self._flushed(), run_id)

    def _origin(self, file: OpenFile, run_id: str) -> Origin:
        row, parent = file.reader.find(run_id), ""
        if row.parent is not None:
            with translate_errors(file.path):
                (parent,) = file.db.execute("SELECT run_id FROM run WHERE number=?", (row.parent,)).fetchone() or ("",)
        return Origin(row.run_id, row.started_at, parent, row.at)

    async def rows(self, run_id: str, since: int = 0, limit: int | None = None) -> Sequence[Row]:
        file = self._flushed()
        row, end = file.reader.find(run_id), file.reader.tail(run_id).seq
        since = max(since, row.at)
        if since >= end:
            return []
        previous = genesis(run_id)
        if since:
            before, wrong = file.reader.load(run_id, since - 1, 1)
            if wrong is not None:
                raise wrong
            previous = bytes.fromhex(before[0].hash)
        with translate_errors(file.path):
            found = file.db.execute(_ROWS, (row.number, since, -1 if limit is None else limit))
            return list(all_proven(run_id, Place(since, previous), found))

    async def adopt(self, origin: Origin, rows: Sequence[Row] = (), blobs: Sequence[Blob] = ()) -> None:
        file, run_id = self._flushed(writes=True), origin.run_id
        db, reader = file.db, file.reader
        check_blobs(run_id, blobs)
        with translate_errors(file.path), transaction(db):
            row = reader.look_up(run_id)
            if row is None:
                parent = reader.find(origin.parent).number if origin.parent else None
                if origin.parent:
                    check_fork(origin.parent, origin.fork, reader.tail(origin.parent).seq)
                number, _ = file.insert(run_id, parent, origin.fork, "", origin.began)
            else:
                number = row.number
                if row.owner and file.is_alive(row.owner):
                    raise RunBusy(f"run {run_id} is being driven here; wait until it stands still")
                check_origin(origin, self._origin(file, run_id))
            head, place, _ = reader.standing(run_id)
            new = new_rows(
                run_id, place, rows, lambda seq: next((hash_ for (hash_,) in db.execute(_HASH, (number, seq))), None)
            )
            db.executemany(INSERT_BLOB, [(digest, data, number, place.seq) for digest, data in blobs])
            db.executemany(INSERT_EVENT, [(number, *one) for one in new])
            if new:
                place = Place(new[-1].seq + 1, new[-1].hash)
                put_summary(db, number, reader.summary(run_id))
                db.execute("UPDATE run SET events=? WHERE number=?", (place.seq, number))
        file.heads.put(number, head_of(run_id, *place, head.synced if head else 0))

    async def sweep(self) -> int:
        """Remove the bytes that no record mentions, not even in a text; how many there were.

        The records are looked through while others write. Those that are written meanwhile have higher numbers than the
        last one that was seen, as long as that one is there; where it is not, all are looked through again. What a run
        that has not ended has put there stays, since its record may still come.
        """
        file = self._flushed(writes=True)
        while True:
            with translate_errors(file.path):
                unused = {str(digest) for (digest,) in file.db.execute(_CANDIDATES)}
                seen = _look(file, unused, _START)
                while unused and (next_ := _look(file, unused, seen)) != seen:
                    seen = next_
                    await asyncio.sleep(0)
                with transaction(file.db):
                    if seen in (_START, *file.db.execute("SELECT rowid, hash FROM event WHERE rowid=?", seen[:1])):
                        while unused and (next_ := _look(file, unused, seen)) != seen:
                            seen = next_
                        removed = (file.db.execute(_REMOVE, (digest,)).fetchone() for digest in unused)
                        return sum(size for (size,) in filter(None, removed))  # another sweep may have been first

    async def claim(self, agents: Collection[str], limit: int, lease_s: float) -> Sequence[Claimed]:
        file = self._flushed(writes=True)
        driven = [run.number for run in file.driven.values()]
        return file.inbox.claim(file.token, agents, limit, lease_s, file.is_alive, driven=driven)

    async def renew(self, lease_s: float) -> Collection[str]:
        file = self._file_to_write()
        return file.inbox.renew(file.token, {run.number: run_id for run_id, run in file.driven.items()}, lease_s)

    async def aclose(self) -> None:
        """Write what is queued, give up what is driven, and close, unless another running loop drives some of it."""
        file = self._opened
        if file is not None and not (file.driven and file.is_foreign()):
            self._opened = None
            await file.aclose()

    def _file_to_write(self) -> OpenFile:
        if self._read_only:
            raise UsageError(f"the journal {self._path} was opened to be read only; open it without read_only")
        return self._file()

    def _flushed(self, *, writes: bool = False) -> OpenFile:
        file = self._file_to_write() if writes else self._file()
        file.writer.flush()
        return file

    def _lister(self) -> Lister:
        file = self._flushed()
        return Lister(file.db, file.path, file.reader, file.is_alive, writes=not self._read_only)

    def _file(self) -> OpenFile:
        loop = asyncio.get_running_loop()
        file = self._opened
        if file is None:
            path = Path(os.path.realpath(self._path))  # a link's log lies beside the file it leads to
            file = self._opened = OpenFile(path, loop, read_only=self._read_only)
        if file.pid != os.getpid():
            raise UsageError("this journal was opened before the process was forked; make a new one in the child")
        if file.loop is not loop:
            if file.is_foreign():
                raise UsageError(
                    "this journal is in use on another event loop (`run_sync` has its own): make one for each loop"
                )
            file.rebind(loop)
        return file


def _look(file: OpenFile, unused: set[str], seen: tuple[int, bytes]) -> tuple[int, bytes]:
    """Take out what some records behind one that was seen mention; the number and the hash of the last of these."""
    for number, hash_, body in file.db.execute(_BODIES, seen[:1]):
        unused.difference_update(one.decode() for one in _MENTIONS(body))
        seen = number, hash_
    return seen
