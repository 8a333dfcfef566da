"""A worker for agents on Temporal's development server, runs that are waited for, and a call that lasts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, cast

from dev_server import Server
from temporalio.client import Client

from surefoot import Agent, Run, tool
from surefoot.core.loop.fold import fold
from surefoot.engines.temporal.payloads import workflow_id
from surefoot.engines.temporal.worker import Engine, connected
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.ports import JournalStore, RunSummary

NUMBERS = count()
PATIENCE_S = 120


def store_of(agent: Agent[Any]) -> JournalStore:
    return cast("JournalStore", agent.journal)  # as the tests of this room give it


@asynccontextmanager
async def engine(server: Server, *agents: Agent[Any], queue: str = "", **options: Any) -> AsyncGenerator[Client]:
    """A worker for these agents, which have one store, on a queue of its own unless one is named."""
    store, told = store_of(agents[0]), asyncio.Event()
    client, named = await connected(store, server.address), {one.name: one for one in agents}
    working = asyncio.create_task(Engine(store, named, client, queue=queue or f"q{next(NUMBERS)}", **options).run(told))
    try:
        yield client
    finally:
        told.set()
        await asyncio.wait_for(working, 60)


async def at_rest(store: JournalStore, run_id: str, patience_s: float = PATIENCE_S) -> Run:
    """The run, once it has ended or waits for a person, and nobody drives it."""
    until = time.monotonic() + patience_s
    while (summary := await store.summary(run_id)).status in ("running", "queued", "ready", "interrupted"):
        assert time.monotonic() < until, summary
        await asyncio.sleep(0.05)
    assert summary.status != "set_aside", summary.reason
    events = [one.event for one in (await store.read_recorded(run_id))[0]]
    return Run.of(fold(events), events[-1])


async def stands(store: JournalStore, run_id: str, *statuses: str) -> RunSummary:
    """The run in one line, once it has one of these statuses."""
    async with asyncio.timeout(PATIENCE_S):
        while (summary := await store.summary(run_id)).status not in statuses:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return summary


async def begun_anew(client: Client, run_id: str, first: str) -> None:
    """Return once the workflow of a run is another one than the first."""
    async with asyncio.timeout(PATIENCE_S):
        while (await client.get_workflow_handle(workflow_id(run_id)).describe()).run_id == first:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


class Lasting:
    """An agent whose only call lasts until it is told to end, and what came of that call."""

    def __init__(self, store: JournalStore) -> None:
        self.begun, self.go, self.is_cut = asyncio.Event(), asyncio.Event(), False

        @tool(effect="read")
        async def hold() -> str:
            """Hold on."""
            self.begun.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.is_cut = True
                raise
            return "held"

        self.agent = Agent(ScriptedModel([calls(("hold", {})), "Done."]), tools=[hold], journal=store, name="clerk")

    async def begin(self, run_id: str) -> None:
        """Start its run, and wait until the call lasts."""
        await self.agent.start("go", run_id=run_id)
        await asyncio.wait_for(self.begun.wait(), PATIENCE_S)
