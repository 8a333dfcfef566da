"""Limits of a planned run: requests, tokens and time that are used up, steps tried too often, and what is told then.

Source: spec/planning.md, sections 8, 10 and 11; spec/primitives.md, 2.5.
"""

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from surefoot import Agent, Budget, LoopConfig, MemoryJournal, Run, tool
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.core.state.state import Planning
from surefoot.testing.journals import CheckedJournal, Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.tools.call import ToolFailed
from surefoot.types.events import CallEnded, Event, InStep, StepLimitReached
from surefoot.types.guard import GuardConfig
from surefoot.types.guard_events import BranchCommitted
from surefoot.types.messages import ModelRequest
from surefoot.types.plan import PlanConfig
from surefoot.types.plan_events import Escalated, PlanEdited
from surefoot.types.ports import JournalStore, Tool
from surefoot.types.progress import LimitAction, StepIterationConfig
from surefoot.types.reflection import EvaluationResult, ExecutionContext

pytestmark = pytest.mark.anyio

Reply = str | dict[str, Any]  # Any: JSON

GIVE_UP: Reply = {"suggested_action": {"type": "trigger_overall_reflection", "data": "nothing to be done here"}}
STOP: Reply = {"should_replan": False}


def step(name: str, tool_id: str = "", needs: Sequence[str] = (), kind: str = "tool", **more: Any) -> dict[str, Any]:
    """A step as a model writes it; what is no field of a step is a parameter. Any: JSON."""
    fields = {"must_succeed", "instruction", "allowed_tools"}
    made = {name: value for name, value in more.items() if name in fields}
    given = {name: value for name, value in more.items() if name not in fields}
    return {"step_id": name, "tool_id": tool_id, "kind": kind, "dependencies": list(needs), "parameters": given, **made}


def plan(*steps: dict[str, Any]) -> Reply:  # Any: JSON
    return {"description": "d", "steps": list(steps)}


def thoughts(count: int) -> Reply:
    return plan(*(step(f"t{at}", kind="reasoning", instruction=f"think of {at}") for at in range(count)))


def retry(**data: object) -> Reply:
    return {"suggested_action": {"type": "retry_with_params", "data": data}}


def replan(strategy: str, **more: Any) -> Reply:  # Any: JSON
    return {
        "should_replan": True,
        "problem_class": "tool",
        "completion_percent": 10,
        "replanning_strategy": {"type": strategy, **more},
    }


def script(*replies: Reply | Scripted) -> ScriptedModel:
    return ScriptedModel([json.dumps(one) if isinstance(one, dict) else one for one in replies])


def planner(proposed: Reply, words: str = "words") -> FunctionModel:
    """A model that plans this, and else says these words."""
    return FunctionModel(lambda request: json.dumps(proposed) if "You plan a task" in request.system else words)


def configured(
    budget: Budget | None = None, limits: StepIterationConfig | None = None, **plan_fields: Any
) -> LoopConfig:  # Any: of the plan
    return LoopConfig(plan=PlanConfig(**plan_fields), budget=budget or Budget(), step_iteration=limits)


class World:
    """Tools that keep a book; `broken` says of a call how often it still fails, and how."""

    def __init__(self, **broken: int) -> None:
        self.ran: list[str] = []
        self.broken = {f"look {q}": times for q, times in broken.items()}

    def tools(self) -> list[Tool]:
        @tool(effect="read")
        async def look(q: str) -> str:
            """Look something up."""
            line = f"look {q}"
            self.ran.append(line)
            if self.broken.get(line, 0) > 0:
                self.broken[line] -= 1
                raise ToolFailed(f"there is nothing under {q}", code=f"tool:gone_{q}")
            return f"about {q}"

        @tool
        async def send(to: str) -> str:
            """Send a letter."""
            self.ran.append(f"send {to}")
            return f"sent to {to}"

        return [look, send]

    def agent(
        self,
        model: ScriptedModel | FunctionModel | dict[str, ScriptedModel | FunctionModel],
        config: LoopConfig,
        *more: Tool,
        store: JournalStore | None = None,
        **options: Any,
    ) -> Agent:  # Any: as Agent has them
        journal = store or CheckedJournal(MemoryJournal())
        return Agent(model, [*self.tools(), *more], reasoner="plan", journal=journal, config=config, **options)


async def events_of(agent: Agent) -> list[Event]:
    store = agent._store  # pyright: ignore[reportPrivateUsage]  # nobody hands it out
    records, wrong = await store.read_recorded("r")
    assert wrong == ""
    events = [record.event for record in records]
    assert replay(events).differs_at is None
    return events


