"""A database while a store uses it: who drives which of its runs, and how a run is appended to."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from surefoot.core.state.summary import ready_at
from surefoot.journal.codec import check_there, digest_of, genesis, rows_of
from surefoot.journal.postgres_follow import Follower
from surefoot.journal.postgres_inbox import Inbox
from surefoot.journal.postgres_read import Reader
from surefoot.journal.postgres_server import Database, new_token
from surefoot.journal.postgres_write import Line, Writer
from surefoot.types.errors import JournalError, JournalUnavailable, RunBusy, RunExists, UsageError, overtaken
from surefoot.types.events import Event
from surefoot.types.ports import NO_RECORDS, Durability, Place, RunSummary, Standing
from surefoot.types.words import Posted

_LEASE_S = 30.0  # for how long a run that was opened, not claimed, stays with a process that is cut off

_CLOSING_S = 5.0  # for how long a store that is closed waits for its server


class OpenDatabase:
    """What a store has of its database, on one event loop at a time, and the runs that it drives.

    It says every ten seconds that it lives while it drives runs that nobody renews, those that were not claimed.
    """

    def __init__(self, url: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.pid = os.getpid()
        self.token = new_token()
        self.driven: dict[str, PostgresRun] = {}
        self.claimed: dict[str, tuple[int, float]] = {}
        self.opening: dict[str, int] = {}
        self.taking = asyncio.Lock()
        self.database = Database(url)
        self.follower = Follower(self.database)
        self.reader = Reader(self.database)
        self.inbox = Inbox(self.database, self.token)
        self.writer = Writer(self.database, self.token, self.follower.tell)
        self._beating: asyncio.Task[None] | None = None

    def is_foreign(self) -> bool:
        """Whether another event loop uses it, which is still running."""
        return self.loop is not asyncio.get_running_loop() and self.loop.is_running()

    def rebind(self) -> None:
        """Go on on this event loop; the one before is not running any more."""
        self.loop, self._beating, self.taking = asyncio.get_running_loop(), None, asyncio.Lock()
        self.database.rebind()
        self.follower.rebind()
        self.writer.rebind()

    async def open(self, run_id: str, *, create: bool, fence: int | None) -> PostgresRun:
        if run_id in self.driven or run_id in self.opening:
            raise RunBusy(f"run {run_id} is being driven by this process already; wait until it stands still")
        is_claimed = fence is not None and run_id in self.claimed
        self.opening[run_id], _ = self.claimed.pop(run_id, (0, 0.0))
        try:
            if not is_claimed:
                await self.inbox.live(_LEASE_S)
            made = await self.inbox.make(run_id, (None, 0, genesis(run_id)), self.token) if create else None
            if made is not None:
                number, began = made
                line = Line(number, 0, Place(0, genesis(run_id)), RunSummary(run_id, began))
            else:
                line = await self._take(run_id, fence, is_new=create)
            self.writer.forget(line.number)
            run = self.driven[run_id] = PostgresRun(self, line, is_claimed=is_claimed)
        finally:
            del self.opening[run_id]
        if not is_claimed and self._beating is None:
            self._beating = asyncio.get_running_loop().create_task(self._beat())
        return run

    @property
    def held(self) -> Sequence[int]:
        """The numbers of the runs that are driven here, will be, or still are in the database: none is claimed here."""
        driven = (run.line.number for run in self.driven.values())
        claimed = (number for number, until in self.claimed.values() if until > self.loop.time())
        return (*driven, *claimed, *self.opening.values(), *self.writer.leaving)

    async def _take(self, run_id: str, claimed: int | None, *, is_new: bool) -> Line:
        found = await self.reader.find(run_id)
        if is_new and found.row.events:
            raise RunExists(f"journal {self.database.name} already has a run {run_id}; resume it, or choose another id")
        self.opening[run_id] = found.row.number
        dead = "" if found.is_driven else found.row.owner
        async with self.taking:  # a claim that is under way does not know of it
            fence = await self.inbox.take(run_id, dead, claimed)
        if fence is None and claimed is not None:
            raise overtaken(run_id)
        if fence is None:
            raise RunBusy(f"run {run_id} is being driven by another process; wait for it or end it")
        found = await self.reader.find(run_id)
        line = Line(found.row.number, fence, Place(found.row.events, found.head), NO_RECORDS)
        try:
            line.summary = await self.reader.summary(found)
        except JournalError as error:  # where it is damaged, a word would have it claimed again, for ever
            line.freed = None, isinstance(error, JournalUnavailable)
            self.writer.add(line)
            await self.writer.flushed()
            raise
        return line

    async def _beat(self) -> None:
        while any(not run.is_claimed for run in self.driven.values()):
            with suppress(JournalError):  # it is away: the next time is soon enough
                await self.inbox.live(_LEASE_S)
            await asyncio.sleep(_LEASE_S / 3)
        self._beating = None

    async def aclose(self) -> None:
        """Write what is queued, let others drive, and close. Raises `JournalError`, which names what may be missing."""
        driven = tuple(self.driven.values())
        for run in driven:
            run.give_up()
        try:
            try:
                async with asyncio.timeout(_CLOSING_S):
                    await self.writer.flushed(synced=True)
                    await self.inbox.leave()
            except (JournalError, TimeoutError):  # its leases end by themselves
                self.writer.give_up()
        finally:
            if self._beating is not None:
                self._beating.cancel()
            await self.follower.aclose()
            await self.database.aclose()
        if failure := next((run.line.failure for run in driven if run.line.failure), None):
            raise failure


class PostgresRun:
    """A `RunJournal` of one run in a database."""

    def __init__(self, opened: OpenDatabase, line: Line, *, is_claimed: bool) -> None:
        self.run_id = line.summary.run_id
        self.is_claimed = is_claimed
        self.line = line
        self._opened = opened
        self._writer = opened.writer
        self._is_released = False

    @property
    def place(self) -> Place:
        return self.line.end

    async def read(self, since: int = 0) -> Sequence[Event]:
        await self._writer.flushed()
        self._check()
        records, wrong = await self._opened.reader.load(await self._opened.reader.find(self.run_id), max(since, 0))
        if wrong is not None:
            raise wrong
        return [record.event for record in records]

    async def append(
        self,
        events: Sequence[Event],
        durability: Durability = "soon",
        *,
        heard: Sequence[Posted] = (),
        at: float | None = None,
        place: Place | None = None,
    ) -> Place:
        self._check()
        line, writer, now = self.line, self._writer, time.time() if at is None else at
        rows, blobs, end, summary = rows_of(line.number, events, now, place or line.end, line.summary)
        if place in (None, line.end):
            line.summary = summary
            for digest, data, _, _ in blobs:
                writer.put(digest, data)
            writer.add(line, rows, heard)
        else:
            await writer.flushed()
            found = await self._opened.reader.find(self.run_id)
            check_there(self.run_id, (await self._opened.reader.load(found, max(end.seq - 1, 0), 1))[0], end)
        if durability == "soon":
            writer.soon()
        else:
            await self._write(writer.flushed(synced=durability == "synced"))
        return end

    async def put_blob(self, data: bytes) -> str:
        self._check()
        digest = digest_of(data)
        self._writer.put(digest, data)
        return digest

    async def get_blob(self, digest: str) -> bytes:
        self._check()
        await self._writer.flushed()
        return await self._opened.reader.blob(digest)

    async def words(self) -> Sequence[Posted]:
        await self._writer.flushed()
        self._check()
        return await self._opened.inbox.unheard(self.line.number)

    def listen(self, wake: Callable[[], None] | None) -> None:
        self._opened.follower.hear(self.line.number, wake)

    async def release(self, standing: Standing = "", wake_at: float | None = None, *, why: str = "") -> None:
        if not self._is_released:
            if standing:
                self.line.summary = replace(self.line.summary, standing=standing, reason=why)
            self.give_up(wake_at)
            await self._write(self._writer.flushed())

    def give_up(self, wake_at: float | None = None) -> None:
        """Queue what is left to write, with the right to drive as the last thing."""
        self._is_released, summary = True, self.line.summary
        self.line.freed = ready_at(summary, wake_at, has_words=False), summary.standing != "set_aside"
        self._writer.add(self.line)
        self._opened.follower.hear(self.line.number, None)
        self._opened.driven.pop(self.run_id, None)

    async def _write(self, writing: Awaitable[None]) -> None:
        await writing
        if self.line.failure is not None:
            raise self.line.failure

    def _check(self) -> None:
        if self._is_released:
            raise UsageError(f"run {self.run_id} was released, or its agent or journal closed; resume it to go on")
        if self.line.failure is not None:
            raise self.line.failure
