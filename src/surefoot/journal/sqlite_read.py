"""Records out of a journal file, each proven by the chain before it is believed.

A fork owns its records from `at` on and shares those before with its parent, so the records of a run are those of its
lineage, oldest ancestor first, each up to where the next one begins. Reading stops at the first record that is missing,
altered or unreadable; what precedes it is given. Every loop here is bounded by that rule or by falling run numbers,
whatever a damaged file says.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from surefoot.journal.codec import chain, decode, decode_catalogue, digest_of, genesis, record_of
from surefoot.journal.sqlite_file import FILE_ERRORS, code_of, file_error
from surefoot.journal.upgrade import Record, upgrade
from surefoot.types.errors import JournalCorrupt, JournalError, JournalTooNew, UsageError
from surefoot.types.events import models_line
from surefoot.types.ports import Recorded, RunInfo
from surefoot.types.tools import Catalogue

_BEYOND = 2**62
"""More records than a run can have."""

_FORMS = 2**31
"""Forms of records that there can be."""

_KEPT_CATALOGUES = 8
"""Runs that are read one after the other mostly share their tools."""

_LISTED = """
SELECT run_id FROM run WHERE events<>0 OR at<>0 OR EXISTS (SELECT 1 FROM event WHERE event.run=run.number)
ORDER BY number DESC LIMIT ?"""

_DAMAGE = (0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG)
"""Result codes that speak of the file's content; the others speak of its surroundings."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The records of one run in a lineage: from `start` up to, but not including, `stop`; at least up to `least`."""

    number: int
    run_id: str
    start: int
    stop: int
    least: int


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the file lists it.

    `parent` is its parent's number, `at` its first own record, `owner` who drives it, `events` its length when it was
    last released.
    """

    number: int
    run_id: str
    started_at: float
    parent: int | None
    at: int
    owner: str
    events: int


@dataclass(frozen=True, slots=True)
class Tail:
    """Where a run ends: the next record is `seq`, and its hash follows `hash`."""

    seq: int
    hash: bytes


class Reader:
    """Reads one open journal file. Raises `JournalError` and its kinds, `UsageError` for a run that is not there."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path
        self._catalogues: dict[tuple[str, int], Catalogue] = {}

    def find(self, run_id: str) -> RunRow:
        """The run of that id."""
        row = self.look_up(run_id)
        if row is None:
            raise UsageError(f"there is no run {run_id!r} in the journal {self._path}; `surefoot runs` lists them")
        return row

    def look_up(self, run_id: str) -> RunRow | None:
        """The run of that id, or None."""
        if not run_id.isprintable():  # such ids are never given, and SQLite cannot take them all
            return None
        return self._run("run_id", run_id)

    def lineage(self, run_id: str) -> list[Segment]:
        """Whose records a run consists of, oldest ancestor first."""
        row, stop = self.find(run_id), _BEYOND
        segments = [Segment(row.number, row.run_id, row.at, stop, row.events)]
        while row.parent is not None:  # ends: numbers fall
            parent = self._run("number", row.parent) if row.parent < row.number else None
            if parent is None:
                raise JournalCorrupt(run_id, 0, "the run that it was forked from is gone")
            stop = min(stop, row.at)
            segments.append(Segment(parent.number, parent.run_id, parent.at, stop, stop))
            row = parent
        return segments[::-1]

    def is_empty(self, row: RunRow) -> bool:
        """Whether the run has no records and never had any."""
        return row.at == row.events == 0 and self._peek_last(row.number) is None

    def tail(self, run_id: str) -> Tail:
        """Where the run ends now."""
        segments = self.lineage(run_id)
        own = segments[-1]
        last = self._one("SELECT seq, hash FROM event WHERE run=? ORDER BY seq DESC LIMIT 1", own.number)
        match last:
            case None:
                before = self._hash_before(segments, own.start)
                if before is None:
                    raise JournalCorrupt(run_id, own.start - 1, "the record is missing")
                tail = Tail(own.start, before)
            case (int(seq), bytes(hash_)):
                tail = Tail(seq + 1, hash_)
            case _:
                raise JournalCorrupt(run_id, 0, "its last record is damaged")
        if tail.seq < own.least:
            raise JournalCorrupt(run_id, tail.seq, "the record is missing")
        return tail

    def load(self, run_id: str, since: int) -> tuple[list[Recorded], JournalError | None]:
        """The records from `since` on that can be read, and what is wrong with the next one."""
        records: list[Recorded] = []
        segments = self.lineage(run_id)
        try:
            records.extend(self._proven(segments, since))
        except JournalError as error:
            return records, error
        return records, None

    def is_over(self, run_id: str, since: int) -> bool:
        """Whether the run has ended before position `since`, and nobody took it up again."""
        last = self._peek_last(self.find(run_id).number)
        return last is not None and last[0] < since and last[2].get("type") == "RunEnded"

    def has_blob(self, digest: str) -> bool:
        """Whether there are bytes of that digest, altered or not."""
        return self._one("SELECT 1 FROM blob WHERE digest=?", digest) is not None

    def blob(self, digest: str) -> bytes:
        """The bytes of a digest, proven by it."""
        altered = f"the bytes of digest {digest} were altered"
        match self._one("SELECT data, run, seq FROM blob WHERE digest=?", digest):
            case None:
                raise JournalError(f"journal {self._path}: there are no bytes of digest {digest}")
            case (bytes(data), int(number), int(seq)):
                if digest_of(data) == digest:
                    return data
                if run := self._run("number", number):
                    raise JournalCorrupt(run.run_id, seq, altered)
            case _:
                pass
        raise JournalError(f"journal {self._path}: {altered}; what they were cannot be known")

    def infos(self, limit: int, is_alive: Callable[[str], bool]) -> list[RunInfo]:
        """The newest runs first, but those that never had records. A run that cannot be read is "damaged"."""
        with self._telling():
            ids = self._db.execute(_LISTED, (limit,)).fetchall()
        return [self._info(str(run_id), is_alive) for (run_id,) in ids]

    def _info(self, run_id: str, is_alive: Callable[[str], bool]) -> RunInfo:
        try:
            row, segments = self.find(run_id), self.lineage(run_id)
            last = self._peek_last(row.number)
            task = self._peek(segments[0].number, 0).get("task")
            firsts = (self._peek(segment.number, segment.start).get("speakers") for segment in reversed(segments))
            model = next((model for told in firsts if (model := _models_told(told))), "")
        except (JournalError, UsageError):  # this run's trouble must not hide the others
            return RunInfo(run_id, 0.0, 0.0, 0, "damaged", "", "")
        seq, changed_at, record = last or (row.at - 1, row.started_at, {})
        match record:
            case {"type": "RunEnded", "ending": {"kind": str(status)}}:
                pass
            case _:
                status = "running" if row.owner and is_alive(row.owner) else "interrupted"
        text = cast("Record", task).get("text", "") if isinstance(task, dict) else ""  # JSON: its keys are text
        parent = segments[-2].run_id if row.parent is not None else ""
        return RunInfo(run_id, row.started_at, changed_at, seq + 1, status, str(text), str(model), parent)

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
                for row in self._rows(segment, expected):
                    if expected == segment.stop:
                        break
                    record = self._record(run.run_id, expected, previous, row)
                    yield record
                    expected, previous = expected + 1, bytes.fromhex(record.hash)
            except FILE_ERRORS as error:
                if code_of(error) not in _DAMAGE:
                    raise file_error(self._path, error) from error
                raise JournalCorrupt(run.run_id, expected, str(error)) from error
            if expected < segment.least:
                raise JournalCorrupt(run.run_id, expected, "the record is missing")

    def _record(self, run_id: str, expected: int, previous: bytes, row: object) -> Recorded:
        match row:
            case (int(seq), float(at), int(version), bytes(body), bytes(hash_)) if 0 < version < _FORMS:
                pass
            case _:
                raise JournalCorrupt(run_id, expected, "its row is damaged")
        if seq != expected:
            raise JournalCorrupt(run_id, expected, f"the record is missing; the next one is {seq}")
        if chain(previous, version, at, body) != hash_:
            raise JournalCorrupt(run_id, expected, "its hash does not match: it was altered or moved")
        try:
            return Recorded(seq, at, hash_.hex(), decode(body, version, self._catalogue))
        except JournalTooNew as error:
            raise JournalTooNew(f"run {run_id}, record {seq}: {error}") from error
        except (ValueError, JournalError) as error:
            raise JournalCorrupt(run_id, seq, f"it cannot be read as an event: {error}") from error

    def _catalogue(self, digest: str, version: int) -> Catalogue:
        kept = self._catalogues
        if (digest, version) not in kept:
            kept[digest, version] = decode_catalogue(self.blob(digest), version)
            if len(kept) > _KEPT_CATALOGUES:
                del kept[next(iter(kept))]
        return kept[digest, version]

    def _rows(self, segment: Segment, since: int) -> Iterator[object]:
        return self._db.execute(
            "SELECT seq, at, version, body, hash FROM event WHERE run=? AND seq>=? ORDER BY seq",
            (segment.number, since),
        )

    def _hash_before(self, segments: Sequence[Segment], seq: int) -> bytes | None:
        if seq == 0:
            return genesis(segments[0].run_id)
        owner = next(segment for segment in segments if seq - 1 < segment.stop)
        match self._one("SELECT hash FROM event WHERE run=? AND seq=?", owner.number, seq - 1):
            case (bytes(hash_),):
                return hash_
            case _:
                return None

    def _peek_last(self, number: int) -> tuple[int, float, Record] | None:
        row = self._one("SELECT seq, at, version, body FROM event WHERE run=? ORDER BY seq DESC LIMIT 1", number)
        match row:
            case (int(seq), float(at), int(version), bytes(body)):
                return seq, at, _peeked(body, version)
            case _:
                return None

    def _peek(self, number: int, seq: int) -> Record:
        match self._one("SELECT version, body FROM event WHERE run=? AND seq=?", number, seq):
            case (int(version), bytes(body)):
                return _peeked(body, version)
            case _:
                return {}

    def _run(self, column: str, value: object) -> RunRow | None:
        columns = "number, run_id, started_at, parent, at, owner, events"
        match self._one(f"SELECT {columns} FROM run WHERE {column}=?", value):  # noqa: S608 - names of ours
            case None:
                return None
            case (int(number), str(run_id), float(began), int() | None as parent, int(at), str(owner), int(events)):
                return RunRow(number, run_id, began, parent, max(at, 0), owner, events)
            case _:
                raise JournalCorrupt(str(value), 0, "its entry in the list of runs is damaged")

    def _one(self, statement: str, *values: object) -> object:
        with self._telling():
            return self._db.execute(statement, values).fetchone()

    @contextmanager
    def _telling(self) -> Generator[None]:
        try:
            yield
        except FILE_ERRORS as error:
            raise file_error(self._path, error) from error


def _models_told(speakers: object) -> str:
    """The models that the first record of a run names; "" when it names none."""
    if not isinstance(speakers, dict):
        return ""
    told = cast("dict[str, Record]", speakers)  # records of ours; what is no such record names no model
    models = {role: str(one.get("model", "")) for role, one in told.items() if isinstance(one, dict)}  # pyright: ignore[reportUnnecessaryIsInstance]  # the file is not ours alone
    return models_line(models)


def _peeked(body: bytes, version: int) -> Record:
    """As much of an event as a list of runs needs; nothing when it cannot be read."""
    try:
        return upgrade(record_of(body), version)
    except (ValueError, JournalTooNew):
        return {}