async def planning_of(agent: Agent) -> Planning:
    planning = fold(await events_of(agent)).planning
    assert planning is not None
    return planning


async def statuses(agent: Agent) -> dict[str, str]:
    return {name: record.status for name, record in (await planning_of(agent)).steps.items()}


def ended(run: Run) -> tuple[str, str]:
    return run.status, run.reason


# ------------------------------------------------------------------ requests, tokens, time


@pytest.mark.parametrize("most", [2, 3, 5, 9])
async def test_requests_side_by_side_do_not_pass_their_limit(most: int) -> None:
    model = planner(thoughts(8))
    agent = World().agent(model, configured(max_llm_calls=most, max_parallel=8))
    run = await agent.run("go", run_id="r")
    assert (ended(run), len(model.requests)) == (("stopped", "llm_budget"), most if most > 2 else 1)
    assert (
        list((await statuses(agent)).values()).count("succeeded") == most - 2
    )  # the plan, and the answer that is kept
    assert run.answer == ("words" if most > 2 else "")


async def test_just_enough_requests_are_enough() -> None:
    model = planner(thoughts(8))
    run = await World().agent(model, configured(max_llm_calls=10, max_parallel=8)).run("go")
    assert (run.status, len(model.requests)) == ("completed", 10)


async def test_reflections_are_counted_beside_what_steps_ask() -> None:
    steps = plan(step("a", "look", q="x"), *(step(f"t{at}", kind="reasoning", instruction="think") for at in range(4)))

    async def said(request: ModelRequest) -> str:
        await asyncio.sleep(0)
        if "You plan a task" in request.system:
            return json.dumps(steps)
        return "words" if "failed" not in request.system.lower() else json.dumps(GIVE_UP)

    for most in (3, 4, 5):
        model = FunctionModel(said)
        agent = World(x=9).agent(model, configured(max_llm_calls=most, max_parallel=5))
        run = await agent.run("go", run_id="r")
        assert (run.reason, len(model.requests) <= most) == ("llm_budget", True)


@pytest.mark.parametrize("budget", [None, Budget(max_tokens=40)])
async def test_tokens_of_requests_under_way_are_reckoned_with(budget: Budget | None) -> None:
    model = planner(thoughts(8))
    config = configured(budget, max_parallel=8) if budget else configured(max_tokens=40, max_parallel=8)
    run = await World().agent(model, config).run("go", run_id="r")
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

    run = await World().agent(FunctionModel(said), configured(max_tokens=100_000, max_parallel=4)).run("go")
    assert (run.status, most) == ("completed", 4)


async def test_the_budget_of_a_run_bounds_all_its_requests() -> None:
    model = planner(thoughts(5))
    agent = World().agent(model, configured(Budget(max_steps=4)))
    run = await agent.run("go", run_id="r")
    assert (ended(run), len(model.requests)) == (("stopped", "llm_budget"), 4)
    more = await agent.resume("r", config=configured(Budget(max_steps=20)))
    assert more.status == "completed"


async def test_the_default_of_the_budget_leaves_a_plan_its_own_ceiling() -> None:
    model = planner(thoughts(60))
    run = await World().agent(model, configured(max_steps=60, max_parallel=8)).run("go")
    assert (run.status, len(model.requests)) == ("completed", 62)


async def test_an_evaluator_has_the_time_that_is_left() -> None:
    async def slow(_: ExecutionContext) -> EvaluationResult:
        await asyncio.sleep(60)
        return EvaluationResult("", passed=True)

    config = configured(answer="off", deadline_s=0.3, evaluators=("slow",))
    agent = World().agent(script(plan(step("a", "look", q="x"))), config, evaluators={"slow": slow})
    async with asyncio.timeout(10):
        run = await agent.run("go", run_id="r")
    assert ended(run) == ("stopped", "deadline")
    (evaluation,) = (await planning_of(agent)).evaluations
    assert (evaluation.passed, "no word" in evaluation.note) == (False, True)


