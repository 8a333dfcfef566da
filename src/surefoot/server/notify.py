"""Telling people that they are asked: a signed request to one address for each question, which no run waits for."""

from __future__ import annotations

import asyncio
import hmac
import time
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp

from surefoot.server.answers import dumped
from surefoot.server.door import LOG
from surefoot.server.tales import Library, Reading
from surefoot.telling.state import Question
from surefoot.types.errors import JournalError, JournalUnavailable, SurefootError
from surefoot.types.ports import JournalStore, RunFilter, RunSummary

SIGNATURE = "Surefoot-Signature"
ATTEMPTS = 5
_LIMIT = aiohttp.ClientTimeout(total=10)
_MOST_TOLD = 10_000
_AT_ONCE = 8
_NEWEST = 200


@dataclass(slots=True)
class Notifier:
    """Posts `{run, agent, question, link}` to `url`, with the arguments of a call only where that was asked for.

    The signature is "t=SECONDS,v1=HEX": HMAC-SHA256 of "SECONDS.BODY". `pause_s` is that before a second attempt; each
    further one is twice as long.
    """

    store: JournalStore
    library: Library
    url: str
    secret: bytes
    page: str
    shows_arguments: bool = False
    pause_s: float = 1.0
    _told: dict[tuple[str, str, str], None] = field(default_factory=dict[tuple[str, str, str], None])

    async def run(self) -> None:
        """Tell of each question once, first of those that are open, until it is cancelled or the store is closed."""
        places, since, is_closed = asyncio.Semaphore(_AT_ONCE), -1, False
        async with aiohttp.ClientSession(timeout=_LIMIT) as client, asyncio.TaskGroup() as group:

            async def look(run: RunSummary) -> None:
                for question in await self._new(run) if run.questions or run.standing else ():
                    await places.acquire()
                    telling = group.create_task(self._tell(client, run, question))
                    telling.add_done_callback(lambda _: places.release())

            while not is_closed:
                try:
                    if since < 0:  # what is asked while this looks has changed after the newest of these
                        newest = max((one.change for one in (await self.store.list(limit=_NEWEST)).runs), default=0)
                        cursor: str | None = ""
                        while cursor is not None:
                            page = await self.store.list(RunFilter(waiting=True), cursor, _NEWEST)
                            for run in page.runs:
                                await look(run)
                            cursor = page.next or None
                        since = newest
                    async for run in self.store.changes(since):
                        await look(run)
                        since = run.change
                    is_closed = True
                except JournalError as error:  # what has changed meanwhile is told when it is back
                    LOG.warning("no questions are posted until the journal is back: %s", error)
                    await asyncio.sleep(self.pause_s)

    async def _new(self, run: RunSummary) -> list[Question]:
        """The questions of a run that nobody was told of."""
        try:
            waiting = await self.library.waiting(run, Reading(self.store, run.run_id))
        except JournalUnavailable:  # it is told when the journal is back
            raise
        except SurefootError:  # it was deleted meanwhile, or is damaged
            return []
        found = [one for one in waiting if (run.run_id, one.call, one.digest) not in self._told]
        self._told.update({(run.run_id, one.call, one.digest): None for one in found})
        while len(self._told) > _MOST_TOLD:
            del self._told[next(iter(self._told))]
        return found

    async def _tell(self, client: aiohttp.ClientSession, run: RunSummary, question: Question) -> None:
        asked: dict[str, object] = {"call": question.call, "name": question.name, "about": question.about}
        if self.shows_arguments:
            asked["arguments"] = question.arguments
        link = f"{self.page}runs/{run.run_id}/calls/{question.call}"
        body = dumped({"run": run.run_id, "agent": run.agent, "question": asked, "link": link})
        for attempt in range(ATTEMPTS):
            with suppress(aiohttp.ClientError, TimeoutError):
                at = int(time.time())
                signed = hmac.digest(self.secret, b"%d." % at + body, "sha256").hex()
                headers = {"Content-Type": "application/json", SIGNATURE: f"t={at},v1={signed}"}
                async with client.post(self.url, data=body, headers=headers) as response:
                    if response.ok:
                        return
            await asyncio.sleep(self.pause_s * 2**attempt)
        LOG.warning("a question of run %s was not delivered in %d attempts: %s", run.run_id, ATTEMPTS, self.url)
