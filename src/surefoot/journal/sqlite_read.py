"""Records out of a journal file, each proven by the chain before it is believed.

Reading stops at the first record that is missing,
altered or unreadable; what precedes it is given. Every loop here is bounded by that rule or by falling run numbers,
whatever a damaged file says.
"""

from __future__ import annotations

import shlex
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from surefoot.core.state.summary import status_of, summarise
from surefoot.journal.codec import (
    RunRow,
    Segment,
    decode_catalogue,
    digest_of,
    genesis,
    lineage,
    record_of_row,
    summary_of,
    type_of,
)
from surefoot.journal.heads import DamagedHead, Head, Heads, head_of, heads_of, key_of
from surefoot.journal.sqlite_file import FILE_ERRORS, code_of, file_error, form_of, translate_errors
from surefoot.types.errors import JournalCorrupt, JournalError, RunUnknown, UsageError
from surefoot.types.ports import NO_RECORDS, Place, Recorded, RunSummary
from surefoot.types.tools import Catalogue

ACCEPT = "surefoot journal accept"
"""The command of the remedy for lost records, by which such a fault is known."""

_KEPT_CATALOGUES = 8
"""Runs that are read one after the other mostly share their tools."""

_HAS_RECORDS = "(events<>0 OR at<>0 OR EXISTS (SELECT 1 FROM event WHERE event.run=run.number))"
_LISTED = f"SELECT run_id FROM run WHERE {_HAS_RECORDS} ORDER BY number DESC LIMIT ?"  # noqa: S608 - words of ours
_NUMBERED = f"SELECT number, run_id FROM run WHERE number<? AND {_HAS_RECORDS} ORDER BY number DESC"  # noqa: S608 - as above
_BEGINNING = f"SELECT run_id FROM run WHERE run_id>=? AND run_id<? AND {_HAS_RECORDS} ORDER BY run_id LIMIT ?"  # noqa: S608 - as above
_LAST = "SELECT seq, hash, body FROM event WHERE run=? ORDER BY seq DESC LIMIT 1"
_ROWS = "SELECT seq, at, version, body, hash FROM event WHERE run=? AND seq>=? ORDER BY seq"
_PLACE = "SELECT ready_at, change FROM run LEFT JOIN summary ON summary.run=run.number WHERE number=?"
_AFTER_ALL = "\U0010ffff"

_DAMAGE = (0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG)
"""Result codes that speak of the file's content; the others speak of its surroundings."""


class _Found(NamedTuple):
    """A run as it is listed, whose records it consists of, oldest ancestor first, and its head or the fault in that.

    It is found once for all that is asked of a run at one time.
    """

    row: RunRow
    segments: list[Segment]
    head: Head | JournalCorrupt | None


