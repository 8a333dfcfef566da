"""Limits of a planned run: requests, tokens and time that are used up, steps tried too often, and what is told then.

Source: spec/planning.md, sections 8, 10 and 11; spec/primitives.md, 2.5.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest

from plan_kit import (
    GIVE_UP,
    ONE_BY_ONE,
    WORDS,
    World,
    adjusted,
    configured,
    ended,
    evaluators,
    events_of,
    off,
    planning_of,
    script,
    statuses,
    step,
    thinking,
)
from scenes import Row, play, scenes
from surefoot import Agent, Budget, GuardConfig, LoopConfig, MemoryJournal, ModelRequest, PlanConfig, Run, tool
from surefoot.core.loop.fold import fold
from surefoot.testing.journals import CheckedJournal, Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.testing.world import plan
from surefoot.types.events import CallEnded, CallStarted, Event, InStep, StepLimitReached
from surefoot.types.guard_events import BranchCommitted
from surefoot.types.plan_events import PlanEdited, RunEvaluated
from surefoot.types.ports import JournalStore
from surefoot.types.progress import LimitAction, StepIterationConfig
from surefoot.types.reflection import EvaluationResult, ExecutionContext

pytestmark = pytest.mark.anyio

When = Literal["before", "after"]

LOOK = plan(step("a", "look", q="x"))
BOTH = plan(step("a", "look", q="x"), step("b", "look", q="z"))
TO_Y = adjusted("a", q="y")


def thoughts(count: int) -> Scripted:
    return plan(*(thinking(f"t{at}") for at in range(count)))


def planner(proposed: Scripted, words: str = "words") -> FunctionModel:
    """A model that plans this, and else says these words."""
    return FunctionModel(lambda request: json.dumps(proposed) if "You plan a task" in request.system else words)


def tries(most: int, action: LimitAction = LimitAction.SkipStep, **more: Any) -> StepIterationConfig:
    return StepIterationConfig(max_reattempts_per_step=most, on_limit_reached=action, **more)  # Any: as it has them


@scenes("plans", "limits")
async def test_what_limits_make_of_a_plan(row: Row) -> None:
    played = await play(row, World, WORDS, reasoner="plan", config=ONE_BY_ONE, evaluators=evaluators())
    notes = [one.evaluation.note for one in played.events if isinstance(one, RunEvaluated)]
    done = [name for name, step in (await planning_of(played.agent)).steps.items() if step.status == "succeeded"]
    assert len(done) == row.get("succeeded", len(done))
    assert all(any(text in note for note in notes) for text in row.get("notes", ()))


async def test_reflections_are_counted_beside_what_steps_ask() -> None:
    steps = plan(step("a", "look", q="x"), *(thinking(f"t{at}") for at in range(4)))

    async def said(request: ModelRequest) -> str:
        await asyncio.sleep(0)
        if "You plan a task" in request.system:
            return json.dumps(steps)
        return "words" if "failed" not in request.system.lower() else json.dumps(GIVE_UP)

    for most in (3, 4, 5):
        model = FunctionModel(said)
        agent = World(x=9).agent(model, config=configured(max_llm_calls=most, max_parallel=5))
        run = await agent.run("go", run_id="r")
        assert (run.reason, len(model.requests) <= most) == ("llm_budget", True)


@pytest.mark.parametrize("budget", [None, Budget(max_tokens=40)])
async def test_tokens_of_requests_under_way_are_reckoned_with(budget: Budget | None) -> None:
    model = planner(thoughts(8))
    config = configured(budget=budget, max_parallel=8) if budget else configured(max_tokens=40, max_parallel=8)
    run = await World().agent(model, config=config).run("go", run_id="r")
    each = run.usage.total_tokens / len(model.requests)
    assert (ended(run), run.usage.total_tokens < 40 + each) == (("stopped", "token_budget"), True)


async def test_with_tokens_to_spare_steps_still_run_side_by_side() -> None:
    now = most = 0

    async def said(request: ModelRequest) -> str:
        nonlocal now, most
        if "You plan a task" in request.system:
            return json.dumps(thoughts(4))
        now += 1
        most = max(most, now)
        for _ in range(5):
            await asyncio.sleep(0)
        now -= 1
        return "words"

    run = await World().agent(FunctionModel(said), config=configured(max_tokens=100_000, max_parallel=4)).run("go")
    assert (run.status, most) == ("completed", 4)


@pytest.mark.parametrize("how", ["slow", "plain", "blocking"])
async def test_an_evaluator_has_the_time_that_is_left(how: str) -> None:
    released = threading.Event()

    async def slow(_: ExecutionContext) -> EvaluationResult:
        await asyncio.sleep(60)
        return EvaluationResult("", passed=True)

    def plain(_: ExecutionContext) -> EvaluationResult:
        released.wait(60)
        return EvaluationResult("", passed=True)

    async def blocking(_: ExecutionContext) -> EvaluationResult:
        released.wait(0.5)  # it holds up the whole loop, and nobody can cut it off
        return EvaluationResult("", passed=True)

    looking = {"slow": slow, "plain": plain, "blocking": blocking}
    agent = World().agent(LOOK, config=off(deadline_s=0.3, evaluators=(how,)), evaluators=looking)
    try:
        async with asyncio.timeout(10):
            run = await agent.run("go", run_id="r")
    finally:
        released.set()
    assert ended(run) == ("stopped", "deadline")
    (evaluation,) = (await planning_of(agent)).evaluations
    assert (evaluation.passed, "no word" in evaluation.note) == (False, True)


@pytest.mark.parametrize("kind", ["tool", "agent"])
async def test_a_read_that_the_deadline_cuts_off_is_cancelled_and_made_again(kind: str) -> None:
    world, met = World(), calls(("meet", {"who": "x"}))
    own = step("a", "meet", who="x") if kind == "tool" else thinking("a", kind="agent", allowed_tools=["meet"])
    model = script(plan(own), *([] if kind == "tool" else [met, met, "pages"]))
    fields: dict[str, Any] = {"answer": "off", "transient_retries": 0}  # Any: of the plan
    agent = world.agent(model, config=configured(deadline_s=0.4, **fields))
    assert ended(await agent.run("go", run_id="r")) == ("stopped", "deadline")
    inner = [one.event for one in await events_of(agent) if isinstance(one, InStep)]
    assert [one.result.kind for one in inner if isinstance(one, CallEnded)] == ["cancelled"]
    assert kind == "agent" or await statuses(agent) == {"a": "cancelled"}
    world.met.set()
    assert (await agent.resume("r", config=configured(deadline_s=100, **fields))).status == "completed"
    inner = [one.event for one in await events_of(agent) if isinstance(one, InStep)]
    assert sum(isinstance(one, CallStarted) for one in inner) == 2


AGENTS = plan(
    step("r", "look", q="r"),
    *(step(f"a{at}", kind="agent", instruction="look", allowed_tools=["look"]) for at in range(4)),
)


class Guesser:
    """A model that plans a call and four agent steps, and in each of these names `width` more things to look up.

    `asked` counts its replies by what was asked for: ways to go on, a choice between them, and words.
    """

    def __init__(self, width: int = 1) -> None:
        self.asked = {"ways": 0, "choice": 0, "words": 0}
        self.width = width

    async def __call__(self, request: ModelRequest) -> str:
        await asyncio.sleep(0)
        if request.system.startswith("You name the ways"):
            self.asked["ways"] += 1
            names = [f"{self.asked['ways']}.{at}" for at in range(self.width)]
            return json.dumps({"branches": [{"tool_name": "look", "argument_sets": [{"q": name}]} for name in names]})
        if request.system.startswith("You choose how an agent"):
            self.asked["choice"] += 1
            return json.dumps({"reason": "the first", "branch_id": "b1"})
        self.asked["words"] += 1
        return json.dumps(AGENTS) if "You plan a task" in request.system else "words"


def direct(budget: Budget | None = None, **plan_fields: Any) -> LoopConfig:  # Any: of the plan
    guard = GuardConfig(speculate=True, direct=True)
    return LoopConfig(plan=PlanConfig(**plan_fields), budget=budget or Budget(), guard=guard)


def unasked(events: Sequence[Event]) -> int:
    inner = [one.event for one in events if isinstance(one, InStep)]
    return sum(isinstance(one, BranchCommitted) and one.direct for one in inner)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("parallel", [1, 4])
@pytest.mark.parametrize("answer", ["off", "auto"])
async def test_turns_without_a_request_count_as_one(width: int, parallel: int, answer: str) -> None:
    for config in (
        direct(Budget(max_steps=12), max_parallel=parallel, answer=answer),
        direct(max_llm_calls=12, max_parallel=parallel, answer=answer),
    ):
        world, guesser = World(), Guesser(width)
        agent = world.agent(FunctionModel(guesser), config=config)
        run = await agent.run("Look things up", run_id="r")
        turns = unasked(await events_of(agent))
        assert ended(run) == ("stopped", "llm_budget")
        assert (turns + guesser.asked["words"], len(world.ran)) == (12, turns + 1)  # the answer is among the words
        assert guesser.asked["ways"] <= turns + parallel
        assert guesser.asked["choice"] <= guesser.asked["ways"]
        assert run.answer == ("words" if answer == "auto" else "")


async def test_what_is_left_tells_of_turns_without_a_request() -> None:
    left: list[float | None] = []

    async def judged(context: ExecutionContext) -> EvaluationResult:
        left.append(context.budget_left["llm_calls"])
        return EvaluationResult("judged", passed=True)

    async def said(request: ModelRequest) -> str:
        reply = await guesser(request)
        is_over = guesser.asked["ways"] > 6 and "You name the ways" in request.system
        return json.dumps({"branches": [{"tool_name": "__response__", "argument_sets": [{}]}]}) if is_over else reply

    guesser = Guesser()
    config = direct(max_llm_calls=40, max_parallel=1, answer="off", evaluators=("judged",))
    agent = World().agent(FunctionModel(said), config=config, evaluators={"judged": judged})
    run = await agent.run("Look things up", run_id="r")
    turns = unasked(await events_of(agent))
    assert (run.status, turns > 0, left) == ("completed", True, [40 - turns - guesser.asked["words"]])


async def test_with_a_higher_limit_turns_without_a_request_go_on() -> None:
    world, guesser = World(), Guesser()
    agent = world.agent(FunctionModel(guesser), config=direct(max_llm_calls=6, answer="off"))
    assert (await agent.run("Look things up", run_id="r")).reason == "llm_budget"
    assert len(world.ran) == 6
    run = await agent.resume("r", config=direct(max_llm_calls=9, answer="off"))
    assert (ended(run), len(world.ran)) == (("stopped", "llm_budget"), 9)
    await events_of(agent)


async def finished(make: Callable[[JournalStore], Agent], at: int) -> tuple[Run, list[Event], int]:
    """A run that goes on after a crash at that append, and its records, with how many appends there were before.

    It dies before every other append, and after those between: at each in both ways would be `test_crash.py` again.
    """
    memory = MemoryJournal()
    store = CrashingStore(CheckedJournal(memory), at, "after" if at % 2 else "before")
    agent = make(store)
    try:
        run = await agent.run("Look things up", run_id="r")
    except Crash:
        agent = make(CheckedJournal(memory))
        state = fold([record.event for record in (await memory.read_recorded("r"))[0]])
        if state.task is None:
            run = await agent.run("Look things up", run_id="r")
        else:
            run = Run.of(state) if state.ending is not None else await agent.resume("r")
    return run, await events_of(agent), store.operations


def limits_of(events: Sequence[Event]) -> list[tuple[str, int, str, str]]:
    told = (one for one in events if isinstance(one, StepLimitReached))
    return [(one.step_id, one.attempts, one.kind, one.action.value) for one in told]


async def test_what_is_in_flight_ends_before_a_step_is_skipped() -> None:
    gate, world = asyncio.Event(), World(x=9)

    @tool(effect="read")
    async def wait(q: str) -> str:
        """Wait."""
        await gate.wait()
        return q

    steps = plan(step("a", "look", q="x"), step("b", "wait", q="w"), step("c", "look", ["a"], q="z"))
    agent = world.agent(script(steps), config=configured(limits=tries(1), answer="off"), more=[wait])
    running = asyncio.ensure_future(agent.run("go", run_id="r"))
    await asyncio.sleep(0.1)
    assert not [one for one in await events_of(agent) if isinstance(one, PlanEdited)]
    gate.set()
    assert ended(await running) == ("completed_partial", "step_limit")
    assert await statuses(agent) == {"a": "skipped", "b": "succeeded", "c": "succeeded"}


@pytest.mark.parametrize("action", list(LimitAction))
async def test_a_crash_at_any_place_comes_to_the_same_end(action: LimitAction) -> None:
    def said(request: ModelRequest) -> str:
        if "You plan a task" in request.system:
            return json.dumps(BOTH)
        return json.dumps(TO_Y) if "You look at the whole run" in request.system else "words"

    async def play(at: int) -> tuple[object, int]:
        world, config = World(x=9), configured(limits=tries(1, action), max_parallel=1)
        run, events, operations = await finished(
            lambda store: world.agent(FunctionModel(said), config=config, store=store), at
        )
        planning = fold(events).planning
        assert planning is not None
        ends = {name: record.status for name, record in planning.steps.items()}
        return (ended(run), ends, limits_of(events)), operations

    wanted, operations = await play(0)
    for at in range(2, operations + 1):
        assert (await play(at))[0] == wanted, at


@pytest.mark.parametrize("most", [49, 50, 51])
async def test_a_number_of_steps_that_is_said_bounds_the_run_and_its_steps_the_default_steps_alone(most: int) -> None:
    models = [planner(thoughts(60)) for _ in range(2)]
    agent = World().agent(models[0], config=configured(budget=Budget(max_steps=most), max_steps=60))
    assert ((await agent.run("go", run_id="r")).reason, len(models[0].requests)) == ("llm_budget", most)
    assert (await planning_of(agent)).loops.words.budget.max_steps == most
    more = await agent.resume("r", config=configured(budget=Budget(max_steps=100)))
    assert (more.status, len(models[0].requests)) == ("completed", 63)  # answered anew
    run = await World().agent(models[1], config=configured(max_steps=60, max_parallel=8)).run("go")
    assert (run.status, len(models[1].requests)) == ("completed", 62)


@pytest.mark.parametrize("limit", ["max_tool_calls", "deadline_s"])
@pytest.mark.parametrize("approvals", ["pause", "queue"])
async def test_a_question_outlives_a_limit(limit: str, approvals: Any) -> None:  # Any: of `GuardConfig`
    world, guard = World(), GuardConfig(approvals=approvals)
    letters = (step(name, "send", to=f"{name}@x.example") for name in "ab")
    others = (step("c", "look", q="x"), step("d", "meet", ["c"], who="me"), step("e", "look", ["d"], q="z"))
    few: dict[str, Any] = {"max_tool_calls": 2} if limit == "max_tool_calls" else {"deadline_s": 0.1}  # Any: the same
    agent = world.agent(plan(*letters, *others), config=configured(guard, answer="off", **few))
    if limit == "max_tool_calls":
        world.met.set()  # else the call waits until the deadline has passed
    run = await agent.run("Send a mail to everybody.", run_id="r")
    assert (ended(run), {one.id for one in run.waiting}) == (("paused", "approval"), {"a.1", "b.1"})
    assert (await agent.resume("r")).status == "paused"
    run = await agent.approve("r", "b.1", by="Ada")
    assert [one.id for one in run.waiting] == ["a.1"]
    world.met.set()
    more = configured(guard, answer="off", max_tool_calls=9, deadline_s=60.0)
    await agent.resume("r", config=more)
    await agent.approve("r", "a.1", by="Ada")
    assert (await agent.resume("r", config=more)).status == "completed"
    sent = sorted(line for line in world.ran if line.startswith("send"))
    assert sent == ["send a@x.example", "send b@x.example"]
