"""A sync tool that outlives its call: whoever asks, or calls again, is given the end of the attempt that still runs."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from dataclasses import replace

import pytest

from surefoot.agent import Agent
from surefoot.journal.memory import MemoryJournal
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.tools.call import Attempts, NotBegun, ToolFailed, awaited
from surefoot.tools.function import FunctionTool, tool
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.ports import ToolCallContext
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio


class Till:
    """A sync tool `pay` that waits for `gate`, and a probe that sees what was paid; both are counted."""

    def __init__(self) -> None:
        self.gate, self.begun = threading.Event(), threading.Event()
        self.paid: list[int] = []
        self.asked = 0
        self.error: Exception | None = None
        self.pay: FunctionTool[..., str] = tool(self._pay, name="pay", probe=self._was_paid)

    def _pay(self, amount: int) -> str:
        self.begun.set()
        self.gate.wait(10)
        if self.error:
            raise self.error
        self.paid.append(amount)
        return f"receipt {len(self.paid)}"

    def _was_paid(self, amount: int) -> str | None:
        self.asked += 1
        return "paid before" if amount in self.paid else None

    async def interrupted(self, context: ToolCallContext) -> None:
        """Let a call run out of time while its thread goes on."""
        call = asyncio.ensure_future(self.pay.call({"amount": 5}, context))
        await asyncio.to_thread(self.begun.wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


@pytest.fixture
def till() -> Generator[Till]:
    till = Till()
    yield till
    till.gate.set()


async def opened_later(till: Till, asking: Coroutine[object, object, ToolResult | None]) -> ToolResult | None:
    """What a question gives that is asked while the thread runs, which ends only after the question was put."""
    question = asyncio.ensure_future(asking)
    for _ in range(5):
        await asyncio.sleep(0)  # lets the question come to where it waits; no time passes
    assert not question.done()
    till.gate.set()
    return await question


@pytest.mark.parametrize("who", ["its probe", "a tool without probe", "a rerun"])
async def test_who_asks_waits_for_a_thread_and_gets_its_result(till: Till, context: ToolCallContext, who: str) -> None:
    if who == "a tool without probe":
        till.pay = tool(till.pay, name="pay")
    assert till.pay.spec.has_probe == (who != "a tool without probe")
    await till.interrupted(context)
    again = replace(context, attempt=2)
    asking = till.pay.call({"amount": 5}, again) if who == "a rerun" else till.pay.probe({"amount": 5}, context)
    assert await opened_later(till, asking) == ToolResult("receipt 1")
    assert (till.paid, till.asked) == ([5], 0)


async def test_what_the_thread_raised_is_told(till: Till, context: ToolCallContext) -> None:
    till.error = ToolFailed("The card was refused.")
    await till.interrupted(context)
    found = await opened_later(till, till.pay.probe({"amount": 5}, context))
    assert found == ToolResult("The card was refused.", kind="error", error="tool:failed")
    assert till.asked == 0


async def test_the_wait_of_a_probe_can_be_limited_and_its_thread_counts(till: Till, context: ToolCallContext) -> None:
    await till.interrupted(context)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await till.pay.probe({"amount": 5}, context)
    assert await opened_later(till, till.pay.probe({"amount": 5}, context)) == ToolResult("receipt 1")


async def test_when_the_thread_has_ended_the_probe_is_asked(till: Till, context: ToolCallContext) -> None:
    till.gate.set()
    assert (await till.pay.call({"amount": 5}, context)).content == "receipt 1"
    assert await till.pay.probe({"amount": 5}, context) == ToolResult("paid before")
    assert (await till.pay.call({"amount": 5}, context)).content == "receipt 2"  # nothing is remembered of it


async def test_other_calls_do_not_wait(till: Till, context: ToolCallContext) -> None:
    await till.interrupted(context)
    other = ToolCallContext("run", "other", "another key")
    assert await till.pay.probe({"amount": 5}, other) is None
    assert till.asked == 1


async def test_what_ended_or_never_began_does_not_run() -> None:
    attempts, waiting = Attempts("f"), threading.Event()
    running = asyncio.ensure_future(attempts.run("key", waiting.wait, {"timeout": 10}))
    await asyncio.sleep(0)
    assert attempts.running("key") is not None
    waiting.set()
    await running
    assert attempts.running("key") is None
    never = Future[object]()
    never.cancel()
    with pytest.raises(NotBegun):
        await awaited(never)


async def test_a_sync_tool_that_sleeps_past_its_limit_and_then_pays_pays_once() -> None:
    paid: list[int] = []

    def was_paid(amount: int) -> str | None:
        return "paid before" if amount in paid else None

    @tool(timeout_s=0.02, probe=was_paid)
    def pay(amount: int) -> str:
        """Pay."""
        time.sleep(0.2)  # the case: a thread that nobody can stop
        paid.append(amount)
        return "paid late"

    model = ScriptedModel([calls(("pay", {"amount": 5})), "Paid."])
    run = await Agent(model, tools=[pay]).run("pay 5")
    assert run.status == "completed"
    assert paid == [5]
    assert model.requests[-1].messages[-1].content == "paid late"


async def test_a_second_agent_neither_settles_nor_repeats_what_still_runs(till: Till) -> None:
    store = MemoryJournal()

    def agent(*steps: Scripted) -> Agent:
        return Agent(ScriptedModel(steps), [tool(till.pay, name="pay", timeout_s=0.05)], journal=store)

    run = await agent(calls(("pay", {"amount": 5}))).run("pay 5")
    assert (run.status, run.reason) == ("paused", "in_doubt")
    other = agent("Paid.")
    with pytest.raises(UsageError, match="still runs in this process"):
        await other.settle(run.id, "1.0", "not_done", by="Ada")
    till.gate.set()
    await other.settle(run.id, "1.0", "done", by="Ada", result="paid")
    assert (await other.resume(run.id)).answer == "Paid."


async def test_a_call_that_still_runs_is_not_made_by_a_copy_of_its_tool(till: Till, context: ToolCallContext) -> None:
    first = asyncio.ensure_future(till.pay.call({"amount": 5}, context))
    await asyncio.to_thread(till.begun.wait, 10)
    second = await opened_later(till, tool(till.pay, name="pay").call({"amount": 5}, context))
    assert (await first, second, till.paid) == (ToolResult("receipt 1"), ToolResult("receipt 1"), [5])


class Stubborn:
    """An async tool `pay` that goes on when it is cancelled, and pays once `gate` is set."""

    def __init__(self, *, idempotent: bool = False, probe: Callable[..., object] | None = None) -> None:
        self.gate, self.begun = asyncio.Event(), asyncio.Event()
        self.paid: list[int] = []
        self.pay = tool(self._pay, name="pay", timeout_s=5, idempotent=idempotent, probe=probe)

    async def _pay(self, amount: int) -> str:
        self.begun.set()
        while not self.gate.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.gate.wait()
        self.paid.append(amount)
        return f"receipt {len(self.paid)}"

    def agent(self, store: MemoryJournal, *steps: Scripted) -> Agent:
        return Agent(ScriptedModel(steps), [self.pay], journal=store, config=LoopConfig(tool_grace_s=0.05))

    async def left(self, store: MemoryJournal) -> str:
        """Cancel a run in the middle of the call, which goes on; the run's id."""
        running = asyncio.ensure_future(self.agent(store, calls(("pay", {"amount": 5}))).run("pay 5", run_id="r"))
        async with asyncio.timeout(10):
            await self.begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        return "r"


