"""Records out of a database, each proven by the chain before it is believed; and how a run stands.

Reading stops at the first record that is missing, altered or unreadable; what precedes it is given. A list of runs
reads no record. Source: spec/serving.md, section 4; spec/scale.md, section 3.1.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import LiteralString, NamedTuple

from surefoot.core.state.summary import LEAST_SEARCHED, is_listed, status_of, summarise
from surefoot.journal import codec
from surefoot.journal.postgres_server import GONE, Database, Row, is_dead_here
from surefoot.journal.postgres_write import label_of, text_of
from surefoot.types.errors import JournalCorrupt, JournalError, RunUnknown
from surefoot.types.ports import NO_RECORDS, Recorded, RunFilter, RunPage, RunSummary
from surefoot.types.tools import Catalogue

_KEPT_CATALOGUES = 8  # runs that are read one after the other mostly share their tools

_PIECE = 500  # records that are fetched at once

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
_LISTED: LiteralString = """
SELECT run.number, run.run_id, run.owner, run.owner <> '' AND surefoot.lives(run.owner), run.ready_at, run.started_at,
    summary.body, summary.change
FROM surefoot.summary JOIN surefoot.run ON run.number = summary.run WHERE """
_UNDECIDED = frozenset({"running", "paused", "ready", "queued", "interrupted", "set_aside"})
"""What a run that has not ended may be called, which depends on who drives it."""
_MAY_BE: dict[str, LiteralString] = {
    "running": "run.owner <> ''",
    "queued": "run.ready_at IS NOT NULL AND summary.agent <> ''",
    "ready": "summary.standing = 'ready'",
    "set_aside": "run.ready_at IS NULL AND summary.standing = 'set_aside'",
}
"""What can be told beforehand of a run that may be called so."""
_BEGINS = "starts_with(run.run_id, %s) OR summary.run IN (SELECT run FROM surefoot.label WHERE starts_with(label, %s))"
_LINES = 200  # rows of a list that are looked at in one turn of the event loop: what takes about 10 ms


_REMEDY = "bring back a backup of the database"


class _NoCatalogue(LookupError):
    """The tools of a digest have not been fetched yet."""

    def __init__(self, digest: str, version: int) -> None:
        super().__init__(digest)
        self.digest, self.version = digest, version


class Found(NamedTuple):
    """A run and those whose records it shares, oldest first; `head` is the hash of its last record."""

    row: codec.RunRow
    segments: Sequence[codec.Segment]
    head: bytes
    ready_at: float | None
    is_driven: bool


class Reader:
    """Reads what a database holds of runs, and lists them. Raises `JournalError` and its kinds, `RunUnknown`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._catalogues: dict[tuple[str, int], Catalogue] = {}

    async def find(self, run_id: str) -> Found:
        rows = await self._database.ask(_LINE, (run_id,)) if run_id.isprintable() else []
        if not rows:
            raise RunUnknown(f"unknown run {run_id!r} in the journal {self._database.name}; `surefoot runs` lists them")
        line = {row[0]: codec.RunRow(*row[:7]) for row in rows}
        own, ready_at, head, lives = codec.RunRow(*rows[0][:7]), *rows[0][7:]
        segments = codec.lineage(own, own.events, line.get)
        return Found(own, segments, head, ready_at, lives and not is_dead_here(own.owner))

    async def load(
        self, found: Found, since: int, limit: int | None = None, *, read: Recorded | None = None
    ) -> tuple[list[Recorded], JournalError | None]:
        """The records from `since` on that can be read, and what is wrong with the next one; at most `limit`.

        `read` is the one before them, where it was read already.
        """
        records: list[Recorded] = []
        try:
            async for record in self._proven(found, since, "" if read is None else read.hash):
                records.append(record)
                if len(records) == limit:
                    break
        except JournalError as error:
            return records, error
        return records, None

    async def summary(self, found: Found) -> RunSummary:
        row = found.row
        (body, change), *_ = await self._database.ask(_KEPT, (row.number,)) or [(None, 0)]
        kept = codec.summary_of(body)
        summary = NO_RECORDS if kept is None or kept.events > row.events else kept
        if summary.events < row.events:
            async for record in self._proven(found, summary.events):
                summary = summarise(summary, (record.event,), record.at)
        parent = found.segments[-2].run_id if row.parent is not None else ""
        return replace(summary, run_id=row.run_id, started_at=row.started_at, parent=parent, change=change)

    async def newest(self, limit: int) -> list[str]:
        return [run_id for (run_id,) in await self._database.ask(_NEWEST, (limit,))]

    async def beginning(self, prefix: str, limit: int) -> list[str]:
        if "\0" in prefix:  # of none
            return []
        return [run_id for (run_id,) in await self._database.ask(_BEGINNING, (codec.storable(prefix), limit))]

    async def current_summary(self, run_id: str) -> RunSummary:
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
        if codec.digest_of(data) != digest:
            raise JournalError(f"journal {self._database.name}: the bytes of digest {digest} were altered")
        return data

    async def page(self, wanted: RunFilter, after: str, limit: int) -> RunPage:
        found: list[tuple[int, RunSummary]] = []
        async for number, summary in self._wanted(wanted, codec.place_of(after)):
            if len(found) == limit:
                return RunPage(tuple(one for _, one in found), str(found[-1][0]))
            found.append((number, summary))
        return RunPage(tuple(one for _, one in found))

    async def count(self, wanted: RunFilter, most: int) -> int:
        number = 0
        async for _ in self._wanted(wanted, None):
            number += 1
            if number == most:
                break
        return number

    async def last_change(self) -> int:
        rows = await self._database.ask("SELECT coalesce(max(change), 0) FROM surefoot.summary")
        return int(rows[0][0])

    async def changed(self, since: int) -> list[RunSummary]:
        """Some summaries that were kept after a change, in the order in which they were; none where there are none."""
        told = f"{_LISTED}summary.change > %s ORDER BY summary.change LIMIT %s"
        return [await self._line(row) for row in await self._database.ask(told, (since, _LINES))]

    async def _wanted(self, wanted: RunFilter, before: int | None) -> AsyncIterator[tuple[int, RunSummary]]:
        where, values = _where(wanted)
        while True:
            bounds: list[LiteralString] = [] if before is None else ["summary.run < %s"]
            told = " AND ".join([*bounds, *where]) or "true"
            asked = f"{_LISTED}{told} ORDER BY summary.run DESC LIMIT %s"
            rows = await self._database.ask(asked, [*([] if before is None else [before]), *values, _LINES])
            for row in rows:
                if is_listed(summary := await self._line(row), wanted):
                    yield row[0], summary
            if len(rows) < _LINES:
                return
            before = rows[-1][0]

    async def _line(self, row: Row) -> RunSummary:
        _, run_id, owner, lives, ready_at, began, body, change = row
        summary = codec.summary_of(body)
        if summary is None:  # it was written by another surefoot
            return replace(await self.current_summary(run_id), change=change)
        is_driven = summary.status == "running" and lives and not is_dead_here(owner)
        status = status_of(summary, is_driven=is_driven, is_ready=ready_at is not None)
        return replace(summary, run_id=run_id, started_at=began, status=status, change=change)

    async def _proven(self, found: Found, since: int, read: str = "") -> AsyncIterator[Recorded]:
        run_id, expected = found.row.run_id, since
        previous = None if since else codec.genesis(found.segments[0].run_id)
        async for row in self._rows(found.segments, max(since - 1, 0)):
            if previous is not None:
                record, previous = await self.record(run_id, expected, previous, row)
                yield record
                expected += 1
            elif row[0] == since - 1 and read in ("", row[4].hex()):  # the first follows its hash
                previous = bytes(row[4])
            else:
                break
        if read and previous is None:
            told = f"record {since - 1} is not the one that was read: {GONE}; read it anew"
            raise JournalError(f"run {run_id}: {told}")
        if expected < found.row.events:
            raise JournalCorrupt(run_id, expected, f"the record is missing; {_REMEDY}")
        if 0 < expected == found.row.events and previous not in (None, found.head):
            raise JournalCorrupt(run_id, expected - 1, f"it is not the one that was written; {_REMEDY}")

    async def _rows(self, segments: Sequence[codec.Segment], at: int) -> AsyncIterator[Row]:
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
                return codec.record_of_row(run_id, expected, previous, row, self._catalogue)
            except _NoCatalogue as needed:
                data = await self.blob(needed.digest)
                self._catalogues[needed.digest, needed.version] = codec.decode_catalogue(data, needed.version)
                if len(self._catalogues) > _KEPT_CATALOGUES:
                    del self._catalogues[next(iter(self._catalogues))]

    def _catalogue(self, digest: str, version: int) -> Catalogue:
        if (digest, version) not in self._catalogues:
            raise _NoCatalogue(digest, version)
        return self._catalogues[digest, version]