@pytest.mark.parametrize("is_plain", [True, False])
async def test_an_evaluator_that_blocks_does_not_pass_the_deadline_unseen(is_plain: bool) -> None:
    released = threading.Event()

    def plain(_: ExecutionContext) -> EvaluationResult:
        released.wait(60)
        return EvaluationResult("", passed=True)

    async def blocking(_: ExecutionContext) -> EvaluationResult:
        released.wait(0.5)  # it holds up the whole loop, and nobody can cut it off
        return EvaluationResult("", passed=True)

    evaluators = {"slow": plain if is_plain else blocking}
    config = configured(answer="off", deadline_s=0.3, evaluators=("slow",))
    agent = World().agent(script(plan(step("a", "look", q="x"))), config, evaluators=evaluators)
    try:
        async with asyncio.timeout(10):
            run = await agent.run("go", run_id="r")
    finally:
        released.set()
    assert ended(run) == ("stopped", "deadline")
    (evaluation,) = (await planning_of(agent)).evaluations
    assert (evaluation.passed, "no word" in evaluation.note) == (False, True)


async def test_an_evaluator_that_runs_out_of_a_time_of_its_own_is_broken() -> None:
    async def impatient(_: ExecutionContext) -> EvaluationResult:
        raise TimeoutError("my database is slow")

    config = configured(answer="off", evaluators=("impatient",))
    agent = World().agent(script(plan(step("a", "look", q="x")), STOP), config, evaluators={"impatient": impatient})
    assert ended(await agent.run("go", run_id="r")) == ("completed_partial", "evaluation")
    assert "my database is slow" in (await planning_of(agent)).evaluations[0].note


async def test_without_requests_for_a_second_try_the_answer_is_what_there_is() -> None:
    model = script(plan(step("a", "look", q="x")), "", "words")
    run = await World().agent(model, configured(max_llm_calls=2)).run("go", run_id="r")
    assert (run.status, len(model.requests)) == ("completed", 2)
    assert "about x" in run.answer


@pytest.mark.parametrize("is_blocked", [True, False])
async def test_an_answer_that_cannot_be_asked_for_again_holds_up_no_end(is_blocked: bool) -> None:
    steps = [step("b", "look", q="z"), step("a", "look", q="x")]
    steps += [step("t", kind="reasoning", instruction="think")] if is_blocked else []
    model = script(plan(*steps), GIVE_UP, "", "words") if not is_blocked else script(plan(*steps[::2]), "", "words")
    most = 2 if is_blocked else 3
    agent = World(x=9).agent(model, configured(max_llm_calls=most, max_parallel=1))
    run = await agent.run("go", run_id="r")
    assert (ended(run), len(model.requests)) == (("stopped", "llm_budget"), most)
    assert run.answer.startswith("Done:")


@pytest.mark.parametrize("kind", ["tool", "agent"])
async def test_a_read_that_the_deadline_cuts_off_is_cancelled_and_made_again(kind: str) -> None:
    begun = 0

    @tool(effect="read")
    async def crawl(q: str) -> str:
        """Read slowly."""
        nonlocal begun
        begun += 1
        if begun == 1:
            await asyncio.sleep(60)
        return f"pages on {q}"

    if kind == "tool":
        model = script(plan(step("a", "crawl", q="x")))
    else:
        steps = plan(step("a", kind="agent", instruction="crawl", allowed_tools=["crawl"]))
        model = script(steps, calls(("crawl", {"q": "x"})), calls(("crawl", {"q": "x"})), "pages")
    fields: dict[str, Any] = {"answer": "off", "transient_retries": 0}  # Any: of the plan
    agent = World().agent(model, configured(deadline_s=0.4, **fields), crawl)
    assert ended(await agent.run("go", run_id="r")) == ("stopped", "deadline")
    ends = [
        one.event.result.kind
        for one in await events_of(agent)
        if isinstance(one, InStep) and isinstance(one.event, CallEnded)
    ]
    assert ends == ["cancelled"]
    if kind == "tool":
        assert await statuses(agent) == {"a": "cancelled"}
    run = await agent.resume("r", config=configured(deadline_s=100, **fields))
    assert (run.status, begun) == ("completed", 2)


async def test_a_call_that_takes_longer_than_its_own_limit_is_timed_out() -> None:
    @tool(effect="read")
    async def crawl(q: str) -> str:
        """Read slowly."""
        await asyncio.sleep(60)
        return f"pages on {q}"

    config = configured(answer="off", transient_retries=0, step_timeout_s=0.1)
    agent = World().agent(script(plan(step("a", "crawl", q="x")), GIVE_UP, STOP), config, crawl)
    assert ended(await agent.run("go", run_id="r")) == ("stopped", "reflector_stop")
    assert await statuses(agent) == {"a": "failed"}


