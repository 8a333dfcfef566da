"""Workers of Temporal that leave, workflows that end before their runs do, and hands that take their time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio", reason="the extra `temporal` is not installed")

from dev_server import Server
from temporal_world import PATIENCE_S, Lasting, at_rest, begun_anew, engine, stands
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus
from temporalio.testing import ActivityEnvironment

from surefoot import Agent, LoopConfig, MemoryJournal, tool
from surefoot.core.state.state import EMPTY
from surefoot.engines.temporal.activities import KINDS, Activities, States
from surefoot.engines.temporal.payloads import WORKFLOW, Asked, Batch, Given, Held, Size, encode_move, workflow_id
from surefoot.engines.temporal.worker import adopt, connected
from surefoot.journal.memory import store_of
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.errors import JournalError, JournalUnavailable
from surefoot.types.events import CallEnded, Event, RunNoted
from surefoot.types.moves import Think
from surefoot.types.ports import JournalStore, Recorded
from surefoot.types.words import Note

pytestmark = [pytest.mark.anyio, pytest.mark.temporal, pytest.mark.timeout(200)]

_SIGNALLED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED


def test_a_state_is_found_while_another_workflow_keeps_one() -> None:
    states = States()

    class Stirring(str):
        """An id; when it is looked at, the thread of another workflow keeps a state."""

        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            states.put(Held("other", "clerk", len(told)), EMPTY)
            told.append(other)
            return str(self) == other

    told: list[object] = []
    for fence in range(3):
        states.put(Held("r1", "clerk", fence), replace(EMPTY, seen=fence))
    assert states.get(Held(Stirring("r1"), "clerk", 2), 5).seen == 2
    assert told


async def test_who_cancels_a_workflow_does_not_set_its_run_aside(temporal_server: Server) -> None:
    store, run_id = MemoryJournal(), "called-off"
    slow = Lasting(store)
    async with engine(temporal_server, slow.agent, size="run") as client:
        await slow.begin(run_id)
        newest = client.get_workflow_handle(workflow_id(run_id))
        first = client.get_workflow_handle(workflow_id(run_id), run_id=(await newest.describe()).run_id)
        await first.cancel()
        async with asyncio.timeout(PATIENCE_S):
            while (status := (await first.describe()).status) is WorkflowExecutionStatus.RUNNING:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert status is WorkflowExecutionStatus.CANCELED
        slow.go.set()
        assert (await at_rest(store, run_id)).status == "completed"


async def test_a_run_that_makes_its_driver_fail_each_time_is_set_aside(temporal_server: Server) -> None:
    store, tries = MemoryJournal(), 0

    async def fail(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise JournalUnavailable("away for a moment") if tries == 1 else RuntimeError("a mistake of ours")

    agent = Agent(ScriptedModel(["Done."]), journal=store, name="clerk")
    object.__setattr__(agent, "hands", fail)
    await agent.start("think", run_id="r")
    async with engine(temporal_server, agent, size="run"):
        summary = await stands(store, "r", "set_aside")
    assert ("a mistake of ours" in summary.reason, tries) == (True, 4)


async def test_a_run_that_cannot_be_a_workflow_holds_up_no_other(temporal_server: Server) -> None:
    store = MemoryJournal()
    agent = Agent(ScriptedModel(["Done."] * 2), journal=store, name="clerk")
    await agent.start("think", run_id="r" * 1200)  # longer than Temporal takes for an id
    await agent.start("think", run_id="short")
    async with engine(temporal_server, agent):
        assert (await at_rest(store, "short")).status == "completed"
    assert (await store.summary("r" * 1200)).status != "completed"


async def test_a_run_whose_workflow_never_got_anywhere_is_adopted(temporal_server: Server, tmp_path: Path) -> None:
    store, run_id = store_of(str(tmp_path / "runs.db")), "stuck"
    agent = Agent(ScriptedModel(["Done."]), journal=store, name="clerk")
    client = await connected(store, temporal_server.address)
    stuck = Given(Held(run_id, "clerk", 0), "move", 4000)
    handle = await client.start_workflow(WORKFLOW, stuck, id=workflow_id(run_id), task_queue="nobody's")
    async with engine(temporal_server, agent, lease_s=3.0):
        await agent.start("go", run_id=run_id)
        async with asyncio.timeout(PATIENCE_S):
            while _SIGNALLED not in {one.event_type for one in (await handle.fetch_history()).events}:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await adopt(client, [run_id])
        assert (await at_rest(store, run_id)).status == "completed"
    await agent.aclose()


class Till:
    """An agent whose only call pays in a thread, as soon as it is let go on; what it paid, and whether it was asked."""

    def __init__(self, store: JournalStore) -> None:
        self.begun, self.go, self.paid, self.asked = threading.Event(), threading.Event(), list[str](), list[str]()

        def has_paid() -> str | None:
            self.asked.append("probe")
            return "paid" if self.paid else None

        @tool(probe=has_paid)
        def pay() -> str:
            """Pay once."""
            self.begun.set()
            assert self.go.wait(PATIENCE_S)
            self.paid.append("paid")
            return "paid"

        self.agent = Agent(ScriptedModel([calls(("pay", {})), "Done."]), tools=[pay], journal=store, name="clerk")

    async def begin(self, run_id: str) -> None:
        await self.agent.start("go", run_id=run_id)
        assert await asyncio.to_thread(self.begun.wait, PATIENCE_S)

    async def end(self, store: JournalStore, run_id: str) -> list[type[Event]]:
        """The call has paid once, what it gave is on record, and nobody had to ask; the kinds of the records."""
        self.go.set()
        assert (await at_rest(store, run_id)).status == "completed"
        events = [one.event for one in (await store.read_recorded(run_id))[0]]
        assert [one.result.content for one in events if isinstance(one, CallEnded)] == ["paid"]
        assert (self.paid, self.asked) == (["paid"], [])
        return [type(one) for one in events]


@pytest.mark.parametrize("size", ["move", "run"])
async def test_a_call_in_a_thread_outlasts_its_workflow(temporal_server: Server, size: Size) -> None:
    store, run_id = MemoryJournal(), f"adopted-{size}"
    till = Till(store)
    async with engine(temporal_server, till.agent, size=size) as client:
        await till.begin(run_id)
        first = (await client.get_workflow_handle(workflow_id(run_id)).describe()).run_id
        await adopt(client, [run_id])
        if size == "move":  # with `run`, the journal is held until the call has ended
            await begun_anew(client, run_id, first)
        await asyncio.sleep(12)  # longer than a worker may go without a sign of life
        await till.end(store, run_id)


async def test_a_call_goes_on_while_others_write_to_its_run(temporal_server: Server, tmp_path: Path) -> None:
    store, run_id = store_of(str(tmp_path / "runs.db")), "written-by-others"
    till, other = Till(store), store_of(str(tmp_path / "runs.db"))
    async with engine(temporal_server, till.agent, size="move") as client:
        await till.begin(run_id)
        handle = client.get_workflow_handle(workflow_id(run_id))
        first = (await handle.describe()).run_id
        journal = await other.open(run_id, fence=(await handle.query("summary"))["fence"])
        await journal.append([RunNoted("in red, please", "Ada")], "written")
        assert RunNoted in await till.end(store, run_id)
        assert (await handle.describe()).run_id == first
    await till.agent.aclose()
    await other.aclose()


async def test_what_ends_beside_a_hand_that_fails_is_on_record(temporal_server: Server) -> None:
    class Broken(MemoryJournal):
        async def put_blob(self, run_id: str, data: bytes) -> str:  # noqa: ARG002
            tried.append(data)
            raise JournalError("there is no room")

    store, run_id, tried, go = Broken(), "hands-fail", list[bytes](), asyncio.Event()

    @tool(effect="read")
    async def fetch() -> str:
        """Fetch a lot."""
        return "x" * 1000

    @tool(effect="read")
    async def wait() -> str:
        """Wait."""
        await go.wait()
        return "waited"

    model = ScriptedModel([calls(("fetch", {}), ("wait", {}))])
    config = LoopConfig(tool_result_chars=200)
    agent = Agent(model, tools=[fetch, wait], journal=store, name="clerk", config=config)
    async with engine(temporal_server, agent, size="move") as client:
        await agent.start("go", run_id=run_id)
        async with asyncio.timeout(PATIENCE_S):
            while len(tried) < 9:  # noqa: ASYNC110  # three activities of three attempts
                await asyncio.sleep(0.1)
            handle = client.get_workflow_handle(workflow_id(run_id))
            while len((await handle.query("summary"))["under_way"]) > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        go.set()
        summary = await stands(store, run_id, "set_aside")
    assert "no room" in summary.reason
    events = [one.event for one in (await store.read_recorded(run_id))[0]]
    assert [one.result.content for one in events if isinstance(one, CallEnded)] == ["waited"]


async def test_a_state_is_folded_from_the_newest_that_is_known() -> None:
    class Counted(MemoryJournal):
        async def read_recorded(
            self, run_id: str, since: int = 0, limit: int | None = None
        ) -> tuple[Sequence[Recorded], str]:
            found = await super().read_recorded(run_id, since, limit)
            read.append(len(found[0]))
            return found

    read, store = list[int](), Counted()
    agent = Agent(ScriptedModel(["Done."] * 3), journal=store, name="clerk")
    made, batch = await begun(store, agent, "long")
    think = made.all()[-len(KINDS) + KINDS.index("think")]
    journal = await store.open("long", fence=batch.held.fence)
    await journal.append([RunNoted("in red", "Ada"), RunNoted("in blue", "Ada")])
    read.clear()
    for seq in (batch.seq, batch.seq + 2, batch.seq + 2):
        await ActivityEnvironment().run(think, Asked(batch.held, seq, encode_move(Think(1))))
    assert read == [batch.seq, 2]


async def begun(store: JournalStore, agent: Agent, run_id: str = "r") -> tuple[Activities, Batch]:
    """The activities of a worker, and where a run stands that it has claimed."""
    await agent.start("go", run_id=run_id)
    (claimed,) = await store.claim({"clerk": agent}, 1, 30)
    records, _ = await store.read_recorded(run_id)
    made = Activities(store, {"clerk": agent}, "a test", lambda _: None)
    held, last = Held(run_id, "clerk", claimed.fence), records[-1]
    return made, Batch(held, (), len(records), last.hash, last.at, "written")


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