def _where(wanted: RunFilter) -> tuple[list[LiteralString], list[object]]:
    """What PostgreSQL can tell of it; the rest is asked of each row."""
    where: list[LiteralString] = []
    values: list[object] = []

    def add(told: LiteralString, *of: object) -> None:
        where.append(told)
        values.extend(text_of(one) if isinstance(one, str) else one for one in of)

    if wanted.status:
        add("summary.status = %s", "running" if wanted.status in _UNDECIDED else wanted.status)
        add(_MAY_BE.get(wanted.status, "true"))
    if wanted.agents or wanted.agent:
        add("summary.agent = ANY (%s)", [text_of(one) for one in ((wanted.agent,) if wanted.agent else wanted.agents)])
    if wanted.waiting or wanted.status == "paused":
        add("summary.waits")
    for label in wanted.labels:
        add("summary.run IN (SELECT run FROM surefoot.label WHERE label = %s)", label_of(label))
    if wanted.parent:
        add("run.parent IN (SELECT number FROM surefoot.run WHERE run_id = %s)", wanted.parent)
    if wanted.since is not None:
        add("run.started_at >= %s", wanted.since)
    if wanted.until is not None:
        add("run.started_at < %s", wanted.until)
    if wanted.prefix:
        add("starts_with(run.run_id, %s)", wanted.prefix)
    if len(wanted.q) >= LEAST_SEARCHED:
        add("summary.text LIKE %s", "%" + re.sub(r"[%_\\]", "_", wanted.q.casefold()) + "%")  # any character
    elif wanted.q:
        add(f"({_BEGINS})", wanted.q, label_of(wanted.q))
    return where, values
