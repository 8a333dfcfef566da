"""Runs in a PostgreSQL database: many processes on many machines write to it, each run has one driver at a time.

Nothing is asked of the server before the first use. One store belongs to one event loop at a time. Source:
spec/scale.md, section 3; docs/decisions/29-postgresql.md.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence

from surefoot.journal.codec import Blob, check_fork, digest_of
from surefoot.journal.postgres_archive import adopt, origin, rows, sweep
from surefoot.journal.postgres_follow import EVERY
from surefoot.journal.postgres_list import Lister
from surefoot.journal.postgres_open import OpenDatabase, PostgresRun
from surefoot.journal.postgres_server import Database
from surefoot.journal.postgres_write import keep
from surefoot.types.archive import Origin, Row
from surefoot.types.errors import RunExists, UsageError
from surefoot.types.events import RunEnded
from surefoot.types.ports import EVERY_RUN, Claimed, Recorded, RunFilter, RunPage, RunSummary
from surefoot.types.words import Posted, Word

_PIECE = 200
"""Records that are read at once for a subscriber: what takes about 20 ms."""

_PUT = """
WITH put AS (
    INSERT INTO surefoot.side AS kept (name, data) SELECT %(name)s, %(data)s
    WHERE %(was)s = ''::bytea OR EXISTS (SELECT 1 FROM surefoot.side WHERE name = %(name)s)
    ON CONFLICT (name) DO UPDATE SET data = excluded.data WHERE kept.data IN (%(was)s, excluded.data) RETURNING 1
) SELECT count(*) FROM put"""


class PostgresJournal:
    """A `JournalStore` in a database of that address, as libpq takes it: `postgresql://USER@HOST/DATABASE`.

    Its tables are made at the first use, in the schema `surefoot`, where the user may make them. A password belongs in
    `$PGPASSWORD` or `~/.pgpass`. A server that goes away is waited for, up to a minute. `name` is the address without
    user and password. Raises `UsageError` for an address that cannot be read.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = Database(url).name
        self._opened: OpenDatabase | None = None

    @property
    def side(self) -> PostgresSide:
        """What is kept beside the runs, in a table."""
        return PostgresSide(self._at_work, self.name)

    async def open(self, run_id: str, *, create: bool = False, fence: int | None = None) -> PostgresRun:
        """Take the right to drive a run. Raises `RunBusy` while another has it, `UsageError` for an unknown run.

        With `create` the run must be new, or have no records and nobody who drives it: whoever made it died before the
        first.
        """
        return await (await self._at_work()).open(run_id, create=create, fence=fence)

    async def fork(self, parent: str, at: int, run_id: str) -> None:
        """Make a run that shares the records of `parent` before `at`, at least one. Copies no events."""
        here = await self._at_work()
        found = await here.reader.find(parent)
        check_fork(parent, at, found.row.events)
        records, wrong = await here.reader.load(found, at - 1, 1)
        if wrong is not None:
            raise wrong
        if await here.make(run_id, (found.row.number, at, bytes.fromhex(records[0].hash)), "") is None:
            await here.reader.find(parent)  # it may have been deleted meanwhile
            raise RunExists(f"there is a run {run_id} in the journal {self.name} already; choose another id")

    async def runs(self, limit: int = 50) -> Sequence[RunSummary]:
        """The newest runs first, but those without records.

        `status` is the ending's kind, or "running", "interrupted", "damaged".
        """
        reader = (await self._at_work()).reader
        return [await reader.listed(run_id) for run_id in await reader.newest(limit)]

    async def beginning(self, prefix: str, limit: int = 50) -> Sequence[str]:
        """The ids that begin so, of runs with records, in their order."""
        return await (await self._at_work()).reader.beginning(prefix, limit)

    async def read_recorded(
        self, run_id: str, since: int = 0, limit: int | None = None
    ) -> tuple[Sequence[Recorded], str]:
        """All that can be read, with places and hashes, and what is wrong with the rest ("" when nothing is)."""
        reader = (await self._at_work()).reader
        records, wrong = await reader.load(await reader.find(run_id), max(since, 0), limit)
        return records, "" if wrong is None else str(wrong)

    async def subscribe(self, run_id: str, since: int = 0) -> AsyncIterator[Recorded]:
        """Records from `since` on, then each new one once it is written, until the run ends; also what others write.

        What other processes write is told at once, and looked for every five seconds. Ends, too, when this store is
        closed.
        """
        at, since, last = await self._at_work(), max(since, 0), None
        found = await at.reader.find(run_id)
        with at.follower.watch(found.row.number) as changed:
            while not at.follower.is_over:
                changed.clear()
                records, wrong = await at.reader.load(found, since, _PIECE)
                since += len(records)
                for record in records:
                    last = record.event
                    yield record
                if wrong is not None:
                    raise wrong
                if len(records) == _PIECE:
                    continue
                if last is None and since:
                    before, _ = await at.reader.load(await at.reader.find(run_id), since - 1, 2)
                    last = before[0].event if len(before) == 1 else None
                if isinstance(last, RunEnded):
                    return
                await changed.wait()

    async def put_blob(self, run_id: str, data: bytes) -> str:
        """Keep bytes for a run, without the right to drive it; written when it returns."""
        at = await self._at_work()
        await at.reader.find(run_id)
        await keep(at.database, [(digest := digest_of(data), data)])
        return digest

    async def get_blob(self, digest: str) -> bytes:
        """The bytes of that digest. Raises `JournalError` when they are not there, or were altered."""
        return await (await self._at_work()).reader.blob(digest)

    async def say(self, run_id: str, word: Word, *, key: str = "") -> Posted:
        """Put a word into the inbox of a run and wake whoever drives it. See `JournalStore`."""
        at = await self._at_work()
        number, posted = await at.inbox.say((await at.reader.find(run_id)).row.run_id, word, key)
        at.follower.said(number)
        return posted

    async def posted(self, run_id: str, number: int) -> Posted:
        """A word of a run, with what came of it. Raises `UsageError` where there is none of that number."""
        at = await self._at_work()
        return await at.inbox.posted(run_id, (await at.reader.find(run_id)).row.number, number)

    async def list(self, wanted: RunFilter = EVERY_RUN, after: str = "", limit: int = 50) -> RunPage:
        """A page of the runs that are wanted, newest first; `after` is `RunPage.next`. Reads no journal."""
        return await (await self._lister()).page(wanted, after, limit)

    async def count(self, wanted: RunFilter = EVERY_RUN, most: int = 10_000) -> int:
        """How many runs are wanted; counting ends at `most`."""
        return await (await self._lister()).count(wanted, most)

    async def summary(self, run_id: str) -> RunSummary:
        """A run in one line, as of its last record. Raises `UsageError` for an unknown run."""
        return await (await self._at_work()).reader.listed(run_id)

    async def changes(self, since: int | None = None) -> AsyncIterator[RunSummary]:
        """Summaries that were kept after the change `since`, then each as it changes, until this store is closed."""
        at, lister = await self._at_work(), await self._lister()
        since = await lister.last_change() if since is None else since
        with at.follower.watch(EVERY) as changed:
            while not at.follower.is_over:
                changed.clear()
                summaries = await lister.changed(since)
                for summary in summaries:
                    since = summary.change
                    yield summary
                if not summaries:
                    await changed.wait()

    async def delete(self, run_id: str, *, end: str = "") -> None:
        """Take a run out for good; bytes that others may share stay. See `JournalStore`."""
        at = await self._at_work()
        await at.inbox.delete(run_id, end)

    async def origin(self, run_id: str) -> Origin:
        """Where a run comes from. Raises `UsageError` for an unknown run."""
        return await origin(await self._at_work(), run_id)

    async def rows(self, run_id: str, since: int = 0, limit: int | None = None) -> Sequence[Row]:
        """Its own records from `since` on, proven, at most `limit`. See `Archive`."""
        return await rows(await self._at_work(), run_id, since, limit)

    async def adopt(self, origin: Origin, rows: Sequence[Row] = (), blobs: Sequence[Blob] = ()) -> None:
        """Keep records of another journal as they are, all or none. See `Archive`."""
        await adopt(await self._at_work(), origin, rows, blobs)

    async def sweep(self) -> int:
        """Remove the bytes that no record refers to, while others write; how many there were."""
        return await sweep(await self._at_work())

    async def claim(self, agents: Collection[str], limit: int, lease_s: float) -> Sequence[Claimed]:
        """Take the right to drive up to so many runs of these agents that are ready, or whose driver is gone."""
        at = await self._at_work()
        async with at.taking:
            found = await at.inbox.claim(agents, limit, lease_s, at.held)
            at.claimed |= {one.run_id: number for number, one in found.items()}
        return list(found.values())

    async def renew(self, lease_s: float) -> Collection[str]:
        """Extend the leases of all runs that this store has claimed; gives those that others have taken."""
        at = self._now()  # what is queued may take longer than the leases last
        return await at.inbox.renew({run.line.number: run_id for run_id, run in at.driven.items()}, lease_s)

    async def aclose(self) -> None:
        """Write what is queued, give up the runs that are driven, and close; a later use connects again.

        While another event loop that is running drives runs of it, nothing is done.
        """
        at = self._opened
        if at is not None and not (at.driven and at.is_foreign()):
            at = self._here(at)
            self._opened = None
            await at.aclose()

    async def _lister(self) -> Lister:
        at = await self._at_work()
        return Lister(at.database, at.reader)

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
            at.moved()
        return at


class PostgresSide:
    """A `SideStore` in a table: what is kept under a name is one row."""

    def __init__(self, at_work: Callable[[], Awaitable[OpenDatabase]], name: str) -> None:
        self._at_work = at_work
        self._name = name

    async def get(self, name: str) -> bytes:
        """What is in the row, b"" where there is none."""
        told = "SELECT data FROM surefoot.side WHERE name = %s"
        return next((row[0] for row in await (await self._at_work()).database.ask(told, (name,))), b"")

    async def put(self, name: str, data: bytes, was: bytes) -> bool:
        """Write the row where it holds what it `was`."""
        values = {"name": name, "data": data, "was": was}
        ((count,),) = await (await self._at_work()).database.ask(_PUT, values)
        return count == 1

    def place(self, name: str) -> str:
        """The table and the row."""
        return f"{name} in the table surefoot.side of {self._name}"