# ------------------------------------------------------------------ turns that are made without a request


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
        agent = world.agent(FunctionModel(guesser), config)
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
    agent = World().agent(FunctionModel(said), config, evaluators={"judged": judged})
    run = await agent.run("Look things up", run_id="r")
    turns = unasked(await events_of(agent))
    assert (run.status, turns > 0, left) == ("completed", True, [40 - turns - guesser.asked["words"]])


async def test_with_a_higher_limit_turns_without_a_request_go_on() -> None:
    world, guesser = World(), Guesser()
    agent = world.agent(FunctionModel(guesser), direct(max_llm_calls=6, answer="off"))
    assert (await agent.run("Look things up", run_id="r")).reason == "llm_budget"
    assert len(world.ran) == 6
    run = await agent.resume("r", config=direct(max_llm_calls=9, answer="off"))
    assert (ended(run), len(world.ran)) == (("stopped", "llm_budget"), 9)
    await events_of(agent)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_leaves_the_count_of_turns_as_it_was(when: Literal["before", "after"]) -> None:
    async def play(at: int) -> int:
        world, memory = World(), MemoryJournal()
        store = CrashingStore(CheckedJournal(memory), at, when)
        config = direct(max_llm_calls=5, max_parallel=1, answer="off")
        agent = world.agent(FunctionModel(Guesser()), config, store=store)
        try:
            run = await agent.run("Look things up", run_id="r")
        except Crash:
            agent = world.agent(FunctionModel(Guesser()), config, store=CheckedJournal(memory))
            state = fold(await events_of(agent))
            if state.task is None:
                run = await agent.run("Look things up", run_id="r")
            else:
                run = Run.of(state) if state.ending is not None else await agent.resume("r")
        planning = await planning_of(agent)
        assert ended(run) == ("stopped", "llm_budget"), at
        assert unasked(await events_of(agent)) + planning.stats.llm_calls == 5, at
        return store.operations

    for at in range(2, await play(0) + 1):
        await play(at)


# ------------------------------------------------------------------ step_iteration


def tries(most: int, action: LimitAction = LimitAction.SkipStep, **more: Any) -> StepIterationConfig:
    return StepIterationConfig(max_reattempts_per_step=most, on_limit_reached=action, **more)  # Any: as it has them


BOTH = plan(step("a", "look", q="x"), step("b", "look", q="z"))


async def limits_of(agent: Agent) -> list[tuple[str, int, str, str]]:
    told = (one for one in await events_of(agent) if isinstance(one, StepLimitReached))
    return [(one.step_id, one.attempts, one.kind, one.action.value) for one in told]


@pytest.mark.parametrize("answer", ["off", "auto"])
async def test_a_step_at_its_limit_is_skipped_and_the_run_is_partial_at_best(answer: str) -> None:
    world = World(x=9, y=9)
    steps = plan(step("a", "look", q="x"), step("u", "look", ["a"], q="{{a.output}}"), step("b", "look", ["a"], q="z"))
    model = script(steps, retry(q="y"), "what there is")
    agent = world.agent(model, configured(limits=tries(2), answer=answer))
    run = await agent.run("go", run_id="r")
    assert ended(run) == ("completed_partial", "step_limit")
    assert run.answer == ("" if answer == "off" else "what there is")
    assert world.ran == ["look x", "look y", "look z"]
    assert await statuses(agent) == {"a": "skipped", "u": "skipped", "b": "succeeded"}
    assert await limits_of(agent) == [("a", 2, "max", "SkipStep")]
    (edit,) = [one for one in await events_of(agent) if isinstance(one, PlanEdited)]
    assert (edit.strategy.type, edit.by) == ("skip_steps", "engine")


@pytest.mark.parametrize(("most", "reason"), [(0, "replan_budget"), (1, "step_limit"), (None, "step_limit")])
async def test_a_step_that_its_limit_skips_is_no_replan(most: int | None, reason: str) -> None:
    world = World(x=9, y=1)
    steps = plan(step("a", "look", q="x"), step("b", "look", q="y", must_succeed=True))
    repaired = replan("adjust_dependencies", adjustments=[{"step_id": "b", "parameters": {"q": "z"}}])
    config = configured(limits=tries(1), answer="off", max_replans=most, max_parallel=1)
    agent = world.agent(script(steps, repaired), config)
    run = await agent.run("go", run_id="r")
    planning = await planning_of(agent)
    assert (run.reason, planning.steps["a"].status) == (reason, "skipped")
    assert (planning.stats.replans, len(planning.edits)) == ((0, 1) if most == 0 else (1, 2))