class Reader:
    """Reads one open journal file. Raises `JournalError` and its kinds, `UsageError` for a run that is not there."""

    def __init__(self, db: sqlite3.Connection, path: Path, heads: Heads | None = None) -> None:
        self._db = db
        self._path = path
        self._heads = heads
        self._lost: dict[bytes, tuple[int, Head]] | None = None
        self._catalogues: dict[tuple[str, int], Catalogue] = {}

    def find(self, run_id: str) -> RunRow:
        """The run of that id. Raises `JournalCorrupt` for one that was here and is gone."""
        row = self.look_up(run_id)
        if row is None:
            if run_id.isprintable():
                self.check_not_lost(run_id)
            command = f"surefoot runs --journal {shlex.quote(str(self._path))}"
            raise RunUnknown(f"unknown run {run_id!r} in this journal; `{command}` lists them")
        return row

    def look_up(self, run_id: str) -> RunRow | None:
        if not run_id.isprintable():  # such ids are never given, and SQLite cannot take them all
            return None
        return self._run("run_id", run_id)

    def check_not_lost(self, run_id: str) -> None:
        """Raise `JournalCorrupt` when a run of that id was here and is gone with all its records."""
        if (gone := self.lost_runs().get(key_of(run_id))) is not None:
            raise JournalCorrupt(run_id, 0, f"all of its {gone[1].seq} records are missing; {self._remedy(run_id)}")

    def lost_run(self, run_id: str) -> tuple[int, Head]:
        gone = self.lost_runs().get(key_of(run_id))
        if gone is None:
            raise UsageError(f"unknown run {run_id!r} in the journal {self._path}, and none of that id is lost")
        return gone

    def lost_runs(self) -> dict[bytes, tuple[int, Head]]:
        """The runs that have a head and are not in the list of runs, by their keys; looked for once."""
        if self._lost is None:
            self._lost = {}
            if self._heads is not None and len(self._heads) > cast("int", self._one("SELECT count(*) FROM run")[0]):
                there = {number for (number,) in self._db.execute("SELECT number FROM run")}
                gone = ((number, head) for number, head in self.heads().items() if number not in there)
                self._lost = {head.key: (number, head) for number, head in gone if head.least}
        return self._lost

    def is_empty(self, row: RunRow) -> bool:
        return row.at == row.events == 0 and self._one(_LAST, row.number) is None

    def heads(self) -> dict[int, Head]:
        """All heads that can be read, by the numbers of their runs."""
        with translate_errors(self._path):
            found = self._heads.all() if self._heads is not None else ()
            return {number: head for number, head in found if head is not None}

    def tail(self, run_id: str) -> Place:
        """Where the run ends now. Raises `JournalCorrupt` when that is too early."""
        return self._tail(self._load(run_id))

    def end(self, run_id: str) -> Place:
        """Where the records end that are there."""
        return self._end(self._load(run_id).segments)

    def head(self, run_id: str) -> Head | None:
        """What is known from outside of the file of the run's length, once the file has been held against it.

        Raises `JournalCorrupt` where they do not fit, or where a run with records has none.
        """
        return self._proven_head(self._load(run_id))

    def standing(self, run_id: str) -> tuple[Head | None, Place, RunSummary]:
        """All that whoever drives a run goes on from. Raises as `head` and `tail` do."""
        found = self._load(run_id)
        head, tail = self._proven_head(found), self._tail(found)
        return head, tail, self._summary(found, tail)

    def note_head(self, number: int, run_id: str) -> None:
        """Write down how long the run is now, as the one who may write to it."""
        tail = self.tail(run_id)
        if self._heads is not None:
            self._heads.put(number, head_of(run_id, tail.seq, tail.hash, tail.seq))

    def note_heads(self) -> None:
        """Write down how long all runs are now, and have that on the disk."""
        for number, run_id in self._db.execute("SELECT number, run_id FROM run").fetchall():
            with suppress(JournalError):  # one that is damaged already says so by itself, and has no head
                self.note_head(number, run_id)
        if self._heads is not None:
            self._heads.sync()

    def load(self, run_id: str, since: int, limit: int | None = None) -> tuple[list[Recorded], JournalError | None]:
        """The records from `since` on that can be read, and what is wrong with the next one; at most `limit`."""
        records: list[Recorded] = []
        found = self._load(run_id)
        try:
            records.extend(islice(self._proven(found.segments, since), limit))
            self._check_head(found)
        except JournalError as error:
            cause = error.__cause__
            if isinstance(cause, FILE_ERRORS) and not isinstance(error, JournalCorrupt) and code_of(cause) in _DAMAGE:
                return records, JournalCorrupt(run_id, max(since, 0) + len(records), str(error))
            return records, error
        return records, None

    def is_over(self, run_id: str, since: int) -> bool:
        """Whether the run has ended before position `since`, and nobody took it up again."""
        match self._one(_LAST, self.find(run_id).number):
            case (int(seq), _, bytes(body)):
                return seq < since and type_of(body) == "RunEnded"
            case _:
                return False

    def blob(self, digest: str) -> bytes:
        altered = f"the bytes of digest {digest} were altered"
        match self._one("SELECT data, run, seq FROM blob WHERE digest=?", digest):
            case None:
                raise JournalError(f"journal {self._path}: no bytes of digest {digest}")
            case (bytes(data), int(number), int(seq)):
                if digest_of(data) == digest:
                    return data
                if run := self._run("number", number):
                    raise JournalCorrupt(run.run_id, seq, altered)
            case _:
                pass
        raise JournalError(f"journal {self._path}: {altered}; what they were cannot be known")

    def beginning(self, prefix: str, limit: int) -> list[str]:
        with translate_errors(self._path):
            return [str(one) for (one,) in self._db.execute(_BEGINNING, (prefix, prefix + _AFTER_ALL, limit))]

    def numbered(self, before: int | None) -> list[tuple[int, str]]:
        """The runs with records by their numbers, newest first, before the one of a number."""
        with translate_errors(self._path):
            return self._db.execute(_NUMBERED, (sys.maxsize if before is None else before,)).fetchall()

    def newest(self, limit: int, is_alive: Callable[[str], bool]) -> list[RunSummary]:
        """The newest runs first, but those that never had records; "damaged" is one that is gone or cannot be read."""
        with translate_errors(self._path):
            ids = [str(run_id) for (run_id,) in self._db.execute(_LISTED, (limit,))]
        ids = [head.name for _, head in reversed(self.lost_runs().values())] + ids
        alive = cache(is_alive)
        return [self.listed_run(run_id, alive) for run_id in ids[:limit]]

    def summary(self, run_id: str) -> RunSummary:
        """A run in one line, as of its last record. Raises `JournalError`."""
        found = self._load(run_id)
        return self._summary(found, self._tail(found))

    def _summary(self, found: _Found, tail: Place) -> RunSummary:
        """What is kept of a run, brought up to date by the records that came since."""
        row, segments = found.row, found.segments
        is_kept = tail.seq > 0 and form_of(self._db) > 1
        kept = self._one("SELECT body FROM summary WHERE run=?", row.number) if is_kept else None
        summary = summary_of(kept[0]) if kept else None
        if summary is None or summary.events > tail.seq:
            summary = NO_RECORDS
        if summary.events < tail.seq:
            for record in self._proven(segments, summary.events):
                summary = summarise(summary, (record.event,), record.at)
        parent = segments[-2].run_id if row.parent is not None else ""
        return replace(summary, run_id=row.run_id, started_at=row.started_at, parent=parent)

    def listed_run(self, run_id: str, is_alive: Callable[[str], bool]) -> RunSummary:
        """A run as a list has it: by its ending, by who drives it, or by what it waits for."""
        try:
            found = self._load(run_id)
            summary, row = self._summary(found, self._tail(found)), found.row
        except (JournalError, UsageError):  # this run's trouble must not hide the others
            return replace(NO_RECORDS, run_id=run_id, status="damaged")
        is_driven = row.owner != "" and summary.status == "running" and is_alive(row.owner)
        has_queue = form_of(self._db) > 2  # noqa: PLR2004  # form 3 is the first with one
        ready_at, change = self._one(_PLACE, row.number) or (None, 0) if has_queue else (None, 0)
        status = status_of(summary, is_driven=is_driven, is_ready=ready_at is not None)
        return replace(summary, status=status, change=change or 0)

    def _load(self, run_id: str) -> _Found:
        row = self.find(run_id)
        head: Head | JournalCorrupt | None
        try:
            head = self._head(row)  # before any record: a journal may be ahead of its heads
        except JournalCorrupt as error:
            head = error
        least = head.least if isinstance(head, Head) else 0
        return _Found(row, lineage(row, least, lambda number: self._run("number", number)), head)

    def _tail(self, found: _Found) -> Place:
        tail, own = self._end(found.segments), found.segments[-1]
        if tail.seq < own.least:
            raise self._missing(own.run_id, tail.seq, own.least)
        return tail

    def _end(self, segments: Sequence[Segment]) -> Place:
        own = segments[-1]
        match self._one(_LAST, own.number):
            case None:
                before = self._hash_before(segments, own.start)
                if before is None:
                    raise JournalCorrupt(own.run_id, own.start - 1, "the record is missing")
                return Place(own.start, before)
            case (int(seq), bytes(hash_), _):
                return Place(seq + 1, hash_)
            case _:
                raise JournalCorrupt(own.run_id, 0, "its last record is damaged")

    def _proven_head(self, found: _Found) -> Head | None:
        row = found.row
        if found.head is None and self._heads is not None and not self.is_empty(row):
            where = f"{self._heads.path} does not say how many records it had"
            raise JournalCorrupt(row.run_id, self._tail(found).seq, f"{where}; {self._remedy(row.run_id)}")
        return self._check_head(found)

    def _head(self, row: RunRow) -> Head | None:
        if self._heads is None:
            return None
        try:
            head = self._heads.get(row.number)
        except (DamagedHead, OSError) as error:
            where = f"what {self._heads.path} tells of its length is damaged"
            raise JournalCorrupt(row.run_id, row.events, f"{where}: {error}; {self._remedy(row.run_id)}") from error
        if head is not None and head.key != key_of(row.run_id):
            where = f"{self._heads.path} tells of another run, {head.name}, in its place"
            raise JournalCorrupt(row.run_id, row.events, f"{where}; {self._remedy(row.run_id)}")
        return head

    def _check_head(self, found: _Found) -> Head | None:
        """The head. A run that has as many records as it tells of has the same ones."""
        head = found.head
        if isinstance(head, JournalCorrupt):
            raise head
        if head is not None and head.seq and self._hash_before(found.segments, head.seq) not in (None, head.hash):
            run_id = found.row.run_id
            told = f"it is not the one that was written, as {heads_of(self._path)} tells"
            raise JournalCorrupt(run_id, head.seq - 1, f"{told}; {self._remedy(run_id)}")
        return head

    def _proven(self, segments: Sequence[Segment], since: int) -> Iterator[Recorded]:
        run = segments[-1]
        expected, previous = since, self._hash_before(segments, since)
        if previous is None:
            if since <= run.least or self._one("SELECT 1 FROM event WHERE run=? AND seq>=?", run.number, since):
                raise JournalCorrupt(run.run_id, since - 1, "the record is missing")
            return
        for segment in segments:
            if segment.stop <= expected:
                continue
            try:
                for row in self._db.execute(_ROWS, (segment.number, expected)):
                    if expected == segment.stop:
                        break
                    record, previous = record_of_row(run.run_id, expected, previous, row, self._catalogue)
                    yield record
                    expected += 1
            except FILE_ERRORS as error:
                if code_of(error) not in _DAMAGE:
                    raise file_error(self._path, error) from error
                raise JournalCorrupt(run.run_id, expected, str(error)) from error
            if expected < segment.least:
                raise self._missing(run.run_id, expected, segment.least)

    def _catalogue(self, digest: str, version: int) -> Catalogue:
        kept = self._catalogues
        if (digest, version) not in kept:
            kept[digest, version] = decode_catalogue(self.blob(digest), version)
            if len(kept) > _KEPT_CATALOGUES:
                del kept[next(iter(kept))]
        return kept[digest, version]

    def _hash_before(self, segments: Sequence[Segment], seq: int) -> bytes | None:
        if seq == 0:
            return genesis(segments[0].run_id)
        owner = next(segment for segment in segments if seq - 1 < segment.stop)
        match self._one("SELECT hash FROM event WHERE run=? AND seq=?", owner.number, seq - 1):
            case (bytes(hash_),):
                return hash_
            case _:
                return None

    def _run(self, column: str, value: object) -> RunRow | None:
        columns = "number, run_id, started_at, parent, at, owner, events"
        match self._one(f"SELECT {columns} FROM run WHERE {column}=?", value):  # noqa: S608 - names of ours
            case None:
                return None
            case (int(number), str(run_id), float(began), int() | None as parent, int(at), str(owner), int(events)):
                return RunRow(number, run_id, began, parent, max(at, 0), owner, events)
            case _:
                raise JournalCorrupt(str(value), 0, "its entry in the list of runs is damaged")

    def _one(self, statement: str, *values: object) -> Any:  # Any: a row, which is matched by whoever asked
        with translate_errors(self._path):
            return self._db.execute(statement, values).fetchone()

    def _missing(self, run_id: str, record: int, least: int) -> JournalCorrupt:
        """What is wrong with a run that ends too early."""
        others = "" if least == record + 1 else f", as are those up to {least - 1}"
        return JournalCorrupt(run_id, record, f"the record is missing{others}; {self._remedy(run_id)}")

    def _remedy(self, run_id: str) -> str:
        """What a person can do about a run whose records, or the proof of them, are lost."""
        command = f"{ACCEPT} {run_id} --by NAME --journal {shlex.quote(str(self._path))}"
        return f"restore all files of the journal, or continue with what is left: `{command}`"
