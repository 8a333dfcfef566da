"""Records out of a database, each proven by the chain before it is believed; and how a run stands.

Reading stops at the first record that is missing, altered or unreadable; what precedes it is given.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from surefoot.core.state.summary import status_of, summarise
from surefoot.journal.codec import (
    RunRow,
    Segment,
    decode_catalogue,
    digest_of,
    genesis,
    lineage,
    record_of_row,
    storable,
    summary_of,
)
from surefoot.journal.postgres_owner import is_dead_here
from surefoot.journal.postgres_server import Database, Row
from surefoot.types.errors import JournalCorrupt, JournalError, RunUnknown
from surefoot.types.ports import NO_RECORDS, Recorded, RunSummary
from surefoot.types.tools import Catalogue

_KEPT_CATALOGUES = 8
"""Runs that are read one after the other mostly share their tools."""

_PIECE = 500
"""Records that are fetched at once."""

_LINE = """
WITH RECURSIVE line AS (
    SELECT * FROM surefoot.run WHERE run_id = %s
    UNION ALL SELECT run.* FROM surefoot.run JOIN line ON run.number = line.parent AND run.number < line.number
)
SELECT number, run_id, started_at, parent, at, owner, events, ready_at, head,
    owner <> '' AND surefoot.lives(owner) FROM line ORDER BY number DESC"""
_ROWS = """
SELECT seq, at, version, body, hash FROM surefoot.event WHERE run = %s AND seq >= %s AND seq < %s
ORDER BY seq LIMIT %s"""
_NEWEST = "SELECT run_id FROM surefoot.run WHERE events > 0 ORDER BY number DESC LIMIT %s"
_BEGINNING = "SELECT run_id FROM surefoot.run WHERE starts_with(run_id, %s) AND events > 0 ORDER BY run_id LIMIT %s"
_KEPT = "SELECT body, change FROM surefoot.summary WHERE run = %s"


_REMEDY = "bring back a backup of the database"


class _NoCatalogue(LookupError):
    """The tools of a digest have not been fetched yet."""

    def __init__(self, digest: str, version: int) -> None:
        super().__init__(digest)
        self.digest, self.version = digest, version


class Found(NamedTuple):
    """A run and those whose records it shares, oldest first; `head` is the hash of its last record."""

    row: RunRow
    segments: Sequence[Segment]
    head: bytes
    ready_at: float | None
    is_driven: bool


class Reader:
    """Reads what a database holds of runs. Raises `JournalError` and its kinds, `RunUnknown`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._catalogues: dict[tuple[str, int], Catalogue] = {}

    async def find(self, run_id: str) -> Found:
        """The run of that id."""
        rows = await self._database.ask(_LINE, (run_id,)) if run_id.isprintable() else []
        if not rows:
            raise RunUnknown(f"unknown run {run_id!r} in the journal {self._database.name}; `surefoot runs` lists them")
        line = {row[0]: RunRow(*row[:7]) for row in rows}
        own, ready_at, head, lives = RunRow(*rows[0][:7]), *rows[0][7:]
        segments = lineage(own, own.events, line.get)
        return Found(own, segments, head, ready_at, lives and not is_dead_here(own.owner))

    async def load(
        self, found: Found, since: int, limit: int | None = None
    ) -> tuple[list[Recorded], JournalError | None]:
        """The records from `since` on that can be read, and what is wrong with the next one; at most `limit`."""
        records: list[Recorded] = []
        try:
            async for record in self._proven(found, since):
                records.append(record)
                if len(records) == limit:
                    break
        except JournalError as error:
            return records, error
        return records, None

    async def summary(self, found: Found) -> RunSummary:
        """A run in one line, as of its last record."""
        row = found.row
        (body, change), *_ = await self._database.ask(_KEPT, (row.number,)) or [(None, 0)]
        kept = summary_of(body)
        summary = NO_RECORDS if kept is None or kept.events > row.events else kept
        if summary.events < row.events:
            async for record in self._proven(found, summary.events):
                summary = summarise(summary, record.event, record.at)
        parent = found.segments[-2].run_id if row.parent is not None else ""
        return replace(summary, run_id=row.run_id, started_at=row.started_at, parent=parent, change=change)

    async def newest(self, limit: int) -> list[str]:
        """The ids of the newest runs with records, newest first."""
        return [run_id for (run_id,) in await self._database.ask(_NEWEST, (limit,))]

    async def beginning(self, prefix: str, limit: int) -> list[str]:
        """The ids that begin so, of runs with records, in their order."""
        if "\0" in prefix:  # of none
            return []
        return [run_id for (run_id,) in await self._database.ask(_BEGINNING, (storable(prefix), limit))]

    async def listed(self, run_id: str) -> RunSummary:
        """A run as a list has it: by its ending, by who drives it, or by what it waits for."""
        found = await self.find(run_id)
        try:
            summary = await self.summary(found)
        except JournalError:  # this run's trouble must not hide the others
            return replace(NO_RECORDS, run_id=run_id, status="damaged")
        status = status_of(summary, is_driven=found.is_driven, is_ready=found.ready_at is not None)
        return replace(summary, status=status)

    async def blob(self, digest: str) -> bytes:
        """The bytes of a digest, proven by it."""
        rows = await self._database.ask("SELECT data FROM surefoot.blob WHERE digest = %s", (digest,))
        if not rows:
            raise JournalError(f"journal {self._database.name}: no bytes of digest {digest}")
        data: bytes = rows[0][0]
        if digest_of(data) != digest:
            raise JournalError(f"journal {self._database.name}: the bytes of digest {digest} were altered")
        return data

    async def _proven(self, found: Found, since: int) -> AsyncIterator[Recorded]:
        run_id, expected = found.row.run_id, since
        previous = None if since else genesis(found.segments[0].run_id)
        async for row in self._rows(found.segments, max(since - 1, 0)):
            if previous is not None:
                record, previous = await self.record(run_id, expected, previous, row)
                yield record
                expected += 1
            elif row[0] == since - 1:  # the record before the first has the hash that it follows
                previous = bytes(row[4])
            else:
                break
        if expected < found.row.events:
            raise JournalCorrupt(run_id, expected, f"the record is missing; {_REMEDY}")
        if 0 < expected == found.row.events and previous not in (None, found.head):
            raise JournalCorrupt(run_id, expected - 1, f"it is not the one that was written; {_REMEDY}")

    async def _rows(self, segments: Sequence[Segment], at: int) -> AsyncIterator[Row]:
        for segment in segments:
            while at < segment.stop:
                rows = await self._database.ask(_ROWS, (segment.number, at, segment.stop, _PIECE))
                for row in rows:
                    yield row
                if len(rows) < _PIECE:
                    break
                at = rows[-1][0] + 1
            at = max(at, segment.stop)

    async def record(self, run_id: str, expected: int, previous: bytes, row: Row) -> tuple[Recorded, bytes]:
        """The record that follows the hash `previous`, and its own hash. Raises `JournalCorrupt`, `JournalTooNew`."""
        while True:
            try:
                return record_of_row(run_id, expected, previous, row, self._catalogue)
            except _NoCatalogue as needed:
                data = await self.blob(needed.digest)
                self._catalogues[needed.digest, needed.version] = decode_catalogue(data, needed.version)
                if len(self._catalogues) > _KEPT_CATALOGUES:
                    del self._catalogues[next(iter(self._catalogues))]

    def _catalogue(self, digest: str, version: int) -> Catalogue:
        if (digest, version) not in self._catalogues:
            raise _NoCatalogue(digest, version)
        return self._catalogues[digest, version]