async def test_what_is_in_flight_ends_before_a_step_is_skipped() -> None:
    gate, world = asyncio.Event(), World(x=9)

    @tool(effect="read")
    async def wait(q: str) -> str:
        """Wait."""
        await gate.wait()
        return q

    steps = plan(step("a", "look", q="x"), step("b", "wait", q="w"), step("c", "look", ["a"], q="z"))
    agent = world.agent(script(steps), configured(limits=tries(1), answer="off"), wait)
    running = asyncio.ensure_future(agent.run("go", run_id="r"))
    await asyncio.sleep(0.1)
    assert not [one for one in await events_of(agent) if isinstance(one, PlanEdited)]
    gate.set()
    assert ended(await running) == ("completed_partial", "step_limit")
    assert await statuses(agent) == {"a": "skipped", "b": "succeeded", "c": "succeeded"}


async def test_a_step_that_must_succeed_is_not_skipped() -> None:
    world = World(x=9)
    steps = plan(step("a", "look", q="x", must_succeed=True), step("b", "look", q="z"))
    agent = world.agent(script(steps, STOP), configured(limits=tries(1), answer="off"))
    assert ended(await agent.run("go", run_id="r")) == ("stopped", "reflector_stop")
    assert [one.step_id for one in await events_of(agent) if isinstance(one, Escalated)] == ["a"]
    repaired = replan("adjust_dependencies", adjustments=[{"step_id": "a", "parameters": {"q": "y"}}])
    agent = World(x=9).agent(script(steps, repaired), configured(limits=tries(1), answer="off"))
    assert ended(await agent.run("go", run_id="r")) == ("completed_partial", "step_limit")


async def test_a_person_signs_what_a_limit_takes_out_of_a_plan_and_may_want_another() -> None:
    world = World(x=9)
    model = script(BOTH, plan(step("c", "look", q="y")))
    agent = world.agent(model, configured(limits=tries(1), answer="off", approve_plan="every", max_parallel=1))
    await agent.run("go", run_id="r")
    await agent.approve("r", "plan", by="Ada")
    run = await agent.resume("r")
    assert (ended(run), [call.id for call in run.waiting]) == (("paused", "approval"), ["plan"])
    await agent.refuse("r", "plan", by="Ada", reason="look up y in its place")
    assert ended(await agent.resume("r")) == ("paused", "approval")
    await agent.approve("r", "plan", by="Ada")
    assert ended(await agent.resume("r")) == ("completed_partial", "step_limit")
    assert await statuses(agent) == {"a": "skipped", "b": "superseded", "c": "succeeded"}


async def test_a_limit_may_ask_for_another_plan() -> None:
    world = World(x=9)
    repaired = replan("adjust_dependencies", adjustments=[{"step_id": "a", "parameters": {"q": "y"}}])
    agent = world.agent(script(BOTH, repaired), configured(limits=tries(1, LimitAction.Replan), answer="off"))
    assert (await agent.run("go", run_id="r")).status == "completed"
    assert world.ran == ["look x", "look z", "look y"]
    assert await limits_of(agent) == [("a", 1, "max", "Replan")]


async def test_an_edit_begins_a_step_anew() -> None:
    world = World(x=1, y=1)
    repaired = replan("adjust_dependencies", adjustments=[{"step_id": "a", "parameters": {"q": "y"}}])
    model = script(plan(step("a", "look", q="x")), retry(q="x2"), repaired, retry(q="z"))
    world.broken["look x2"] = 1
    agent = world.agent(model, configured(limits=tries(2, LimitAction.Replan), answer="off"))
    assert (await agent.run("go", run_id="r")).status == "completed"
    assert world.ran == ["look x", "look x2", "look y", "look z"]


@pytest.mark.parametrize(
    ("action", "answer", "requests"), [(LimitAction.AbortTask, "Done:", 1), (LimitAction.AnswerNow, "so far", 2)]
)
async def test_a_limit_may_end_the_run(action: LimitAction, answer: str, requests: int) -> None:
    world, model = World(x=9), script(plan(step("b", "look", q="z"), step("a", "look", ["b"], q="x")), "so far")
    agent = world.agent(model, configured(limits=tries(1, action)))
    run = await agent.run("go", run_id="r")
    assert (ended(run), len(model.requests)) == (("stopped", "step limit"), requests)
    assert run.answer.startswith(answer)
    assert await limits_of(agent) == [("a", 1, "max", action.value)]


