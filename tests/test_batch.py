"""Many tasks with one agent: so many at a time, each made once, whatever happens in between."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace

import pytest

from surefoot import Agent, Attachment, MemoryJournal, PlanStep, Run, Task, UsageError, tool
from surefoot.batch import number_of
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted
from surefoot.types.messages import ModelRequest

pytestmark = pytest.mark.anyio


def echo(request: ModelRequest) -> Scripted:
    return request.messages[-1].content.upper()


async def test_each_task_is_a_run_with_its_own_id_and_as_many_go_on_as_may() -> None:
    most = now = 0
    are_three = asyncio.Event()

    async def together(request: ModelRequest) -> Scripted:
        nonlocal most, now
        now += 1
        most = max(most, now)
        if now == 3:
            are_three.set()
        await are_three.wait()
        now -= 1
        return echo(request)

    store = MemoryJournal()
    agent = Agent(FunctionModel(together), journal=store)
    taken: list[int] = []

    def tasks() -> Iterator[str | Task]:
        for at in range(20):
            taken.append(at)
            yield Task(f"t{at}") if at % 2 else f"t{at}"

    found: dict[int, str] = {}
    async for run in agent.map(tasks(), id="b", concurrency=3):
        found[number_of(run)] = run.answer
        assert len(taken) <= len(found) + 3  # they are taken as there is room
    assert found == {at + 1: f"T{at}" for at in range(20)}
    assert most == 3
    assert next(one.run_id for one in await store.runs(1)).startswith("b-0000")
    with pytest.raises(UsageError, match="tasks='x': give a list"):
        await anext(agent.map("x"))
    with pytest.raises(UsageError, match="concurrency=0: give a whole number of at least 1"):
        await anext(agent.map(["x"], concurrency=0))


async def test_a_batch_that_is_begun_again_does_what_is_left() -> None:
    store, model = MemoryJournal(), FunctionModel(echo)
    tasks = [f"t{at}" for at in range(6)]
    with pytest.raises(Crash):
        async for _ in Agent(model, journal=CrashingStore(store, 5, "after")).map(tasks, id="b", concurrency=2):
            pass
    asked = len(model.requests)
    runs = [run async for run in Agent(model, journal=store).map(tasks, id="b", concurrency=2)]
    assert sorted(run.answer for run in runs) == [f"T{at}" for at in range(6)]
    assert asked < len(model.requests) <= asked + 6
    asked = len(model.requests)
    again = [run async for run in Agent(model, journal=store).map(tasks, id="b")]
    assert {run.id: run.answer for run in again} == {run.id: run.answer for run in runs}
    assert len(model.requests) == asked
    with pytest.raises(UsageError, match="run b-000001 has another task; give this batch another id"):
        await anext(Agent(model, journal=store).map(["another"], id="b"))


async def test_of_tasks_that_fail_together_each_error_is_taken() -> None:
    agent, unheard = Agent(FunctionModel(echo), journal=MemoryJournal()), list[object]()
    _ = [run async for run in agent.map(["a", "b", "c"], id="b")]
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context["message"]))
    with pytest.raises(UsageError, match="has another task"):
        await anext(agent.map(["x", "y", "z"], id="b"))
    gc.collect()
    assert unheard == []


async def test_a_run_whose_id_only_begins_like_one_of_the_batch_is_another() -> None:
    agent = Agent(FunctionModel(echo), journal=MemoryJournal())
    await agent.run("mine", run_id="b-0000017")
    assert [run.answer async for run in agent.map(["t"], id="b")] == ["T"]


async def test_a_task_with_steps_is_known_again() -> None:
    @tool(effect="read")
    def half(amount: float) -> float:
        return amount / 2

    agent = Agent(FunctionModel(echo), [half], journal=MemoryJournal())
    task = Task("halve", steps=(PlanStep("1", "half of 3", "tool", tool_id="half", parameters={"amount": "3"}),))
    first, again = [[run async for run in agent.map([task], id="b")] for _ in range(2)]
    assert first == again
    with pytest.raises(UsageError, match="has another task"):
        await anext(agent.map([replace(task, attachments=(Attachment("a.txt", "x"),))], id="b"))


async def test_closing_the_batch_leaves_its_runs_resumable() -> None:
    store, begun = MemoryJournal(), asyncio.Event()

    async def waits(request: ModelRequest) -> Scripted:
        if request.messages[-1].content != "first":
            begun.set()
            await asyncio.Event().wait()
        return "done"

    async with aclosing(Agent(FunctionModel(waits), journal=store).map(["first", "second"], id="b")) as runs:
        assert (await anext(runs)).answer == "done"
        await begun.wait()
    left: list[Run] = [run async for run in Agent(FunctionModel(echo), journal=store).map(["first", "second"], id="b")]
    assert sorted(run.answer for run in left) == ["SECOND", "done"]
