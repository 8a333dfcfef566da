"""Whole runs of a database as they were written: given, taken in; and the bytes that no run refers to, removed."""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.core.state.summary import summarise
from surefoot.journal.codec import check_fork, genesis
from surefoot.journal.postgres_open import OpenDatabase
from surefoot.journal.postgres_write import keep
from surefoot.journal.raw import all_proven, check_blobs, check_origin, new_rows
from surefoot.types.archive import Origin, Row
from surefoot.types.errors import RunBusy, RunUnknown
from surefoot.types.ports import Place

_ROWS = """
SELECT seq, at, version, body, hash FROM surefoot.event WHERE run = %s AND seq >= %s ORDER BY seq LIMIT %s"""
_HASH = "SELECT hash FROM surefoot.event WHERE run = %s AND seq = %s"
_UNUSED = "SELECT digest FROM surefoot.blob WHERE first_at < now() - interval '1 day'"
_MENTIONS = """
SELECT run, seq, ARRAY(SELECT regexp_matches(convert_from(body, 'UTF8'), '[0-9a-f]{64}', 'g'))
FROM surefoot.event WHERE (run, seq) > (%s, %s) ORDER BY run, seq LIMIT 1000"""
_REMOVE = """
WITH gone AS (
    DELETE FROM surefoot.blob WHERE digest = ANY (%s) AND first_at < now() - interval '1 day' RETURNING length(data)
) SELECT coalesce(sum(length), 0)::bigint FROM gone"""
_PIECE = 500
"""Bytes that are removed at once."""


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
    check_blobs(wanted.run_id, blobs)
    await keep(here.database, blobs)
    while not await _is_adopted(here, wanted, given):
        pass


async def _is_adopted(here: OpenDatabase, wanted: Origin, given: Sequence[Row]) -> bool:
    """Whether they are kept, or somebody else was first, so that there is more of the run by now."""
    run_id, reader, writer = wanted.run_id, here.reader, here.writer
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
        if await here.make(run_id, shared, "") is None:
            return False
        await here.database.ask("UPDATE surefoot.run SET started_at = %s WHERE run_id = %s", (wanted.began, run_id))
    if not new:
        return True
    line = (await here.open(run_id, create=False, fence=None)).line
    del here.driven[run_id]
    line.freed = None, True
    if is_overtaken := line.at != place:
        new, records = [], []
    for record in records:
        line.summary = summarise(line.summary, record.event, record.at)
    writer.add(line, [(line.number, row.seq, row.at, row.form, row.body, row.hash) for row in new])
    await writer.flushed()
    if line.failure is not None:
        raise line.failure
    return not is_overtaken


async def sweep(here: OpenDatabase) -> int:
    """Remove the bytes of more than a day ago that no record mentions, not even in a text; how many there were.

    All records are looked through while others write, some at a time. A store sends bytes again with a record that is
    written meanwhile, unless it has sent them some seconds ago; what was sent again stays.
    """
    unused = {str(digest) for (digest,) in await here.database.ask(_UNUSED)}
    at, is_more = (0, -1), bool(unused)
    while is_more:
        rows = await here.database.ask(_MENTIONS, at)
        for run, seq, found in rows:
            at = run, seq
            unused.difference_update(digest for (digest,) in found)
        is_more = bool(rows and unused)
    digests, removed = sorted(unused), 0
    for first in range(0, len(digests), _PIECE):
        ((size,),) = await here.database.ask(_REMOVE, (digests[first : first + _PIECE],))
        removed += size
    return removed


async def _hash_before(here: OpenDatabase, run_id: str, seq: int) -> bytes:
    """The hash of the record before that place of a run. Raises `JournalCorrupt`."""
    if seq == 0:
        return genesis(run_id)
    records, wrong = await here.reader.load(await here.reader.find(run_id), seq - 1, 1)
    if wrong is not None:
        raise wrong
    return bytes.fromhex(records[0].hash)