async def test_the_same_call_with_the_same_error_is_being_stuck() -> None:
    world = World(x=9)
    steps = plan(step("a", "look", q="x"), step("b", "look", q="z"))
    again: Reply = {"suggested_action": {"type": "retry_with_tool", "data": {"tool_id": "read", "parameters": {}}}}
    model = script(steps, again, "words")

    @tool(effect="read")
    async def read() -> str:
        """Read it."""
        raise ToolFailed("there is nothing under x", code="tool:gone_x")

    config = configured(limits=tries(2, LimitAction.AbortTask), max_parallel=1, answer="off")
    agent = world.agent(model, config, read)
    assert ended(await agent.run("go", run_id="r")) == ("stopped", "step limit")  # another call: a search, no loop
    assert [limit[2] for limit in await limits_of(agent)] == ["max"]


async def test_after_an_abort_somebody_may_go_on() -> None:
    world, model = World(x=1), script(plan(step("a", "look", q="x")), retry(q="y"))
    agent = world.agent(model, configured(limits=tries(1, LimitAction.AbortTask), answer="off"))
    assert ended(await agent.run("go", run_id="r")) == ("stopped", "step limit")
    assert (await agent.resume("r")).status == "completed"
    assert world.ran == ["look x", "look y"]


@pytest.mark.parametrize("word", ["yes", "no"])
async def test_a_limit_may_ask_a_person(word: str) -> None:
    world, model = World(x=1), script(BOTH, retry(q="y") if word == "yes" else STOP)
    agent = world.agent(model, configured(limits=tries(1, LimitAction.Escalate), answer="off", max_parallel=1))
    run = await agent.run("go", run_id="r")
    assert (ended(run), [call.id for call in run.waiting]) == (("paused", "approval"), ["a"])
    assert world.ran == ["look x", "look z"]  # other branches go on
    assert ended(await agent.resume("r")) == ("paused", "approval")
    if word == "yes":
        await agent.approve("r", "a", by="Ada")
        assert (await agent.resume("r")).status == "completed"
        assert world.ran[2:] == ["look y"]
    else:
        await agent.refuse("r", "a", by="Ada", reason="leave it")
        assert ended(await agent.resume("r")) == ("stopped", "reflector_stop")
    await events_of(agent)


async def test_failures_of_what_lies_between_are_no_tries() -> None:
    @tool(effect="read")
    async def fetch(q: str) -> str:
        """Fetch."""
        raise ToolFailed(f"come back later for {q}", code="transient:503")

    config = configured(limits=tries(1), answer="off", transient_retries=0)
    agent = World().agent(script(plan(step("a", "fetch", q="x")), GIVE_UP, STOP), config, fetch)
    assert ended(await agent.run("go", run_id="r")) == ("stopped", "reflector_stop")
    assert await limits_of(agent) == []


async def test_a_step_of_no_tries_is_not_begun() -> None:
    world = World()
    agent = world.agent(script(BOTH, STOP), configured(limits=tries(0), answer="off"))
    assert ended(await agent.run("go", run_id="r")) == ("completed_partial", "evaluation")
    assert (world.ran, set((await statuses(agent)).values())) == ([], {"skipped"})


async def test_limits_that_nobody_has_set_or_that_are_off_skip_nothing() -> None:
    for limits in (None, tries(1, enabled=False)):
        world = World(x=1, y=1)
        config = configured(limits=limits, answer="off")
        agent = world.agent(script(plan(step("a", "look", q="x")), retry(q="y"), retry(q="z")), config)
        assert (await agent.run("go", run_id="r")).status == "completed"
        assert world.ran == ["look x", "look y", "look z"]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("action", list(LimitAction))
async def test_a_crash_at_any_place_comes_to_the_same_end(
    action: LimitAction, when: Literal["before", "after"]
) -> None:
    def said(request: ModelRequest) -> str:
        if "You plan a task" in request.system:
            return json.dumps(BOTH)
        if "You look at the whole run" not in request.system:
            return "words"
        return json.dumps(replan("adjust_dependencies", adjustments=[{"step_id": "a", "parameters": {"q": "y"}}]))

    async def play(at: int) -> tuple[tuple[str, str], dict[str, str], list[tuple[str, int, str, str]], int]:
        world, memory = World(x=9), MemoryJournal()
        store = CrashingStore(CheckedJournal(memory), at, when)
        config = configured(limits=tries(1, action), max_parallel=1)
        agent = world.agent(FunctionModel(said), config, store=store)
        try:
            run = await agent.run("go", run_id="r")
        except Crash:
            agent = world.agent(FunctionModel(said), config, store=CheckedJournal(memory))
            state = fold(await events_of(agent))
            if state.task is None:
                run = await agent.run("go", run_id="r")
            else:
                run = Run.of(state) if state.ending is not None else await agent.resume("r")
        return ended(run), await statuses(agent), await limits_of(agent), store.operations

    *wanted, operations = await play(0)
    for at in range(2, operations + 1):
        assert [*(await play(at))[:3]] == wanted, at


