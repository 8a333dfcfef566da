"""How many runs of one agent are driven at once, and in which order the others come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from surefoot.agent import Agent
from surefoot.journal.memory import MemoryJournal
from surefoot.run import Run
from surefoot.runtime.admission import MOST_INSIDE
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.tools.function import tool
from surefoot.types.config import LoopConfig
from surefoot.types.errors import ConfigError
from surefoot.types.messages import ModelRequest

pytestmark = pytest.mark.anyio
LIMIT_S = 20


class Held:
    """A model that answers each run when it is told to, and remembers the tasks in the order in which they came."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    async def reply(self, request: ModelRequest) -> Scripted:
        task = request.messages[0].content
        self.came.append(task)
        await self.gates.setdefault(task, asyncio.Event()).wait()
        return "done"

    async def until(self, wanted: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not wanted():  # noqa: ASYNC110  # what it waits for tells nobody
                await asyncio.sleep(0)


def started(agent: Agent, *tasks: str) -> list[asyncio.Task[Run]]:
    return [asyncio.create_task(agent.run(task, run_id=task)) for task in tasks]


async def turns(number: int = 200) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def most_in_a_turn(model: Held, all_: int) -> int:
    """How many runs have come in one turn of the loop at most, until so many are there."""
    most = before = 0
    while before < all_:
        await asyncio.sleep(0)
        most, before = max(most, len(model.came) - before), len(model.came)
    return most


async def test_further_runs_wait_in_order_and_have_no_record_before() -> None:
    model, store = Held(), MemoryJournal()
    running = started(Agent(FunctionModel(model.reply), journal=store, max_concurrent_runs=2), "a", "b", "c", "d")
    await turns()
    assert model.came == ["a", "b"]
    assert {info.run_id for info in await store.runs()} == {"a", "b"}
    model.gates["b"].set()
    await model.until(lambda: len(model.came) > 2)
    await turns()
    assert model.came == ["a", "b", "c"]
    for task in "acd":
        model.gates.setdefault(task, asyncio.Event()).set()
    async with asyncio.timeout(LIMIT_S):
        assert [run.status for run in await asyncio.gather(*running)] == ["completed"] * 4


async def test_a_run_that_is_cancelled_while_it_waits_leaves_the_queue() -> None:
    model = Held()
    running = started(Agent(FunctionModel(model.reply), max_concurrent_runs=1), "a", "b", "c")
    await turns()
    running[1].cancel()
    await turns()
    model.gates["a"].set()
    await model.until(lambda: len(model.came) > 1)
    assert model.came == ["a", "c"]
    model.gates["c"].set()
    async with asyncio.timeout(LIMIT_S):
        await asyncio.wait(running)
    assert running[1].cancelled()


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_run_inside_of_a_run_uses_its_place(*, in_thread: bool) -> None:
    def reply(request: ModelRequest) -> Scripted:
        is_outer = request.messages[0].content == "outer"
        return calls(("ask", {})) if is_outer and len(request.messages) == 1 else "done"

    async def ask() -> str:
        return (await agent.run("inner")).answer

    def ask_in_thread() -> str:
        return recipe().run_sync("inner").answer

    recipe = partial(Agent, FunctionModel(reply), max_concurrent_runs=1)
    asked = ask_in_thread if in_thread else ask
    agent = recipe([tool(asked, effect="read", name="ask")])
    async with asyncio.timeout(LIMIT_S):
        run = await agent.run("outer")
    assert (run.status, run.calls) == ("completed", 1)


async def test_a_run_that_waits_for_a_person_holds_no_place() -> None:
    @tool(effect="transact")
    async def pay(to: str) -> str:
        await asyncio.Event().wait()
        return f"paid {to}"

    def reply(request: ModelRequest) -> Scripted:
        return calls(("pay", {"to": "XX99"})) if request.messages[0].content == "a" else "done"

    config = LoopConfig(tool_timeout_s=0.01)
    agent = Agent(FunctionModel(reply), [pay], config=config, max_concurrent_runs=1)
    async with asyncio.timeout(LIMIT_S):
        assert (await agent.run("a", run_id="a")).status == "paused"
        assert (await agent.run("b")).status == "completed"


async def test_what_a_run_has_left_behind_is_inside_of_no_run() -> None:
    model, left = Held(), list[asyncio.Task[Run]]()

    def reply(request: ModelRequest) -> object:
        if request.messages[0].content != "outer":
            return model.reply(request)
        return calls(("leave", {})) if len(request.messages) == 1 else "done"

    @tool(effect="read")
    async def leave() -> str:
        """Start something that lasts longer."""
        left.append(asyncio.create_task(later()))
        return "started"

    async def later() -> Run:
        await over.wait()
        return await agent.run("left")

    over, agent = asyncio.Event(), Agent(FunctionModel(reply), [leave], max_concurrent_runs=1)  # type: ignore[arg-type]  # gives replies
    await agent.run("outer")
    first = started(agent, "a")
    await model.until(lambda: bool(model.came))
    over.set()
    await turns()
    assert model.came == ["a"]
    for task in ("a", "left"):
        model.gates.setdefault(task, asyncio.Event()).set()
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(*first, *left)


async def test_many_runs_begin_one_in_each_turn_of_the_loop() -> None:
    model = Held()
    running = started(Agent(FunctionModel(model.reply), max_concurrent_runs=50), *map(str, range(300)))
    assert await most_in_a_turn(model, 50) <= 2
    for each in running:
        each.cancel()
    await asyncio.wait(running, timeout=LIMIT_S)


async def test_runs_inside_of_a_run_begin_one_in_each_turn_and_so_many_at_once() -> None:
    model = Held()

    async def reply(request: ModelRequest) -> Scripted:
        if request.messages[0].content != "outer":
            return await model.reply(request)
        return calls(("ask_many", {})) if len(request.messages) == 1 else "done"

    @tool(effect="read")
    async def ask_many() -> int:
        return len(await asyncio.gather(*started(agent, *map(str, range(MOST_INSIDE + 50)))))

    agent = Agent(FunctionModel(reply), [ask_many], max_concurrent_runs=1)
    outer = asyncio.create_task(agent.run("outer"))
    async with asyncio.timeout(LIMIT_S):
        assert await most_in_a_turn(model, MOST_INSIDE) <= 2
        await turns()
        assert len(model.came) == MOST_INSIDE
        while not outer.done():  # each that has come is let go
            for task in model.came:
                model.gates[task].set()
            await asyncio.sleep(0)
    assert (await outer).status == "completed"
    assert len(model.came) == MOST_INSIDE + 50


def test_one_agent_serves_one_loop_after_the_other_and_needs_a_number_that_can_be_meant() -> None:
    agent = Agent(FunctionModel(lambda _: "done"), max_concurrent_runs=1)
    assert [agent.run_sync("a").status, agent.run_sync("b").status] == ["completed", "completed"]
    for most in (0, -1, 1.5, True, "2", None):
        with pytest.raises(ConfigError, match="max_concurrent_runs"):
            replace(agent, max_concurrent_runs=most)  # type: ignore[arg-type]  # misuse
