"""Telling people that they are asked: once a question, signed, and tried again."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncGenerator, Mapping

import pytest
from aiohttp import web
from server_agents import agents
from server_world import LIMIT_S, serving

from surefoot import MemoryJournal
from surefoot.server.notify import SIGNATURE, Notifier
from surefoot.types.errors import JournalUnavailable
from surefoot.types.ports import RunSummary

pytestmark = pytest.mark.anyio

SECRET = b"made up"


class Away(MemoryJournal):
    """A journal that cannot be asked what has changed, the first time."""

    is_there = False

    async def changes(self, since: int | None = None) -> AsyncGenerator[RunSummary]:
        was_there, self.is_there = self.is_there, True
        if not was_there:
            raise JournalUnavailable("away")
        async for one in super().changes(since):
            yield one


@pytest.mark.parametrize("shows", [False, True])
async def test_each_question_is_told_once_however_often_it_takes(shows: bool) -> None:
    told: asyncio.Queue[tuple[Mapping[str, str], bytes]] = asyncio.Queue()
    answers = [500, 200]

    async def take(request: web.Request) -> web.Response:
        told.put_nowait((request.headers, await request.read()))
        return web.Response(status=answers.pop(0) if answers else 200)

    app = web.Application()
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    store = Away()
    async with serving(store, agents()) as served:
        page = "http://127.0.0.1/"
        library = served.site.library
        notifier = Notifier(store, library, url, SECRET, page, shows_arguments=shows, pause_s=0.01)
        running = None if shows else asyncio.ensure_future(notifier.run())
        await asyncio.sleep(0.1)
        run, question = await served.asks("send a mail to bob@example.org")
        if running is None:  # it was asked before anybody could be told
            running = asyncio.ensure_future(notifier.run())
        both = [await asyncio.wait_for(told.get(), LIMIT_S) for _ in "12"]  # the first was refused
        assert both[0][1] == both[1][1]
        headers, body = both[1]
        at, signed = headers[SIGNATURE].removeprefix("t=").split(",v1=")
        assert hmac.compare_digest(signed, hmac.digest(SECRET, at.encode() + b"." + body, "sha256").hex())
        said = json.loads(body)
        assert (said["run"], said["agent"]) == (run, "mailer")
        assert said["link"] == f"{page}runs/{run}/calls/{said['question']['call']}"
        assert ("arguments" in said["question"]) == shows
        path = f"/v1/runs/{run}/calls/{question['call']}/deny"
        assert (await served.ask("POST", path, {"digest": question["digest"]})).status == 200
        await served.until(run, "completed")
        assert told.empty()
        running.cancel()
        await asyncio.wait((running,))
    await runner.cleanup()