# ------------------------------------------------------------------ what is told


def judge() -> Any:  # Any: an evaluator
    asked = 0

    def judged(_: ExecutionContext) -> EvaluationResult:
        nonlocal asked
        asked += 1
        return EvaluationResult("judge", passed=asked > 1, note="wrong number")

    return judged


WITH_ANSWER = plan(step("a", "look", q="wrong"), step("w", kind="response", needs=["a"], instruction="say what it is"))


@pytest.mark.parametrize("strategy", [replan("replan_from_step", step_id="a"), replan("full_replan")])
async def test_an_answer_from_before_a_repair_is_written_anew(strategy: Reply) -> None:
    model = script(WITH_ANSWER, "OLD ANSWER", strategy, plan(step("b", "look", q="right")), "NEW ANSWER")
    agent = World().agent(model, configured(evaluators=("judge",)), evaluators={"judge": judge()})
    run = await agent.run("go", run_id="r")
    assert (run.status, run.answer) == ("completed", "NEW ANSWER")
    told = "".join(message.content for message in model.requests[-1].messages)
    assert ("OLD ANSWER" in told, "about right" in told) == (False, True)


async def test_a_response_step_of_the_repair_gives_the_answer() -> None:
    anew = plan(step("b", "look", q="right"), step("w2", kind="response", needs=["b"], instruction="say it"))
    model = script(WITH_ANSWER, "OLD ANSWER", replan("full_replan"), anew, "NEW ANSWER")
    agent = World().agent(model, configured(evaluators=("judge",)), evaluators={"judge": judge()})
    run = await agent.run("go", run_id="r")
    assert (run.status, run.answer, len(model.requests)) == ("completed", "NEW ANSWER", 5)


async def test_the_response_that_comes_last_in_the_plan_is_the_answer() -> None:
    steps = plan(
        step("a", "look", q="x"),
        step("v", kind="response", needs=["a"], instruction="say it briefly"),
        step("w", kind="response", needs=["v"], instruction="say it at length"),
    )
    model = script(steps, "briefly", "at length")
    run = await World().agent(model, configured()).run("go")
    assert (run.status, run.answer, len(model.requests)) == ("completed", "at length", 3)


async def test_an_answer_that_nothing_came_after_stands() -> None:
    steps = plan(
        step("a", "look", q="x"),
        step("w", kind="response", needs=["a"], instruction="say it"),
        step("b", "look", q="y"),
    )
    model = script(steps, "THE ANSWER", GIVE_UP, replan("skip_steps", step_ids=["b"]))
    run = await World(y=9).agent(model, configured(max_parallel=1)).run("go", run_id="r")
    assert (run.status, run.answer, len(model.requests)) == ("completed", "THE ANSWER", 4)


async def test_the_pager_is_no_tool_to_choose() -> None:
    model = script({"selected_tool_ids": ["look"]}, plan(step("a", "look", q="x")))
    agent = World().agent(model, configured(answer="off", select_all_below=0))
    run = await agent.run("Look up x, then read the rest of the result", run_id="r")
    assert (run.status, "read_result" in ((await planning_of(agent)).selected or ())) == ("completed", False)


async def test_a_plan_rejected_after_work_tells_of_that_work() -> None:
    steps = plan(step("a", "send", to="Ann"), step("b", "look", q="x"))
    mended = replan("adjust_dependencies", adjustments=[{"step_id": "b", "parameters": {"q": "y"}}])
    for answer, told in (("auto", "I wrote to Ann."), ("off", "")):
        world = World(x=9)
        config = configured(approve_plan="every", max_parallel=1, answer=answer)
        agent = world.agent(script(steps, GIVE_UP, mended, "I wrote to Ann."), config)
        await agent.run("go", run_id="r")
        await agent.approve("r", "plan", by="Ada")
        assert (await agent.resume("r")).status == "paused"
        await agent.refuse("r", "plan", by="Ada")
        run = await agent.resume("r")
        assert (ended(run), run.answer, world.ran) == (("stopped", "plan_rejected"), told, ["send Ann", "look x"])
        await events_of(agent)


