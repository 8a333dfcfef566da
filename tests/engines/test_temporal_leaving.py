"""Workers of Temporal that leave, workflows that end before their runs do, and hands that take their time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio", reason="the extra `temporal` is not installed")

from dev_server import Server
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.testing import ActivityEnvironment

from surefoot import Agent, MemoryJournal, Run, tool
from surefoot.core.loop.fold import fold
from surefoot.engines.temporal import worker
from surefoot.engines.temporal.activities import KINDS, Activities
from surefoot.engines.temporal.payloads import WORKFLOW, Asked, Batch, Given, Held, Size, encode_move, workflow_id
from surefoot.engines.temporal.worker import Engine, adopt, connected
from surefoot.journal.memory import store_of
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.events import RunNoted
from surefoot.types.moves import Think
from surefoot.types.ports import JournalStore
from surefoot.types.words import Note

pytestmark = [pytest.mark.anyio, pytest.mark.temporal, pytest.mark.timeout(200)]

_PATIENCE_S = 60
_SIGNALLED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED


class Slow:
    """An agent whose only call takes until it is let go on."""

    def __init__(self, store: JournalStore) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()

        @tool(effect="read")
        async def hold() -> str:
            """Hold on."""
            self.begun.set()
            await self.go.wait()
            return "held"

        self.agent = Agent(ScriptedModel([calls(("hold", {})), "Done."]), tools=[hold], journal=store, name="clerk")


async def ended(store: JournalStore, run_id: str) -> Run:
    until = time.monotonic() + _PATIENCE_S
    while (summary := await store.summary(run_id)).status in ("running", "queued", "ready", "interrupted"):
        assert time.monotonic() < until, summary
        await asyncio.sleep(0.05)
    assert summary.standing != "set_aside", summary.reason
    return Run.of(fold(one.event for one in (await store.read_recorded(run_id))[0]))


@asynccontextmanager
async def at_work(server: Server, store: JournalStore, agent: Agent, queue: str, size: Size) -> AsyncGenerator[Client]:
    """A worker for that agent."""
    client, told = await connected(store, server.address), asyncio.Event()
    working = asyncio.create_task(Engine(store, {"clerk": agent}, client, queue=queue, size=size).run(told))
    try:
        yield client
    finally:
        told.set()
        await asyncio.wait_for(working, 60)


async def test_who_cancels_a_workflow_does_not_set_its_run_aside(temporal_server: Server) -> None:
    store, run_id = MemoryJournal(), "called-off"
    slow = Slow(store)
    async with at_work(temporal_server, store, slow.agent, run_id, "run") as client:
        await slow.agent.start("go", run_id=run_id)
        await asyncio.wait_for(slow.begun.wait(), _PATIENCE_S)
        newest = client.get_workflow_handle(workflow_id(run_id))
        first = client.get_workflow_handle(workflow_id(run_id), run_id=(await newest.describe()).run_id)
        await first.cancel()
        async with asyncio.timeout(_PATIENCE_S):
            while (status := (await first.describe()).status) is WorkflowExecutionStatus.RUNNING:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert status is WorkflowExecutionStatus.CANCELED
        slow.go.set()
        assert (await ended(store, run_id)).status == "completed"


async def test_a_run_whose_workflow_never_got_anywhere_is_adopted(
    temporal_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker, "_LEASE_S", 3.0)
    store, run_id = store_of(str(tmp_path / "runs.db")), "stuck"
    agent = Agent(ScriptedModel(["Done."]), journal=store, name="clerk")
    client = await connected(store, temporal_server.address)
    stuck = Given(Held(run_id, "clerk", 0), "move", 4000)
    handle = await client.start_workflow(WORKFLOW, stuck, id=workflow_id(run_id), task_queue="nobody's")
    async with at_work(temporal_server, store, agent, run_id, "move"):
        await agent.start("go", run_id=run_id)
        async with asyncio.timeout(_PATIENCE_S):
            while _SIGNALLED not in {one.event_type for one in (await handle.fetch_history()).events}:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await adopt(client, [run_id])
        assert (await ended(store, run_id)).status == "completed"
    await agent.aclose()


async def begun(store: JournalStore, agent: Agent) -> tuple[Activities, Batch]:
    """The activities of a worker, and where a run stands that it has claimed."""
    await agent.start("go", run_id="r")
    (claimed,) = await store.claim({"clerk": agent}, 1, 30)
    records, _ = await store.read_recorded("r")
    made = Activities(store, {"clerk": agent}, "a test", lambda _: None)
    return made, Batch(Held("r", "clerk", claimed.fence), (), len(records), records[-1].hash, records[-1].at, "written")


async def test_a_worker_gives_signs_of_life_while_tools_are_made_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    store, here, beats = MemoryJournal(), ActivityEnvironment(), list[object]()
    agent = Agent(ScriptedModel(["Done."]), journal=store, name="clerk")
    made, batch = await begun(store, agent)
    hands = Agent.hands

    async def late(*given: Any) -> Any:
        await asyncio.sleep(0.1)
        assert beats, "a worker without a sign of life counts as lost"
        return await hands(*given)

    monkeypatch.setattr(Agent, "hands", late)
    here.on_heartbeat = lambda *_: beats.append(None)
    think = made.all()[-len(KINDS) + KINDS.index("think")]
    assert await here.run(think, Asked(batch.held, batch.seq, encode_move(Think(1))))


async def test_what_is_said_is_on_record_when_it_is_heard() -> None:
    store, here = MemoryJournal(), ActivityEnvironment()
    agent = Agent(ScriptedModel(["Done."]), journal=store, name="clerk")
    made, batch = await begun(store, agent)
    await store.say("r", Note("in red, please", "Ada"))
    piece = await here.run(made.hear, replace(batch, at=batch.at - 3600), False, [])
    records, _ = await store.read_recorded("r", batch.seq)
    assert isinstance(records[0].event, RunNoted)
    assert piece.at == records[0].at >= batch.at
