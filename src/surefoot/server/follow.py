"""Streams: what happens in a run as it is recorded, what is said meanwhile, and runs as they change.

A reader has a place, which is the id of the last frame that moved it: `Last-Event-ID`, or `since`, goes on from there.
Source: spec/serving.md, section 5.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from starlette.responses import Response

from surefoot.server.answers import Problem, dumped, run_json
from surefoot.server.api import Asked
from surefoot.server.reads import list_events, run_of
from surefoot.server.shapes import Since, Stretch
from surefoot.server.signals import Heard, Said
from surefoot.server.site import Site
from surefoot.server.sse import PING, PING_S, RETRY, EventStream, Write, frame, record_frame
from surefoot.server.tails import Tail
from surefoot.server.tales import PIECE
from surefoot.telling.text import visible
from surefoot.types.errors import SurefootError
from surefoot.types.ports import RunSummary

SIGNAL_S = 0.05
"""Seconds for each frame of what is said: 20 a second."""
LOOK_S = 0.25
"""How soon after the last record it is looked whether the run stands still; then after twice as long, and so on."""
FEED_S = 1.0
_MOST_DUE = 1_000


async def events(asked: Asked[Stretch, None]) -> Response:
    """Give records of a run, or follow it as a stream."""
    if not asked.wants_stream():
        return await list_events(asked)
    run = await run_of(asked)
    last = _last_id(asked)
    return events_stream(asked, run, asked.query.since if last is None else last + 1)


def events_stream(
    asked: Asked[Any, Any], run: RunSummary, since: int, headers: Mapping[str, str] | None = None
) -> EventStream:
    """The records of a run from `since` on, as a stream."""
    site = asked.site

    async def tell(write: Write) -> None:
        wake = asyncio.Event()
        with site.reader(wake), site.live.listen(run.run_id, wake) as said:
            async with site.tails.of(run.run_id, run.events, wake) as tail:
                await _Reader(site, run.run_id, since, write, (wake, said, tail)).read()

    return EventStream(tell, site.pace.stream(asked.token.name), headers)


class _Reader:
    """Somebody who follows a run: where they are in its records, and in what is said."""

    def __init__(
        self, site: Site, run_id: str, place: int, write: Write, heard: tuple[asyncio.Event, Said, Tail]
    ) -> None:
        self._site, self._run_id, self._place, self._send = site, run_id, place, write
        self._wake, self._said, self._tail = heard
        self._heard = Heard()
        self._wrote_at = self._signal_at = 0.0
        self._look_at, self._pause_s = 0.0, LOOK_S
        self._alarm: asyncio.TimerHandle | None = None

    async def read(self) -> None:
        """Tell what there is, and wait for more, until the run or this server ends."""
        tail = self._tail
        await self._write(RETRY)
        self._recorded()
        while not self._site.leaving.is_set():
            self._wake.clear()
            if self._place < tail.first:
                if not await self._caught_up():
                    return
            elif self._place < tail.next:
                data, self._place = tail.after(self._place)
                await self._write(data)
                self._recorded()
            elif tail.is_over:
                await self._write(_damaged(self._place, tail.wrong) if tail.wrong else frame("end"))
                return
            else:
                await self._idle()
        await self._write(frame("bye"))

    async def _caught_up(self) -> bool:
        """Tell a piece of what was recorded before the tail begins; False where there is nothing more to be read."""
        records, wrong = await self._site.store.read_recorded(self._run_id, self._place, PIECE)
        self._place += len(records)
        await self._write(b"".join(map(record_frame, records)))
        if wrong:
            await self._write(_damaged(self._place, wrong))
        await asyncio.sleep(0)
        return bool(records) and not wrong

    async def _idle(self) -> None:
        """Nothing is recorded: tell what is said, whether the run stands still, and that this line is open."""
        now = time.monotonic()
        if now >= self._signal_at and (frames := self._said.since(self._heard)):
            self._signal_at = now + SIGNAL_S * len(frames)
            await self._write(b"".join(frames))
        if now >= self._look_at:
            self._look_at, self._pause_s = now + self._pause_s, min(2 * self._pause_s, PING_S)
            run = await self._site.store.summary(self._run_id)
            if run.status == "paused":
                self._look_at = math.inf
                await self._write(frame("paused", dumped(run_json(run))))
        if now >= self._wrote_at + PING_S:
            await self._write(PING)
        due = min(self._look_at, self._wrote_at + PING_S, self._signal_at if self._signal_at > now else math.inf)
        if self._alarm is None or not now < self._alarm.when() <= due:  # one that comes too early does no harm
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = asyncio.get_running_loop().call_at(due, self._wake.set)
        await self._wake.wait()

    def _recorded(self) -> None:
        self._look_at, self._pause_s = time.monotonic() + LOOK_S, 2 * LOOK_S

    async def _write(self, data: bytes) -> None:
        await self._send(data)
        self._wrote_at = time.monotonic()


async def feed(asked: Asked[Since, None]) -> Response:
    """Follow the runs that the token may see, each as it changes, at most once a second."""
    site, last = asked.site, _last_id(asked)
    since = asked.query.since if last is None else last

    async def tell(write: Write) -> None:
        wake, room, due = asyncio.Event(), asyncio.Event(), dict[str, RunSummary]()

        async def collect() -> None:
            changes: AsyncIterator[RunSummary] = site.store.changes(since)
            with suppress(SurefootError):  # the reader comes again, and is then told what is wrong
                async for run in changes:
                    if asked.token.sees(run):
                        due[run.run_id] = run
                        wake.set()
                    if len(due) >= _MOST_DUE:
                        room.clear()
                        await room.wait()
            wake.set()

        with site.reader(wake):
            collecting = asyncio.ensure_future(collect())
            try:
                await write(RETRY)
                while not site.leaving.is_set() and not (collecting.done() and not due):
                    wake.clear()
                    told = sorted(due.values(), key=lambda run: run.change)
                    due.clear()
                    room.set()
                    frames = [frame("summary", dumped(run_json(run)), run.change) for run in told]
                    await write(b"".join(frames) or PING)
                    await asyncio.sleep(FEED_S)
                    if not due:
                        await until(wake, PING_S)
                await write(frame("bye"))
            finally:
                collecting.cancel()
                with suppress(asyncio.CancelledError):
                    await collecting

    return EventStream(tell, site.pace.stream(asked.token.name))


def _last_id(asked: Asked[Any, Any]) -> int | None:
    """The place that a reader has come to, where it says so."""
    given = asked.request.headers.get("last-event-id", "")
    if given and not (given.isascii() and given.isdigit() and len(given) < len(str(2**53))):
        raise Problem("invalid", "Last-Event-ID: give the id of a frame of this stream")
    return int(given) if given else None


def _damaged(place: int, why: str) -> bytes:
    return frame("damaged", dumped({"at": place, "why": visible(why)}))


async def until(wake: asyncio.Event, most_s: float) -> None:
    """Wait until somebody wakes this reader, for so long at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(most_s, 0.0)):
            await wake.wait()
