"""What Temporal is told of runs, and what may be said to them there: queues of tools, answers, attributes, builds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio", reason="the extra `temporal` is not installed")

from dev_server import Server
from temporal_world import NUMBERS, PATIENCE_S, engine, stands, store_of
from temporalio.api.enums.v1 import EventType, IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.common import WorkerDeploymentVersion
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from surefoot import Agent, MemoryJournal, tool
from surefoot.engines.temporal.console import AGENT, LABELS, STATUS
from surefoot.engines.temporal.payloads import Answer, Size, workflow_id
from surefoot.engines.temporal.worker import connected, is_marked
from surefoot.journal import memory
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.events import CallJudged
from surefoot.types.outcomes import Allow, Deny

pytestmark = [pytest.mark.anyio, pytest.mark.temporal, pytest.mark.timeout(300)]


def paying(**options: Any) -> Agent[Any]:
    @tool(**options)
    async def pay(n: int) -> str:
        """Pay once."""
        return f"paid {n}"

    model = ScriptedModel([calls(("pay", {"n": 1})), "Done."])
    return Agent(model, tools=[pay], journal=MemoryJournal(), name="clerk")


async def test_calls_of_a_tool_are_made_on_the_queue_that_it_names(temporal_server: Server) -> None:
    run_id, till = f"queued{next(NUMBERS)}", f"till{next(NUMBERS)}"
    agent = paying(queue=till)
    async with engine(temporal_server, agent, queue=run_id) as client:
        await agent.start("go", run_id=run_id)
        handle = client.get_workflow_handle(workflow_id(run_id))
        async with engine(temporal_server, agent, queue=till, calls_only=True):
            await stands(store_of(agent), run_id, "completed")
        history = await handle.fetch_history()
    begun = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    sent = [one.activity_task_scheduled_event_attributes for one in history.events if one.event_type == begun]
    assert {one.activity_type.name: one.task_queue.name for one in sent} == {"think": run_id, "act": till}


@pytest.mark.parametrize(("size", "said"), [("move", "approve"), ("move", "refuse"), ("run", "approve")])
async def test_a_call_is_answered_by_an_update(temporal_server: Server, size: Size, said: str) -> None:
    run_id = f"asked{next(NUMBERS)}"
    agent = paying(approval="always")
    async with engine(temporal_server, agent, queue=run_id, size=size) as client:
        await agent.start("go", run_id=run_id)
        await stands(store_of(agent), run_id, "paused")
        handle: Any = client.get_workflow_handle(workflow_id(run_id))  # Any: its updates have no types
        unknown = "not_waiting" if size == "move" else "no_such_call"  # by stretches, only the journal knows
        for wrong, kind in ((Answer("9.9", "Ada"), unknown), (Answer("1.0", "Ada", digest="0" * 64), "changed")):
            with pytest.raises(WorkflowUpdateFailedError) as failed:
                await handle.execute_update(said, wrong)
            assert isinstance(failed.value.cause, ApplicationError)
            assert failed.value.cause.type == kind
        assert await handle.execute_update(said, Answer("1.0", "Ada", "too much")) == "applied"
        await stands(store_of(agent), run_id, "completed")
        assert await asyncio.wait_for(handle.result(), 60) == "completed"
    records, _ = await store_of(agent).read_recorded(run_id)
    *_, last = [one.event.decision for one in records if isinstance(one.event, CallJudged)]
    assert last == (Allow() if said == "approve" else Deny("refused by Ada: too much"))


async def test_runs_are_found_by_their_search_attributes(temporal_server: Server) -> None:
    run_id, agent = f"marked{next(NUMBERS)}", paying(approval="always")
    client = await connected(store_of(agent), temporal_server.address)
    wanted = {one.name: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD for one in (AGENT, STATUS)}
    wanted[LABELS.name] = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST
    assert not await is_marked(client)
    request = AddSearchAttributesRequest(namespace="default", search_attributes=wanted)
    await client.operator_service.add_search_attributes(request)
    async with asyncio.timeout(PATIENCE_S):
        while not await is_marked(client):  # noqa: ASYNC110
            await asyncio.sleep(0.2)

    async def found(status: str) -> None:
        query = f"SurefootAgent = 'clerk' AND SurefootLabels = 'team=blue' AND SurefootStatus = '{status}'"
        async with asyncio.timeout(PATIENCE_S):
            while workflow_id(run_id) not in [one.id async for one in client.list_workflows(query)]:  # noqa: ASYNC110
                await asyncio.sleep(0.2)

    async with engine(temporal_server, agent, queue=run_id):
        await agent.start("go", run_id=run_id, labels={"team": "blue"})
        await found("paused")
        await agent.approve(run_id, "1.0", by="Ada")
        await found("completed")


@pytest.mark.scale
async def test_a_run_goes_over_to_the_build_that_becomes_current(temporal_server: Server, tmp_path: Path) -> None:
    run_id, name = f"built{next(NUMBERS)}", f"d{next(NUMBERS)}"
    stores = [memory.store_of(tmp_path / "runs.db") for _ in range(2)]  # of two processes
    agent, later = (replace(paying(approval="always"), journal=store) for store in stores)
    old, new = WorkerDeploymentVersion(name, "old"), WorkerDeploymentVersion(name, "new")

    async def make_current(client: Client, build: WorkerDeploymentVersion) -> None:
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace="default", deployment_name=name, build_id=build.build_id
        )
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    await client.workflow_service.set_worker_deployment_current_version(request)
                except RPCError:  # its workers have not been seen yet
                    await asyncio.sleep(0.2)
                else:
                    return

    async with engine(temporal_server, agent, queue=run_id, deployment=old) as client:
        await make_current(client, old)
        await agent.start("go", run_id=run_id)
        await stands(store_of(agent), run_id, "paused")
        async with engine(temporal_server, replace(later, model=agent.model), queue=run_id, deployment=new):
            await make_current(client, new)
            handle = client.get_workflow_handle(workflow_id(run_id))
            first = (await handle.describe()).run_id
            await agent.approve(run_id, "1.0", by="Ada")
            await stands(store_of(agent), run_id, "completed")
            last = await handle.describe()
    for store in stores:
        await store.aclose()
    assert last.run_id != first
    assert last.raw_description.workflow_execution_info.versioning_info.deployment_version.build_id == "new"
