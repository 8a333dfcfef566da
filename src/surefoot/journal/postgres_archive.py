"""Whole runs of a database as they were written: given, taken in; and the bytes that no run refers to, removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from surefoot.core.state.summary import summarise
from surefoot.journal.codec import check_fork, genesis
from surefoot.journal.postgres_open import OpenDatabase
from surefoot.journal.postgres_server import Connection, rows_of
from surefoot.journal.postgres_write import keep
from surefoot.journal.raw import all_proven, check_blobs, check_origin, new_rows
from surefoot.types.archive import Origin, Row
from surefoot.types.errors import RunBusy, RunUnknown
from surefoot.types.ports import Place

_ROWS = """
SELECT seq, at, version, body, hash FROM surefoot.event WHERE run = %s AND seq >= %s ORDER BY seq LIMIT %s"""
_HASH = "SELECT hash FROM surefoot.event WHERE run = %s AND seq = %s"
_MENTIONED = "(regexp_matches(convert_from(body, 'UTF8'), '[0-9a-f]{64}', 'g'))[1]"
_SWEEP: tuple[LiteralString, ...] = (
    "CREATE TEMPORARY TABLE swept ON COMMIT DROP AS SELECT number, events FROM surefoot.run",
    f"""CREATE TEMPORARY TABLE unused ON COMMIT DROP AS
    SELECT digest FROM surefoot.blob WHERE first_at < now() - interval '1 day'
    EXCEPT SELECT {_MENTIONED} FROM surefoot.event""",  # noqa: S608  # words of ours
    "LOCK TABLE surefoot.blob IN SHARE ROW EXCLUSIVE MODE",
    f"""DELETE FROM unused WHERE digest IN (
        SELECT {_MENTIONED} FROM surefoot.run LEFT JOIN swept USING (number)
        JOIN surefoot.event ON event.run = run.number AND event.seq >= coalesce(swept.events, 0)
        WHERE run.events > coalesce(swept.events, 0))""",  # noqa: S608  # as above
    """WITH gone AS (DELETE FROM surefoot.blob USING unused WHERE blob.digest = unused.digest RETURNING data)
    SELECT coalesce(sum(length(data)), 0)::bigint FROM gone""",
)


async def origin(here: OpenDatabase, run_id: str) -> Origin:
    """Where a run comes from."""
    found = await here.reader.find(run_id)
    parent = found.segments[-2].run_id if found.row.parent is not None else ""
    return Origin(run_id, found.row.started_at, parent, found.row.at)


async def rows(here: OpenDatabase, run_id: str, since: int, limit: int | None) -> list[Row]:
    """The own records of a run, proven."""
    found = await here.reader.find(run_id)
    since = max(since, found.row.at)
    if since >= found.row.events:
        return []
    before = await _hash_before(here, run_id, since)
    given = await here.database.ask(_ROWS, (found.row.number, since, limit))
    return list(all_proven(run_id, Place(since, before), given))


async def adopt(here: OpenDatabase, wanted: Origin, given: Sequence[Row], blobs: Sequence[tuple[str, bytes]]) -> None:
    """Keep records of another journal, all or none, behind those of their run that are here."""
    run_id, reader, writer = wanted.run_id, here.reader, here.writer
    check_blobs(run_id, blobs)
    await keep(here.database, blobs)
    known, parent = None, None
    try:
        found = await reader.find(run_id)
    except RunUnknown:
        place = Place(wanted.fork, genesis(run_id))
        if wanted.parent:
            parent = (await reader.find(wanted.parent)).row
            check_fork(wanted.parent, wanted.fork, parent.events)
            place = Place(wanted.fork, await _hash_before(here, wanted.parent, wanted.fork))
        is_here = False
    else:
        if found.is_driven:
            raise RunBusy(f"run {run_id} is being driven here; wait until it stands still")
        check_origin(wanted, await origin(here, run_id))
        place, is_here = Place(found.row.events, found.head), True
        last = max((row.seq for row in given if row.seq < place.seq), default=-1)
        known = next((row[0] for row in await here.database.ask(_HASH, (found.row.number, last))), None)
    new = new_rows(run_id, place, given, lambda _: known)
    hashes = (place.hash, *(row.hash for row in new))
    records = [(await reader.record(run_id, row.seq, hash_, row))[0] for hash_, row in zip(hashes, new, strict=False)]
    if not is_here:
        shared = (parent.number if parent else None, wanted.fork, place.hash)
        await here.make(run_id, shared, "")
        await here.database.ask("UPDATE surefoot.run SET started_at = %s WHERE run_id = %s", (wanted.began, run_id))
    if new:
        line = (await here.open(run_id, create=False, fence=None)).line
        del here.driven[run_id]
        line.freed = None, True
        for record in records:
            line.summary = summarise(line.summary, record.event, record.at)
        writer.add(line, [(line.number, row.seq, row.at, row.form, row.body, row.hash) for row in new])
        await writer.flushed()
        if line.failure is not None:
            raise line.failure


async def sweep(here: OpenDatabase) -> int:
    """Remove the bytes of more than a day ago that no record mentions, not even in a text; how many there were.

    All records are looked through while others write; those that were written meanwhile once nobody can send bytes. A
    store sends bytes again that it has not sent for some seconds, so that it never relies on what is gone.
    """

    async def swept(connection: Connection) -> int:
        async with connection.transaction():
            *before, last = _SWEEP
            for statement in before:
                await rows_of(connection, statement)
            return int((await rows_of(connection, last))[0][0])

    return await here.database.work(swept)


async def _hash_before(here: OpenDatabase, run_id: str, seq: int) -> bytes:
    """The hash of the record before that place of a run. Raises `JournalCorrupt`."""
    if seq == 0:
        return genesis(run_id)
    records, wrong = await here.reader.load(await here.reader.find(run_id), seq - 1, 1)
    if wrong is not None:
        raise wrong
    return bytes.fromhex(records[0].hash)
