"""Runs in a PostgreSQL database: many processes on many machines write to it, each run has one driver at a time.

Nothing is asked of the server before the first use. One store belongs to one event loop at a time. Source:
spec/scale.md, section 3; docs/decisions/29-postgresql.md.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence

from surefoot.core.state.summary import summarise
from surefoot.journal.codec import Blob, check_fork, digest_of, genesis
from surefoot.journal.postgres_follow import EVERY
from surefoot.journal.postgres_open import OpenDatabase, PostgresRun
from surefoot.journal.postgres_read import Found
from surefoot.journal.postgres_server import Database
from surefoot.journal.postgres_write import keep
from surefoot.journal.raw import all_proven, check_blobs, check_origin, new_rows
from surefoot.types.archive import Origin, Row
from surefoot.types.errors import RunBusy, RunExists, RunUnknown, UsageError
from surefoot.types.events import RunEnded
from surefoot.types.ports import EVERY_RUN, Claimed, Place, Recorded, RunFilter, RunPage, RunSummary
from surefoot.types.words import Posted, Word

_PIECE = 200  # records that are read at once for a subscriber: what takes about 20 ms

_PUT = """
WITH put AS (
    INSERT INTO surefoot.side AS kept (name, data) SELECT %(name)s, %(data)s
    WHERE %(was)s = ''::bytea OR EXISTS (SELECT 1 FROM surefoot.side WHERE name = %(name)s)
    ON CONFLICT (name) DO UPDATE SET data = excluded.data WHERE kept.data IN (%(was)s, excluded.data) RETURNING 1
) SELECT count(*) FROM put"""

_ROWS = """
SELECT seq, at, version, body, hash FROM surefoot.event WHERE run = %s AND seq >= %s ORDER BY seq LIMIT %s"""
_HASH = "SELECT hash FROM surefoot.event WHERE run = %s AND seq = %s"
_OLD = """
first_at < least(now() - interval '1 day', greatest(now() - interval '30 days', coalesce((
SELECT to_timestamp(min(run.started_at)) FROM surefoot.run JOIN surefoot.summary ON summary.run = run.number
WHERE summary.status = 'running'), 'infinity')))"""
"""Of a run that has not ended, bytes may be needed for a month that no record mentions yet."""
_UNUSED = f"SELECT digest FROM surefoot.blob WHERE {_OLD}"  # noqa: S608  # words of ours
_MENTIONS = """
SELECT run, seq, ARRAY(SELECT regexp_matches(convert_from(body, 'UTF8'), '[0-9a-f]{64}', 'g'))
FROM surefoot.event WHERE (run, seq) > (%s, %s) ORDER BY run, seq LIMIT 1000"""
_REMOVE = f"""
WITH gone AS (
    DELETE FROM surefoot.blob WHERE digest = ANY (%s) AND {_OLD} RETURNING length(data)
) SELECT coalesce(sum(length), 0)::bigint FROM gone"""  # noqa: S608  # the same
_MOST_REMOVED = 500  # bytes that are removed at once


class PostgresJournal:
    """A `JournalStore` in a database of that address, as libpq takes it: `postgresql://USER@HOST/DATABASE`.

    Its tables are made at the first use, in the schema `surefoot`, where the user may make them. A password belongs in
    `$PGPASSWORD` or `~/.pgpass`. A server that goes away is waited for, up to a minute. What other processes write is
    told at once, and looked for every five seconds. `name` is the address without user and password. Raises
    `UsageError` for an address that cannot be read.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = Database(url).name
        self._opened: OpenDatabase | None = None

    @property
    def side(self) -> PostgresSide:
        return PostgresSide(self._at_work, self.name)

    async def open(self, run_id: str, *, create: bool = False, fence: int | None = None) -> PostgresRun:
        return await (await self._at_work()).open(run_id, create=create, fence=fence)

    async def fork(self, parent: str, at: int, run_id: str) -> None:
        here = await self._at_work()
        found = await here.reader.find(parent)
        check_fork(parent, at, found.row.events)
        if await here.inbox.make(run_id, (found.row.number, at, await _hash_before(here, found, at)), "") is None:
            await here.reader.find(parent)  # it may have been deleted meanwhile
            raise RunExists(f"journal {self.name} already has a run {run_id}; resume it, or choose another id")

    async def runs(self, limit: int = 50) -> Sequence[RunSummary]:
        reader = (await self._at_work()).reader
        return [await reader.current_summary(run_id) for run_id in await reader.newest(limit)]

    async def beginning(self, prefix: str, limit: int = 50) -> Sequence[str]:
        return await (await self._at_work()).reader.beginning(prefix, limit)

    async def read_recorded(
        self, run_id: str, since: int = 0, limit: int | None = None
    ) -> tuple[Sequence[Recorded], str]:
        reader = (await self._at_work()).reader
        records, wrong = await reader.load(await reader.find(run_id), max(since, 0), limit)
        return records, "" if wrong is None else str(wrong)

    async def subscribe(self, run_id: str, since: int = 0) -> AsyncIterator[Recorded]:
        at, since, last = await self._at_work(), max(since, 0), None
        found = await at.reader.find(run_id)
        with at.follower.watch(found.row.number) as changed:
            while not at.follower.is_over:
                changed.clear()
                records, wrong = await at.reader.load(found, since, _PIECE, read=last)
                since += len(records)
                for record in records:
                    last = record
                    yield record
                if wrong is not None:
                    await at.reader.find(run_id)  # of a run that was deleted nothing is wrong
                    raise wrong
                if len(records) == _PIECE:
                    continue
                if last is None and since:
                    before, _ = await at.reader.load(await at.reader.find(run_id), since - 1, 2)
                    last = before[0] if len(before) == 1 else None
                if last is not None and isinstance(last.event, RunEnded):
                    return
                await changed.wait()

    async def put_blob(self, run_id: str, data: bytes) -> str:
        at = await self._at_work()
        await at.reader.find(run_id)
        await keep(at.database, [(digest := digest_of(data), data)])
        return digest

    async def get_blob(self, digest: str) -> bytes:
        return await (await self._at_work()).reader.blob(digest)

    async def say(self, run_id: str, word: Word, *, key: str = "") -> Posted:
        at = await self._at_work()
        number, posted = await at.inbox.say((await at.reader.find(run_id)).row.run_id, word, key)
        at.follower.note_word(number)
        return posted

    async def posted(self, run_id: str, number: int) -> Posted:
        at = await self._at_work()
        return await at.inbox.posted(run_id, (await at.reader.find(run_id)).row.number, number)

    async def list(self, wanted: RunFilter = EVERY_RUN, after: str = "", limit: int = 50) -> RunPage:
        return await (await self._at_work()).reader.page(wanted, after, limit)

    async def count(self, wanted: RunFilter = EVERY_RUN, most: int = 10_000) -> int:
        return await (await self._at_work()).reader.count(wanted, most)

    async def summary(self, run_id: str) -> RunSummary:
        return await (await self._at_work()).reader.current_summary(run_id)

    async def changes(self, since: int | None = None) -> AsyncIterator[RunSummary]:
        at = await self._at_work()
        since = await at.reader.last_change() if since is None else since
        with at.follower.watch(EVERY) as changed:
            while not at.follower.is_over:
                changed.clear()
                summaries = await at.reader.changed(since)
                for summary in summaries:
                    since = summary.change
                    yield summary
                if not summaries:
                    await changed.wait()

    async def delete(self, run_id: str, *, end: str = "") -> None:
        await (await self._at_work()).inbox.delete(run_id, end)

    async def origin(self, run_id: str) -> Origin:
        return _origin(await (await self._at_work()).reader.find(run_id))

    async def rows(self, run_id: str, since: int = 0, limit: int | None = None) -> Sequence[Row]:
        at = await self._at_work()
        found = await at.reader.find(run_id)
        since = max(since, found.row.at)
        if since >= found.row.events:
            return []
        before = await _hash_before(at, found, since)
        given = await at.database.ask(_ROWS, (found.row.number, since, limit))
        return list(all_proven(run_id, Place(since, before), given))

    async def adopt(self, origin: Origin, rows: Sequence[Row] = (), blobs: Sequence[Blob] = ()) -> None:
        at = await self._at_work()
        check_blobs(origin.run_id, blobs)
        await keep(at.database, blobs)
        while not await _is_adopted(at, origin, rows):
            pass

    async def sweep(self) -> int:
        """Remove the bytes of more than a day ago that no record mentions, not even in a text; how many there were.

        All records are looked through while others write, some at a time. A store sends bytes again with a record that
        is written meanwhile, unless it has sent them some seconds ago; what was sent again stays.
        """
        ask = (await self._at_work()).database.ask
        unused = {str(digest) for (digest,) in await ask(_UNUSED)}
        at, is_more = (0, -1), bool(unused)
        while is_more:
            rows = await ask(_MENTIONS, at)
            for run, seq, found in rows:
                at = run, seq
                unused.difference_update(digest for (digest,) in found)
            is_more = bool(rows and unused)
        digests, removed = sorted(unused), 0
        for first in range(0, len(digests), _MOST_REMOVED):
            ((size,),) = await ask(_REMOVE, (digests[first : first + _MOST_REMOVED],))
            removed += size
        return removed

    async def claim(self, agents: Collection[str], limit: int, lease_s: float) -> Sequence[Claimed]:
        at = await self._at_work()
        async with at.taking:
            found = await at.inbox.claim(agents, limit, lease_s, at.held)
            until = at.loop.time() + lease_s  # whoever claimed one and left before opening it would keep it for good
            at.claimed |= {one.run_id: (number, until) for number, one in found.items()}
        return list(found.values())

    async def renew(self, lease_s: float) -> Collection[str]:
        at = self._now()  # what is queued may take longer than the leases last
        return await at.inbox.renew({run.line.number: run_id for run_id, run in at.driven.items()}, lease_s)

    async def aclose(self) -> None:
        """Write what is queued, give up what is driven, and close, unless another running loop drives some of it."""
        at = self._opened
        if at is not None and not (at.driven and at.is_foreign()):
            at = self._here(at)
            self._opened = None
            await at.aclose()

    async def _at_work(self) -> OpenDatabase:
        """What this store has of its database, once what was queued is written."""
        at = self._now()
        await at.writer.flushed()
        return at

    def _now(self) -> OpenDatabase:
        at = self._opened = self._here(self._opened or OpenDatabase(self._url))
        return at

    def _here(self, at: OpenDatabase) -> OpenDatabase:
        if at.pid != os.getpid():
            raise UsageError("this journal was opened before the process was forked; make a new one in the child")
        if at.loop is not asyncio.get_running_loop():
            if at.is_foreign():
                raise UsageError(
                    "this journal is in use on another event loop (`run_sync` has its own): make one for each loop"
                )
            at.rebind()
        return at


