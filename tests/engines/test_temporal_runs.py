"""Runs as workflows, on Temporal's development server: the same events as without it, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("temporalio", reason="the extra `temporal` is not installed")

from dev_server import Server
from temporal_world import NUMBERS, PATIENCE_S, Lasting, at_rest, begun_anew, engine
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.worker import Replayer

from desk import BILL, Desk
from plan_kit import ONE_BY_ONE, WORDS, World, off, plan, step
from records import events_of, until
from scenes import Played, Row, config_of, drive, models_of, rows_in, task_of
from surefoot import Agent, Budget, LoopConfig, MemoryJournal, Run, Task, tool
from surefoot.core.loop.moves import next_moves
from surefoot.core.state.state import State
from surefoot.engines.temporal import worker
from surefoot.engines.temporal.payloads import WORKFLOW, Given, Size, workflow_id
from surefoot.engines.temporal.worker import SANDBOX, Engine, adopt, checked, connected
from surefoot.engines.temporal.workflow import RunWorkflow
from surefoot.journal.memory import store_of
from surefoot.testing.journals import CheckedJournal
from surefoot.testing.models import FunctionModel, ScriptedModel, calls
from surefoot.types import events as e
from surefoot.types.errors import UsageError
from surefoot.types.events import Event
from surefoot.types.messages import ModelRequest
from surefoot.types.moves import Act, Move, Record, Think
from surefoot.types.outcomes import Completed, Deny, Ending, Stopped
from surefoot.types.ports import JournalStore, Tool

pytestmark = [pytest.mark.anyio, pytest.mark.temporal, pytest.mark.timeout(300)]

_TIMES = ("elapsed_s", "took_s", "first_s")


def timeless(value: object) -> Any:  # Any: as it was given
    """An event without the times in it."""
    if isinstance(value, tuple):
        return tuple(map(timeless, cast("tuple[object, ...]", value)))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    own = {one.name: getattr(value, one.name) for one in fields(value) if one.init and not one.name.startswith("_")}
    return replace(value, **{key: 0.0 if key in _TIMES else timeless(inner) for key, inner in own.items()})


def told(events: Sequence[Event]) -> list[Event]:
    """What happened, whoever drove it and whenever."""
    return [timeless(one) for one in events[1:] if not isinstance(one, e.DriverChanged | e.RunResumed)]


def _is_for_all(row: Row) -> bool:
    """Whether a person only answers in it, one question at a time, and neither clock nor order of ends count."""
    said = [do for do in row.get("then", ()) if do[0] not in ("open", "is", "asked")]
    is_one_by_one = all((one[0] == "resume") is (at % 2 == 1) or one[0] in ("yes", "no") for at, one in enumerate(said))
    by_time = any(word in str(row) for word in ("max_seconds", "deadline_s", "'meet'"))
    return is_one_by_one and not by_time and not any(do[0] == "resume" and len(do) > 1 for do in said)


async def through(store: JournalStore, agent: Agent[Any], row: Row, task: Task, run_id: str) -> Run:
    """The run of a row as a workflow, with what a person says to it."""
    await agent.start(task, run_id=run_id)
    run = await at_rest(store, run_id)
    for do, *what in row.get("then", ()):
        match do:
            case "approve" | "refuse" | "yes" | "no":
                called = what[0] if what else 0
                call = called if isinstance(called, str) else run.waiting[called].id
                if do in ("approve", "yes"):
                    await agent.approve(run_id, call, by="Ada")
                else:
                    await agent.refuse(run_id, call, by="Ada", reason="".join(what[1:]))
            case _:
                continue
        run = await at_rest(store, run_id)
    return run


def made_of(row: Row, world: Any, words: Any, store: JournalStore, name: str, **options: Any) -> tuple[Agent, Any, Any]:
    models, real = models_of(row, words), world(**row.get("world", {}))
    given = {**options, **row.get("agent", {})}
    config = config_of({**given.pop("config", {}), **row.get("config", {})})
    model = models if len(models) > 1 else models["solo"]
    return Agent(model, real.tools(), journal=store, config=config, name=name, **given), real, models


SCENES: list[tuple[Row, Any, Any, str, dict[str, Any]]] = [
    *((row, World, WORDS, "go", {"reasoner": "plan", "config": ONE_BY_ONE}) for row in rows_in("plans", "runs")),
    *((row, Desk, None, BILL, {"config": {"guard": {}}}) for row in rows_in("guard")),
]


async def play_all(server: Server, scenes: Sequence[tuple[Row, Any, Any, str, dict[str, Any]]], size: Size) -> None:
    store, alone = CheckedJournal(MemoryJournal()), CheckedJournal(MemoryJournal())
    made = [made_of(row, world, words, store, f"a{n}", **how) for n, (row, world, words, _, how) in enumerate(scenes)]
    room, mark = asyncio.Semaphore(6), next(NUMBERS)  # workflows of other tests may be open still

    async def played(n: int) -> str:
        row, world, words, task, options = scenes[n]
        agent, real, models = made[n]
        other, _, _ = made_of(row, world, words, alone, f"a{n}", **options)
        await drive(other, row, task, run_id := f"r{mark}-{n}")
        async with room:
            run = await through(store, agent, row, task_of(row, task), run_id)
        events = await events_of(store, run_id)
        Played(run, agent, real, models, events).hold(row)
        return "" if told(events) == told(await events_of(alone, run_id)) else row["why"]

    async with engine(server, *(agent for agent, _, _ in made), size=size):
        assert [one for one in await asyncio.gather(*map(played, range(len(scenes)))) if one] == []


@pytest.mark.parametrize("size", ["move", "run"])
async def test_what_happens_is_what_happens_without_temporal(temporal_server: Server, size: Size) -> None:
    await play_all(temporal_server, [one for one in SCENES if _is_for_all(one[0])][::6], size)


@pytest.mark.scale
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", ["move", "run"])
async def test_each_scene_is_what_it_is_without_temporal(temporal_server: Server, size: Size) -> None:
    await play_all(temporal_server, [one for one in SCENES if _is_for_all(one[0])], size)


# --- plans with parallel steps, waits, words while something is under way


async def alike(server: Server, make: Callable[[JournalStore], Agent[Any]], **options: Any) -> list[Event]:
    """The events of a run by moves, held against those of the same run without Temporal, in whatever order."""
    store, alone, run_id = CheckedJournal(MemoryJournal()), CheckedJournal(MemoryJournal()), f"r{next(NUMBERS)}"
    await make(alone).run("go", run_id=run_id)
    agent = make(store)
    async with engine(server, agent, **options):
        await agent.start("go", run_id=run_id)
        await at_rest(store, run_id)
    events = await events_of(store, run_id)
    assert sorted(map(str, told(events))) == sorted(map(str, told(await events_of(alone, run_id))))
    return events


async def test_steps_of_a_plan_are_made_side_by_side(temporal_server: Server) -> None:
    steps = [step(name, "meet", who=name, of=3) for name in "abc"]
    proposal = plan(*steps, step("d", "look", "abc", q="d"))
    options: dict[str, Any] = {"config": off(max_parallel=3), "name": "planner"}
    events = await alike(temporal_server, lambda store: World().agent(proposal, store=store, **options))
    kinds = [type(one.event) for one in events if isinstance(one, e.InStep) and one.step_id in "abc"]
    assert [one for one in kinds if one in (e.CallStarted, e.CallEnded)] == [e.CallStarted] * 3 + [e.CallEnded] * 3


async def test_a_plan_waits_before_a_step_is_tried_again(temporal_server: Server) -> None:
    broken = {"look x": "ConnectionError: gone"}
    proposal = plan(step("a", "look", q="x"))
    await alike(temporal_server, lambda store: World(broken).agent(proposal, config=off(), store=store, name="planner"))


@pytest.mark.parametrize("size", ["move", "run"])
async def test_who_speaks_is_heard_while_a_call_is_under_way(temporal_server: Server, size: Size) -> None:
    store = MemoryJournal()
    held, run_id = Lasting(store), f"r{next(NUMBERS)}"
    async with engine(temporal_server, held.agent, size=size):
        await held.begin(run_id)
        await held.agent.note(run_id, "in red, please", by="Ada")
        async with asyncio.timeout(PATIENCE_S):
            async for one in store.subscribe(run_id):
                if isinstance(one.event, e.RunNoted):
                    break
        held.go.set()
        assert (await at_rest(store, run_id)).status == "completed"
    kinds = [type(one) for one in await events_of(store, run_id)]
    assert kinds.index(e.CallStarted) < kinds.index(e.RunNoted) < kinds.index(e.CallEnded)


@pytest.mark.parametrize("size", ["move", "run"])
async def test_a_run_is_cancelled_while_a_call_is_under_way(temporal_server: Server, size: Size) -> None:
    store = MemoryJournal()
    held, run_id = Lasting(store), f"r{next(NUMBERS)}"
    async with engine(temporal_server, held.agent, size=size) as client:
        await held.begin(run_id)
        await held.agent.cancel(run_id, by="Ada")
        assert (await at_rest(store, run_id)).status == "cancelled"
        assert await asyncio.wait_for(client.get_workflow_handle(workflow_id(run_id)).result(), 60) == "cancelled"
        await until(lambda: held.is_cut)  # its worker is told with the next sign of life


# --- sizes


def counting(steps: int, store: JournalStore) -> Agent[Any]:
    @tool(effect="read")
    async def add(a: int) -> int:
        """Add one."""
        return a + 1

    said = [*(calls(("add", {"a": at})) for at in range(steps)), "Done."]
    config = LoopConfig(budget=Budget(max_steps=steps + 9))
    return Agent(ScriptedModel(said), tools=[add], journal=store, name="clerk", config=config)


async def grown(temporal_server: Server, steps: int) -> None:
    store, run_id = MemoryJournal(), f"r{next(NUMBERS)}"
    agent = counting(steps, store)
    async with engine(temporal_server, agent, most_events=150) as client:
        await agent.start("go", run_id=run_id)
        assert (await at_rest(store, run_id, 60 + 2 * steps)).status == "completed"
        handle = client.get_workflow_handle(workflow_id(run_id))
        assert await asyncio.wait_for(handle.result(), 60) == "completed"
        described = await handle.describe()
    events = await events_of(store, run_id)
    assert [one.call_id for one in events if isinstance(one, e.CallEnded)] == [f"{n}.0" for n in range(1, steps + 1)]
    first = described.raw_description.workflow_execution_info.first_run_id
    assert first != described.run_id, "it has begun anew"


async def test_a_long_run_begins_its_history_anew(temporal_server: Server) -> None:
    await grown(temporal_server, 25)


@pytest.mark.scale
@pytest.mark.timeout(1200)
async def test_a_run_of_600_steps(temporal_server: Server) -> None:
    await grown(temporal_server, 600)


async def test_a_large_result_and_many_tools(temporal_server: Server) -> None:
    @tool(effect="read")
    async def read_all() -> str:
        """Read all of it."""
        return "x" * 5_000_000

    def one_of_many(number: int) -> Tool:
        async def look(what: str) -> str:
            return what

        look.__name__, look.__doc__ = f"look_{number}", f"Look up things of kind {number}. " * 10
        return tool(look, effect="read")

    tools = [read_all, *map(one_of_many, range(500))]

    def made(store: JournalStore) -> Agent[Any]:
        said = [calls(("read_all", {})), calls(("look_7", {"what": "y" * 200_000})), "Done."]
        config = LoopConfig(tool_result_chars=6_000_000)
        return Agent(ScriptedModel(said), tools=tools, journal=store, name="clerk", config=config)

    events = await alike(temporal_server, made)
    assert sum(isinstance(one, e.CallEnded) for one in events) == 2


# --- a changed core


Moves = tuple[Move, ...]


def _events(change: Callable[[Event], Event | None]) -> Callable[[Moves, bool], Moves]:
    """All that is put on record, changed; None leaves an event out."""

    def changed(moves: Moves, _: bool) -> Moves:
        told = (
            Record(tuple(new for one in move.events if (new := change(one)) is not None))
            if isinstance(move, Record)
            else move
            for move in moves
        )
        return tuple(move for move in told if not isinstance(move, Record) or move.events)

    return changed


def _each(change: Callable[[Move], Moves]) -> Callable[[Moves, bool], Moves]:
    return lambda moves, _: tuple(new for move in moves for new in change(move))


def _judged(**other: Any) -> Callable[[Moves, bool], Moves]:  # Any: fields of the event
    return _events(lambda one: replace(one, **other) if isinstance(one, e.CallJudged) else one)


def _ended(change: Callable[[str], Ending]) -> Callable[[Moves, bool], Moves]:
    def changed(one: Event) -> Event:
        match one:
            case e.RunEnded(Completed(answer)):
                return e.RunEnded(change(answer))
            case _:
                return one

    return _events(changed)


def _is_end(move: Move) -> bool:
    return isinstance(move, Record) and any(isinstance(one, e.RunEnded) for one in move.events)


def _thinking(**other: Any) -> Callable[[Moves, bool], Moves]:  # Any: fields of the move
    return _each(lambda move: (replace(move, **other) if isinstance(move, Think) else move,))


_NOTE = Record((e.RunNoted("Go on.", "nobody"),))
MUTANTS: Mapping[str, Callable[[Moves, bool], Moves]] = {  # what is decided, and whether something is under way
    "in the other order": lambda moves, _: moves[::-1],
    "the first last": lambda moves, _: (*moves[1:], *moves[:1]),
    "one after the other": lambda moves, is_busy: () if is_busy else moves[:1],
    "the last alone": lambda moves, _: moves[-1:],
    "each twice": lambda moves, _: tuple(one for move in moves for one in (move, move)),
    "calls in the other order": lambda moves, _: tuple(
        sorted(moves, key=lambda move: move.call_id if isinstance(move, Act) else "", reverse=True)
    ),
    "a note before the end": _each(lambda move: (_NOTE, move) if _is_end(move) else (move,)),
    "never an end": _each(lambda move: () if _is_end(move) else (move,)),
    "a note before each request": _each(lambda move: (_NOTE, move) if isinstance(move, Think) else (move,)),
    "a note before each call": _each(lambda move: (_NOTE, move) if isinstance(move, Act) else (move,)),
    "a note behind each request": _each(lambda move: (move, _NOTE) if isinstance(move, Think) else (move,)),
    "another rule": _judged(rule="another"),
    "by somebody": _judged(by="Ada"),
    "of another origin": _judged(origin="plan"),
    "refused": _judged(decision=Deny("not today")),
    "another answer": _ended(lambda answer: Completed(f"{answer}!")),
    "another ending": _ended(lambda _: Stopped("budget", "over")),
    "an answer wanted": _thinking(want="answer"),
    "another role": _thinking(role="thinker"),
    "another step": _thinking(step=7),
}


@tool(effect="read")
async def look(q: str) -> str:
    """Look it up."""
    return q


@workflow.defn(name=WORKFLOW)
class Mutant(RunWorkflow):
    """The workflow of a core that was changed."""

    change = "none"

    @staticmethod
    def decide(state: State, under_way: frozenset[Move] = frozenset()) -> Moves:
        moves = next_moves(state, under_way)
        return MUTANTS[Mutant.change](moves, bool(under_way)) if Mutant.change in MUTANTS else moves

    @workflow.run
    async def run(self, given: Given) -> str:
        return await super().run(given)


async def test_a_changed_core_is_caught_in_a_replay(temporal_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    store, run_id = MemoryJournal(), f"r{next(NUMBERS)}"

    said = [calls(("look", {"q": "a"}), ("look", {"q": "b"})), "Done."]
    agent = Agent(ScriptedModel(said), tools=[look], journal=store, name="clerk")
    async with engine(temporal_server, agent) as client:
        await agent.start("go", run_id=run_id)
        await at_rest(store, run_id)
        handle = client.get_workflow_handle(workflow_id(run_id))
        await asyncio.wait_for(handle.result(), 60)
        history = await handle.fetch_history()
    converter = client.data_converter
    await Replayer(workflows=[RunWorkflow], workflow_runner=SANDBOX, data_converter=converter).replay_workflow(history)
    replayer = Replayer(workflows=[Mutant], workflow_runner=SANDBOX, data_converter=converter)
    await replayer.replay_workflow(history)
    missed = list[str]()
    for name in MUTANTS:
        monkeypatch.setattr(Mutant, "change", name)
        told = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        if not re.search(r"adopt the run|ondeterminism", f"{told.replay_failure!r} {told.replay_failure}"):
            missed.append(name)
    assert len(MUTANTS) == 20
    assert missed == []


_FAILED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED


async def _came_of(handle: WorkflowHandle[Any, Any], patience_s: float = 15) -> str:
    """Whether a workflow has "ended", was "caught" at doing otherwise than its history, or is "stuck"."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING:
            return "ended"
        if _FAILED in {one.event_type for one in (await handle.fetch_history()).events}:
            return "caught"
        await asyncio.sleep(0.2)
    return "stuck"


