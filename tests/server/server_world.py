"""A real server on loopback, in the event loop of the test, and a client that speaks to it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, cast

import aiohttp

from records import events_of
from surefoot import Agent
from surefoot.server.auth import RIGHTS, Keyring, Right, Token, digest_of
from surefoot.server.door import Names
from surefoot.server.process import server_of
from surefoot.server.site import Limits, Site
from surefoot.types.events import CallJudged, RunEnded, RunStarted
from surefoot.types.outcomes import Ending
from surefoot.types.ports import JournalStore
from surefoot.types.task import Task
from surefoot.worker import Worker

LIMIT_S = 20.0
Json = Any


def token_of(name: str) -> str:
    """The secret of a token of the tests."""
    return f"sft_{name}"


def token(name: str, *rights: Right, tenant: str = "", agents: tuple[str, ...] = ("*",)) -> Token:
    return Token(name, digest_of(token_of(name)), frozenset(rights), tenant, agents)


TOKENS = (
    token("all", *RIGHTS),
    token("reader", "read"),
    token("starter", "read", "start"),
    token("approver", "read", "approve"),
    token("canceller", "read", "cancel"),
    token("admin", "admin"),
    token("acme", *RIGHTS, tenant="acme"),
    token("other", *RIGHTS, tenant="other"),
    token("narrow", *RIGHTS, agents=("another",)),
    *(token(f"without-{right}", *set[Right](RIGHTS).difference({right})) for right in RIGHTS),
)


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The name of the problem; "" for none."""
        is_problem = self.headers.get("Content-Type") == "application/problem+json"
        return str(self.json["type"]).removeprefix("/problems/") if is_problem else ""


@dataclass
class Served:
    """A server that listens, and a client."""

    site: Site
    port: int
    client: aiohttp.ClientSession
    seen: list[Reply] = field(default_factory=list[Reply])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def ask(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        who: str = "all",
        headers: Mapping[str, str] | None = None,
        data: bytes | BytesIO | None = None,
    ) -> Reply:
        """One request and its whole answer."""
        sent = {"Authorization": f"Bearer {token_of(who)}"} if who else {}
        if body is not None or data is not None:
            sent["Content-Type"] = "application/json"
        given = json.dumps(body).encode() if body is not None else data
        request = self.client.request(method, f"{self.url}{path}", data=given, headers={**sent, **(headers or {})})
        async with request as response:
            reply = Reply(response.status, response.headers, await response.read())
        self.seen.append(reply)
        return reply

    async def get(self, path: str, who: str = "all") -> Json:
        reply = await self.ask("GET", path, who=who)
        assert reply.status == 200, reply.body
        return reply.json

    async def refused(self, told: str, method: str, path: str, body: Json = None, **more: Any) -> Reply:
        """The answer to a request that is refused; `told` is its status and its problem."""
        reply = await self.ask(method, path, body, **more)
        assert f"{reply.status} {reply.problem}" == told, reply.body
        return reply

    async def start(self, task: str, agent: str = "helper", who: str = "all", **more: Json) -> str:
        """The id of a run that is begun."""
        reply = await self.ask("POST", "/v1/runs", {"agent": agent, "task": task, **more}, who=who)
        assert reply.status == 202, reply.body
        assert reply.headers["Location"] == f"/v1/runs/{reply.json['run_id']}"
        return str(reply.json["run_id"])

    async def until(self, run: str, *statuses: str, who: str = "all") -> Json:
        """The run once it stands like that."""
        async with asyncio.timeout(LIMIT_S):
            while (shown := await self.get(f"/v1/runs/{run}", who))["status"] not in statuses:
                assert shown["status"] in ("queued", "running", "ready", "interrupted"), shown
                await asyncio.sleep(0.02)
        return shown

    async def asks(self, task: str, agent: str = "mailer", **more: Json) -> tuple[str, Json]:
        """A run that is begun and asks, with its question."""
        run = await self.start(task, agent, **more)
        (question,) = (await self.until(run, "paused"))["waiting"]
        return run, question

    async def done(self, task: str, who: str = "all", **more: Json) -> str:
        """A run that is begun and completed."""
        run = await self.start(task, who=who, **more)
        await self.until(run, "completed", who=who)
        return run

    async def frames(
        self,
        path: str,
        *,
        who: str = "all",
        headers: Mapping[str, str] | None = None,
        until: str = "end",
        most: int = 10_000,
    ) -> list[dict[str, str]]:
        """The frames of a stream up to the one of event `until`, or `most`."""
        sent = {"Authorization": f"Bearer {token_of(who)}", "Accept": "text/event-stream", **(headers or {})}
        found: list[dict[str, str]] = []
        async with asyncio.timeout(LIMIT_S), self.client.get(f"{self.url}{path}", headers=sent) as response:
            assert response.status == 200, await response.read()
            assert response.headers["Content-Type"].startswith("text/event-stream")
            async for one in frames_of(response.content):
                found.append(one)
                if one.get("event") == until or len(found) >= most:
                    break
        return found


async def frames_of(content: aiohttp.StreamReader) -> AsyncGenerator[dict[str, str]]:
    """Frames as they come; those without an event (pings, `retry`) are left out."""
    one: dict[str, str] = {}
    async for line in content:
        text = line.decode().rstrip("\n")
        if not text:
            if "event" in one:
                yield one
            one = {}
        elif not text.startswith(":"):
            name, _, value = text.partition(": ")
            one[name] = value


async def judged(store: JournalStore, run: str) -> list[tuple[str, str]]:
    """What people have said to the calls of a run, and who."""
    events = await events_of(store, run)
    return [(one.decision.kind, one.by) for one in events if isinstance(one, CallJudged) and one.rule == "person"]


async def task_of(store: JournalStore, run: str) -> Task:
    begun, *_ = await events_of(store, run)
    assert isinstance(begun, RunStarted)
    return begun.task


async def endings(store: JournalStore, run: str) -> list[Ending]:
    return [one.ending for one in await events_of(store, run) if isinstance(one, RunEnded)]


@asynccontextmanager
async def serving(
    store: JournalStore,
    agents: Mapping[str, Agent] | None = None,
    *,
    tokens: Sequence[Token] = TOKENS,
    limits: Limits | None = None,
    drive: int = 4,
    origins: Sequence[str] = (),
    nobody: Token | None = None,
) -> AsyncGenerator[Served]:
    """A server, with a worker where it has agents. It is closed in good order."""
    served = {name: cast("Agent", replace(cast("Any", one), journal=store)) for name, one in (agents or {}).items()}
    site = Site(store, served, Keyring(tokens, nobody), limits or Limits(requests_s=10_000, burst=10_000))
    if served and drive:
        site.worker, site.drives = Worker(store, served, most=drive, tell=site.live.tell), drive
    listening = socket.create_server(("127.0.0.1", 0))
    server = server_of(site, Names.of("127.0.0.1", ("runs.example",), origins), "127.0.0.1", 0)
    serving = asyncio.ensure_future(server.serve([listening]))
    working = asyncio.ensure_future(site.worker.run()) if site.worker else None
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            yield Served(site, listening.getsockname()[1], client)
    finally:
        site.leave()
        if site.worker is not None:
            await site.worker.drain(1.0)
        server.should_exit = True
        await asyncio.wait_for(serving, LIMIT_S)
        if working is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait_for(working, LIMIT_S)


async def raw(port: int, data: bytes, limit_s: float = LIMIT_S) -> bytes:
    """What a server answers to these bytes, until it closes."""
    async with asyncio.timeout(limit_s):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        await writer.drain()
        found = await reader.read()
        writer.close()
    return found