async def test_a_task_that_was_left_is_neither_settled_as_not_done_nor_made_again() -> None:
    store, stubborn = MemoryJournal(), Stubborn()
    run_id = await stubborn.left(store)
    other = stubborn.agent(store, "Paid.")
    assert (await other.resume(run_id)).reason == "in_doubt"
    with pytest.raises(UsageError, match="still runs in this process"):
        await other.settle(run_id, "1.0", "not_done", by="Ada")
    stubborn.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)  # lets it end; no time passes
    assert (await other.settle(run_id, "1.0", "not_done", by="Ada")).status == "ready"
    assert (await other.resume(run_id)).answer == "Paid."
    assert stubborn.paid == [5, 5]  # the person said so, who was told that it had ended


@pytest.mark.parametrize("is_probed", [False, True])
async def test_a_rerun_or_probe_waits_for_the_task_that_was_left_and_pays_once(*, is_probed: bool) -> None:
    asked: list[int] = []

    def was_paid(amount: int) -> None:
        asked.append(amount)

    store = MemoryJournal()
    stubborn = Stubborn(probe=was_paid) if is_probed else Stubborn(idempotent=True)
    run_id = await stubborn.left(store)
    again = asyncio.ensure_future(stubborn.agent(store, "Paid.").resume(run_id))
    for _ in range(20):
        await asyncio.sleep(0)  # lets it come to where it waits; no time passes
    stubborn.gate.set()
    assert (await again).answer == "Paid."
    assert (stubborn.paid, asked) == ([5], [])


def test_a_task_that_was_left_ends_with_its_loop() -> None:
    store = MemoryJournal()

    async def scene() -> Agent:
        stubborn = Stubborn()
        await stubborn.left(store)
        return stubborn.agent(store)

    agent = asyncio.run(scene())
    assert agent.resume_sync("r").reason == "in_doubt"
    assert asyncio.run(agent.settle("r", "1.0", "not_done", by="Ada")).status == "ready"
