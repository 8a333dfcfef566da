"""A worker of Temporal: it starts the workflows of runs that are ready, and works on workflows and their activities.

Source: spec/scale.md, sections 6.1, 6.4 and 6.6.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import SearchAttributePair, TypedSearchAttributes, VersioningBehavior, WorkerDeploymentVersion
from temporalio.converter import DataConverter
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker as TemporalWorker
from temporalio.worker import WorkerDeploymentConfig
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from surefoot.agent import Agent
from surefoot.engines.temporal.activities import Activities
from surefoot.engines.temporal.console import AGENT, LABELS, STATUS
from surefoot.engines.temporal.payloads import WORKFLOW, Given, Held, Shelf, Size, run_of, workflow_id
from surefoot.engines.temporal.workflow import RunWorkflow
from surefoot.journal.codec import warm
from surefoot.types import errors
from surefoot.types.errors import UsageError
from surefoot.types.ports import LEASE_S, Claimed, JournalStore, RunFilter

_LOG = logging.getLogger("surefoot.temporal")

_LOOK_S = 0.25
_MOST_STARTED = 64
_WEDGED_ATTEMPTS = 3
"""From so many attempts at one workflow task on, a workflow does not get any further by itself."""

SANDBOX = SandboxedWorkflowRunner(SandboxRestrictions.default.with_passthrough_all_modules())
"""What is shared with the process are frozen values, and caches by content."""

_UNDER_WAY = ("running", "queued", "ready", "interrupted")

MOST_EVENTS = 4000
"""Events of a history after which a workflow begins anew."""


async def connected(store: JournalStore, address: str = "", namespace: str = "") -> Client:
    """A client of Temporal, by its environment configuration; what is given counts more. Raises `UsageError`."""
    given: dict[str, Any] = {**ClientConfig.load_client_connect_config()}  # Any: as the client takes them
    given |= {"target_host": address} if address else {}
    given |= {"namespace": namespace} if namespace else {}
    given.setdefault("target_host", "localhost:7233")
    converter = replace(DataConverter.default, payload_codec=Shelf(store))
    try:
        return await Client.connect(**given, data_converter=converter)
    except (RuntimeError, RPCError) as error:
        where = given["target_host"]
        raise UsageError(f"Temporal at {where} cannot be reached: {error}; start it, or name --address") from error


async def is_marked(client: Client) -> bool:
    """Whether the namespace knows the search attributes of runs: `AGENT`, `STATUS` and `LABELS`."""
    try:
        await client.count_workflows(" AND ".join(f"{one.name} = ''" for one in (AGENT, STATUS, LABELS)))
    except RPCError as error:
        if error.status is not RPCStatusCode.INVALID_ARGUMENT:
            raise
        return False
    return True


def build_id() -> str:
    """What a worker is made of: the version of surefoot, and a digest of all that decides."""
    told, package = sha256(), Path(__file__).parents[2]
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".md") and path.relative_to(package).parts[0] in ("core", "types", "prompts"):
            told.update(path.read_bytes())
    return f"{version('surefoot')}-{told.hexdigest()[:12]}"


class Engine:
    """Runs of `agents`, by their names, as workflows on the task queue `queue`. The agents must have that journal.

    `size` is what an activity is: one "move", or a whole stretch of a "run". A workflow begins anew after `most_events`
    of its history. With a `deployment`, workflows stay with workers of the build that they were started with. With
    `calls_only`, no workflow is started: only calls of that queue are made (`@tool(queue=…)`). `lease_s`: see `Worker`.
    """

    def __init__(
        self,
        store: JournalStore,
        agents: Mapping[str, Agent[Any]],
        client: Client,
        *,
        queue: str = "surefoot",
        size: Size = "move",
        most_events: int = MOST_EVENTS,
        deployment: WorkerDeploymentVersion | None = None,
        calls_only: bool = False,
        lease_s: float = LEASE_S,
    ) -> None:
        self._store, self._agents, self._client, self._queue = store, agents, client, queue
        self._size, self._most_events, self._deployment, self._calls_only = size, most_events, deployment, calls_only
        self._activities = Activities(store, agents, f"temporal worker {os.getpid()}", self._note_word)
        self._lease_s, self._said, self._woken = lease_s, set[str](), asyncio.Event()
        self._claimed: dict[str, Claimed] = {}
        self._begun: dict[str, Claimed] = {}  # claimed here, and no workflow has taken them up here yet

    async def run(self, until: asyncio.Event | None = None) -> None:
        """Work until `until` is set, or until this is cancelled. Raises what the worker of Temporal raises."""
        warm()
        self._is_marked, build = await is_marked(self._client), self._deployment
        worker = TemporalWorker(
            self._client,
            task_queue=self._queue,
            workflows=[] if self._calls_only else [RunWorkflow],
            activities=self._activities.all(),
            workflow_runner=SANDBOX,
            max_heartbeat_throttle_interval=timedelta(seconds=2),
            graceful_shutdown_timeout=timedelta(seconds=30),
            deployment_config=build and WorkerDeploymentConfig(build, True, VersioningBehavior.PINNED),
        )
        looking = asyncio.create_task(asyncio.Event().wait() if self._calls_only else self._look_on())
        waiting = asyncio.create_task((until or asyncio.Event()).wait())
        try:
            async with worker:
                await asyncio.wait((looking, waiting), return_when=asyncio.FIRST_COMPLETED)
            if looking.done():
                looking.result()
        finally:
            looking.cancel()
            waiting.cancel()

    def _note_word(self, run_id: str) -> None:
        self._said.add(run_id)
        self._woken.set()

    async def _look_on(self) -> None:
        """Start what is ready, pass on that something was said, and keep the leases. What fails is tried again."""
        renewed = 0.0
        while True:
            try:
                now = time.monotonic()
                if is_due := now > renewed + self._lease_s / 3:  # first of all: it does not need Temporal
                    await self._store.renew(self._lease_s)
                    renewed = now  # how long the answer took is not known to be left of the leases
                for one in await self._store.claim(self._agents, _MOST_STARTED, self._lease_s):
                    self._claimed[one.run_id] = one
                for one in tuple(self._claimed.values()):
                    try:
                        await self._start(one)
                    except (errors.JournalError, RPCError) as error:
                        if _is_outage(error):
                            raise
                        _LOG.warning("run %s cannot be made a workflow", one.run_id, exc_info=True)
                    self._begun[one.run_id] = self._claimed.pop(one.run_id)
                while self._said:
                    await self._signal(self._said.pop())
                for run_id in {**self._activities.held, **self._begun} if is_due else ():
                    await self._let_go_if_closed(run_id)
            except (errors.JournalError, RPCError):
                _LOG.warning("runs cannot be started now; it is tried again", exc_info=True)
                await asyncio.sleep(1.0)
            self._woken.clear()
            if not self._said:
                waking = asyncio.ensure_future(self._woken.wait())
                await asyncio.wait((waking,), timeout=_LOOK_S)
                waking.cancel()

    async def _start(self, one: Claimed) -> None:
        """Have the workflow of a run take it up, by its id: one that is open already is told of the claim."""
        given = Given(Held(one.run_id, one.agent, one.fence), self._size, self._most_events)
        summary = await self._store.summary(one.run_id)
        labels = [f"{name}={value}" for name, value in summary.labels.items()]
        pairs = ((AGENT, one.agent), (STATUS, "running"), (LABELS, labels))
        marks = TypedSearchAttributes([SearchAttributePair(key, value) for key, value in pairs])
        await self._client.start_workflow(
            WORKFLOW,
            given,
            id=workflow_id(one.run_id),
            task_queue=self._queue,
            start_signal="claimed",
            start_signal_args=[one.fence],
            static_summary=summary.task.partition("\n")[0],
            search_attributes=marks if self._is_marked else None,
        )

    async def _signal(self, run_id: str) -> None:
        try:
            await self._client.get_workflow_handle(workflow_id(run_id)).signal("word")
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                self._said.add(run_id)
                raise

    async def _let_go_if_closed(self, run_id: str) -> None:
        """A run whose workflow was terminated is ready for another one."""
        is_held, status = run_id in self._activities.held, ""
        with suppress(errors.RunUnknown, errors.JournalCorrupt, errors.JournalTooNew):  # deleted, or nobody can read it
            status = (await self._store.summary(run_id)).status
        if is_held or status not in _UNDER_WAY:
            self._begun.pop(run_id, None)
            if not is_held:
                return
        try:
            told = await self._client.get_workflow_handle(workflow_id(run_id)).describe()
        except RPCError as error:  # an id that it refuses has no workflow either
            if error.status is not RPCStatusCode.NOT_FOUND and _is_outage(error):
                raise
        else:
            if told.status is WorkflowExecutionStatus.RUNNING:
                return
        if self._begun.pop(run_id, None) is not None:  # where it was never taken up, this lease would stay
            with suppress(errors.JournalError):  # it is driven
                await (await self._store.open(run_id)).release()
        await self._activities.drop(run_id)


def _is_outage(error: errors.JournalError | RPCError) -> bool:
    """Whether it is the journal or Temporal that fails, and not one run that cannot be read or is refused."""
    if isinstance(error, RPCError):
        return error.status is not RPCStatusCode.INVALID_ARGUMENT
    return isinstance(error, errors.JournalUnavailable)


async def checked(store: JournalStore, client: Client) -> AsyncGenerator[tuple[str, str]]:
    """Runs that Temporal and the journal do not agree about, and why; of the journal the newest 500 of each status.

    A run that is under way without an open workflow is taken up by a worker as soon as nobody holds it.
    """
    open_runs = set[str]()
    async for one in client.list_workflows(f"WorkflowType = '{WORKFLOW}' AND ExecutionStatus = 'Running'"):
        open_runs.add(run_id := run_of(one.id))
        try:
            summary = await store.summary(run_id)
        except errors.RunUnknown:
            yield run_id, "has an open workflow, but this journal does not know the run"
            continue
        task = (await client.get_workflow_handle(one.id).describe()).raw_description.pending_workflow_task
        if task.attempt >= _WEDGED_ATTEMPTS:
            yield run_id, f"its workflow is stuck at one task (attempt {task.attempt}); adopt it"
        elif summary.status not in (*_UNDER_WAY, "paused"):
            yield run_id, f"is {summary.status}, but its workflow is open; adopt it"
    for status in _UNDER_WAY:
        page = await store.list(RunFilter(status=status), limit=500)
        for summary in page.runs:
            if summary.agent and not summary.outer and summary.run_id not in open_runs:
                yield summary.run_id, f"is {status}, but no workflow is open for it"


async def adopt(client: Client, run_ids: Sequence[str]) -> None:
    """End the workflows of runs, whatever they are stuck at. A worker takes each run up anew, from its journal.

    Calls that were open are treated as after a crash. Raises `UsageError` for one without an open workflow.
    """
    for run_id in run_ids:
        handle: WorkflowHandle[Any, Any] = client.get_workflow_handle(workflow_id(run_id))
        try:
            await handle.terminate(reason="surefoot temporal adopt")
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise UsageError(f"run {run_id} has no open workflow; a worker takes it up when it is ready") from error
            raise