class PostgresSide:
    """A `SideStore` in a table: what is kept under a name is one row."""

    def __init__(self, at_work: Callable[[], Awaitable[OpenDatabase]], name: str) -> None:
        self._at_work = at_work
        self._name = name

    async def get(self, name: str) -> bytes:
        told = "SELECT data FROM surefoot.side WHERE name = %s"
        return next((row[0] for row in await (await self._at_work()).database.ask(told, (name,))), b"")

    async def put(self, name: str, data: bytes, was: bytes) -> bool:
        values = {"name": name, "data": data, "was": was}
        ((count,),) = await (await self._at_work()).database.ask(_PUT, values)
        return count == 1

    def place(self, name: str) -> str:
        return f"{name} in the table surefoot.side of {self._name}"


async def _is_adopted(here: OpenDatabase, wanted: Origin, given: Sequence[Row]) -> bool:
    """Whether they are kept, or somebody else was first, so that there is more of the run by now."""
    run_id, reader, writer = wanted.run_id, here.reader, here.writer
    known, parent = None, None
    try:
        found = await reader.find(run_id)
    except RunUnknown:
        place = Place(wanted.fork, genesis(run_id))
        if wanted.parent:
            shared = await reader.find(wanted.parent)
            parent = shared.row
            check_fork(wanted.parent, wanted.fork, parent.events)
            place = Place(wanted.fork, await _hash_before(here, shared, wanted.fork))
        is_here = False
    else:
        if found.is_driven:
            raise RunBusy(f"run {run_id} is being driven here; wait until it stands still")
        check_origin(wanted, _origin(found))
        place, is_here = Place(found.row.events, found.head), True
        last = max((row.seq for row in given if row.seq < place.seq), default=-1)
        known = next((row[0] for row in await here.database.ask(_HASH, (found.row.number, last))), None)
    new = new_rows(run_id, place, given, lambda _: known)
    hashes = (place.hash, *(row.hash for row in new))
    records = [(await reader.record(run_id, row.seq, hash_, row))[0] for hash_, row in zip(hashes, new, strict=False)]
    if not is_here:
        if await here.inbox.make(run_id, (parent.number if parent else None, wanted.fork, place.hash), "") is None:
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
        line.summary = summarise(line.summary, (record.event,), record.at)
    writer.add(line, [(line.number, row.seq, row.at, row.form, row.body, row.hash) for row in new])
    await writer.flushed()
    if line.failure is not None:
        raise line.failure
    return not is_overtaken


async def _hash_before(here: OpenDatabase, found: Found, seq: int) -> bytes:
    """The hash of the record before that place of a run. Raises `JournalCorrupt`."""
    if seq == 0:
        return genesis(found.row.run_id)
    records, wrong = await here.reader.load(found, seq - 1, 1)
    if wrong is not None:
        raise wrong
    return bytes.fromhex(records[0].hash)


def _origin(found: Found) -> Origin:
    parent = found.segments[-2].run_id if found.row.parent is not None else ""
    return Origin(found.row.run_id, found.row.started_at, parent, found.row.at)