async def test_a_run_that_fails_amid_its_work_tells_of_that_work() -> None:
    steps = plan(step("a", "send", to="Ann"), step("b", "look", ["a"], q="x"))
    model = script(steps, GIVE_UP, replan("replan_from_step", step_id="b"), "one", "two", "three")
    run = await World(x=9).agent(model, configured()).run("go", run_id="r")
    assert ended(run) == ("failed", "invalid_plan")
    assert run.detail.splitlines()[0] == "no reply could be read as a plan"
    assert "sent to Ann" in run.detail
    assert "b: failed (tool: gone_x)" in run.detail


@pytest.mark.parametrize("most", [49, 50, 51])
async def test_a_number_of_steps_that_is_said_bounds_the_run_and_the_default_each_step(most: int) -> None:
    def agent(budget: Budget) -> tuple[Agent, list[int]]:
        asked: list[int] = []

        def reply(_request: ModelRequest) -> str:
            asked.append(1)
            return json.dumps(thoughts(60)) if len(asked) == 1 else "so"

        config = LoopConfig(budget=budget, plan=PlanConfig(max_steps=60))
        return Agent(FunctionModel(reply), reasoner="plan", journal=MemoryJournal(), config=config), asked

    bounded, asked = agent(Budget(max_steps=most))
    run = await bounded.run("go", run_id="r")
    assert (run.reason, len(asked)) == ("llm_budget", most)
    more = LoopConfig(budget=Budget(max_steps=100))
    assert ((await bounded.resume("r", config=more)).status, len(asked)) == ("completed", 63)  # answered anew
    free, asked = agent(Budget())
    assert ((await free.run("go", run_id="r")).status, len(asked)) == ("completed", 62)


async def test_requests_of_a_judge_count_against_the_ceiling_of_a_plan() -> None:
    allow = '{"reason": "asked for", "verdict": "allow", "constraint_id": null}'
    judge = FunctionModel(lambda _: allow, name="test:judge")
    names = [f"Ann{at}" for at in range(9)]
    steps = [step(f"s{at}", "send", to=name) for at, name in enumerate(names)]
    config = LoopConfig(
        plan=PlanConfig(answer="off", max_llm_calls=5, max_parallel=1), guard=GuardConfig(judge="self", mode="observe")
    )
    run = (
        await World().agent({"solo": script(plan(*steps)), "guard": judge}, config).run(f"Write to {', '.join(names)}.")
    )
    assert ended(run) == ("stopped", "llm_budget")
    assert (len(judge.requests), run.requests) == (4, 5)


@pytest.mark.parametrize("limit", ["max_tool_calls", "deadline_s"])
@pytest.mark.parametrize("approvals", ["pause", "queue"])
async def test_a_question_outlives_a_limit(limit: str, approvals: Any) -> None:  # Any: of `GuardConfig`
    sent, looked = list[str](), list[str]()

    @tool(effect="communicate")
    async def send(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        return "sent"

    @tool(effect="read")
    async def look(q: str) -> str:
        """Look."""
        if (limit, approvals) == ("deadline_s", "queue") and len(looked) == 1:
            looked.append("")
            await asyncio.Event().wait()  # until the deadline has passed
        looked.append(q)
        return q

    steps = (step("a", "send", to="ann@x.example"), step("b", "send", to="bob@x.example"), step("c", "look", q="x"))
    late = (step("d", "look", ["c"], q="y"), step("e", "look", ["d"], q="z"))
    few = PlanConfig(answer="off", max_tool_calls=2)
    if limit == "deadline_s":
        few = PlanConfig(answer="off", deadline_s=0.1)
    guard = GuardConfig(approvals=approvals)
    model = ScriptedModel([json.dumps(plan(*steps, *late))])
    agent = Agent(model, [send, look], reasoner="plan", config=LoopConfig(plan=few, guard=guard))
    run = await agent.run("Send a mail to everybody.", run_id="r")
    assert (run.status, run.reason, {one.id for one in run.waiting}) == ("paused", "approval", {"a.1", "b.1"})
    assert (await agent.resume("r")).status == "paused"
    run = await agent.approve("r", "b.1", by="Ada")
    assert [one.id for one in run.waiting] == ["a.1"]
    more = LoopConfig(plan=replace(few, max_tool_calls=9, deadline_s=60.0), guard=guard)
    run = await agent.resume("r", config=more)
    await agent.approve("r", "a.1", by="Ada")
    run = await agent.resume("r", config=more)
    assert (run.status, sorted(sent)) == ("completed", ["ann@x.example", "bob@x.example"])