@pytest.mark.scale
@pytest.mark.timeout(3600)
async def test_a_run_that_a_changed_core_got_is_finished_once_it_is_adopted(
    temporal_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paid, came = list[str](), dict[str, str]()

    @tool(effect="write", approval="always")
    async def pay(to: str) -> str:
        """Pay."""
        paid.append(to)
        return "paid"

    @asynccontextmanager
    async def deployed() -> AsyncGenerator[tuple[Agent, JournalStore, Client]]:
        store = store_of(str(tmp_path / "runs.db"))
        agent = Agent(model, tools=[look, pay], journal=store, name="clerk", config=config)
        async with engine(temporal_server, agent, queue="changed") as client:
            yield agent, store, client
        await store.aclose()

    config = LoopConfig(budget=Budget(max_steps=6))
    for name in MUTANTS:
        run_id = f"r{next(NUMBERS)}"
        said = [calls(("look", {"q": "a"}), ("look", {"q": "b"})), calls(("pay", {"to": run_id})), "Done.", "Done."]
        model = ScriptedModel(said)
        async with deployed() as (agent, store, _):
            await agent.start("Pay.", run_id=run_id)
            (asked,) = (await at_rest(store, run_id)).waiting
        monkeypatch.setattr(Mutant, "change", name)
        monkeypatch.setattr(worker, "RunWorkflow", Mutant)
        async with deployed() as (agent, store, client):
            handle = client.get_workflow_handle(workflow_id(run_id))
            await agent.approve(run_id, asked.id, by="Ada")
            came[name] = await _came_of(handle)
        monkeypatch.undo()
        async with deployed() as (_, store, client):
            if came[name] != "ended":  # what would come only later was never written otherwise
                await adopt(client, [run_id])
                assert (await at_rest(store, run_id)).status == "completed", name
        assert paid.count(run_id) == 1, name
    late = {"a note before the end", "never an end", "another answer", "another ending"}
    assert {name for name, what in came.items() if what != "caught"} == late


@pytest.mark.parametrize("size", ["move", "run"])
async def test_an_adopted_run_goes_on_from_its_journal(temporal_server: Server, size: Size) -> None:
    store = MemoryJournal()
    held, run_id = Lasting(store), f"r{next(NUMBERS)}"
    async with engine(temporal_server, held.agent, size=size) as client:
        await held.begin(run_id)
        first = (await client.get_workflow_handle(workflow_id(run_id)).describe()).run_id
        assert [one async for one in checked(store, client) if one[0] == run_id] == []
        await adopt(client, [run_id])
        await begun_anew(client, run_id, first)
        held.go.set()
        assert (await at_rest(store, run_id)).status == "completed"
        second = client.get_workflow_handle(workflow_id(run_id))
        assert await asyncio.wait_for(second.result(), 60) == "completed"
        assert (await second.describe()).run_id != first
        with pytest.raises(UsageError, match="no open workflow"):
            await adopt(client, ["r-nobody"])
    assert [type(one) for one in await events_of(store, run_id)].count(e.CallEnded) == 1


# --- several workers on one journal


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_two_workers_share_the_runs_of_a_journal(
    temporal_server: Server, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    place = request.getfixturevalue("postgres_url") if kind == "postgres" else str(tmp_path / "runs.db")
    names = [f"r{next(NUMBERS)}-{kind}" for _ in range(6)]
    stores, queue = [store_of(place), store_of(place)], f"q{next(NUMBERS)}"
    agents = [counting(6, store) for store in stores]
    model = FunctionModel(lambda asked: "Done." if _seen(asked) >= 6 else calls(("add", {"a": _seen(asked)})))
    agents = [replace(agent, model=model) for agent in agents]
    told, client = asyncio.Event(), await connected(stores[0], temporal_server.address)
    for name in names:
        await agents[0].start("go", run_id=name)
    engines = [
        Engine(store, {"clerk": agent}, await connected(store, temporal_server.address), queue=queue)
        for store, agent in zip(stores, agents, strict=True)
    ]
    workers = [asyncio.create_task(one.run(told)) for one in engines]
    for name in names:
        assert (await at_rest(stores[0], name)).status == "completed"
        assert await asyncio.wait_for(client.get_workflow_handle(workflow_id(name)).result(), 60) == "completed"
        events = await events_of(stores[0], name)
        assert sum(isinstance(one, e.CallEnded) for one in events) == 6
    told.set()
    await asyncio.gather(*workers)
    for store in stores:
        await store.aclose()


def _seen(asked: ModelRequest) -> int:
    return sum(one.role == "tool" for one in asked.messages)
