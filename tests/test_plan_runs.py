"""Plans through the front door: what a user sees, from the first proposal to the end. Source: spec/planning.md."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest

from surefoot import Agent, Budget, LoopConfig, MemoryJournal, Run, SqliteJournal, tool
from surefoot.core.loop.fold import fold
from surefoot.core.loop.replay import replay
from surefoot.core.state.state import Planning
from surefoot.testing.journals import CheckedJournal, Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.tools.call import OutcomeUnknown, ToolFailed
from surefoot.types.errors import UsageError
from surefoot.types.events import CallEnded, Event, InStep, Task, ToolsSelected
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import ModelRequest
from surefoot.types.plan import ContextDocument, PlanConfig, PlanStep, TaskContext
from surefoot.types.plan_events import PlanEdited, PlanMade, ProposalMade, ProposalRefused, StepReflected
from surefoot.types.ports import JournalStore, Tool
from surefoot.types.reflection import EvaluationResult, ExecutionContext

pytestmark = pytest.mark.anyio

Reply = str | Mapping[str, object]
SKIPPING: Mapping[str, object] = {"should_replan": True, "problem_class": "tool", "completion_percent": 10}


def step(
    name: str, tool_id: str = "", needs: Sequence[str] = (), kind: str = "tool", **more: Any
) -> dict[str, Any]:  # Any: JSON
    """A step as a model writes it; what is no field of a step is a parameter."""
    fields = {"must_succeed", "instruction", "allowed_tools", "timeout", "postcondition", "required"}
    made = {name: value for name, value in more.items() if name in fields}
    given = {name: value for name, value in more.items() if name not in fields}
    return {"step_id": name, "tool_id": tool_id, "kind": kind, "dependencies": list(needs), "parameters": given, **made}


def plan(*steps: dict[str, Any]) -> Reply:  # Any: JSON
    return {"description": "d", "steps": list(steps)}


def retry(**data: object) -> Reply:
    return {"suggested_action": {"type": "retry_with_params", "data": data}}


GIVE_UP: Reply = {"suggested_action": {"type": "trigger_overall_reflection", "data": "nothing to be done here"}}
STOP: Reply = {"should_replan": False}


def replan(strategy: str, **more: Any) -> Reply:  # Any: JSON
    return {**SKIPPING, "replanning_strategy": {"type": strategy, **more}}


def adjusted(q: str) -> Reply:
    return replan("adjust_dependencies", adjustments=[{"step_id": "a", "parameters": {"q": q}}])


def script(*replies: Reply) -> ScriptedModel:
    return ScriptedModel([one if isinstance(one, str) else json.dumps(one) for one in replies])


def configured(
    guard: GuardConfig | None = None, budget: Budget | None = None, **plan_fields: Any
) -> LoopConfig:  # Any: of the plan
    return LoopConfig(plan=PlanConfig(**plan_fields), guard=guard, budget=budget or Budget())


class World:
    """Tools that keep a book; `broken` says of a call how often it still fails, and how."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.broken: dict[str, list[Exception]] = {}
        self.most = self.now = 0
        self.met = asyncio.Event()

    def note(self, line: str) -> None:
        self.ran.append(line)
        if self.broken.get(line):
            raise self.broken[line].pop(0)

    def tools(self) -> list[Tool]:
        @tool(effect="read")
        async def look(q: str) -> dict[str, object]:
            """Look something up."""
            self.note(f"look {q}")
            return {"found": f"about {q}", "n": 3}

        @tool(effect="read")
        async def find(q: str, deep: bool = False) -> str:  # the model's argument
            """Find something."""
            self.note(f"find {q} {deep}")
            return f"found {q}"

        @tool
        async def send(to: str, text: str = "") -> str:
            """Send a letter."""
            self.note(f"send {to} {text}".strip())
            return f"sent to {to}"

        @tool(effect="read")
        async def meet(who: str, of: int = 2) -> str:
            """Wait until so many are here."""
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == of:
                self.met.set()
            await self.met.wait()
            self.now -= 1
            return who

        return [look, find, send, meet]

    def agent(
        self, model: ScriptedModel | FunctionModel, store: JournalStore | None = None, **options: Any
    ) -> Agent:  # Any: as Agent has them
        return Agent(model, self.tools(), reasoner="plan", journal=store or CheckedJournal(MemoryJournal()), **options)


def store_of(agent: Agent) -> JournalStore:
    return agent._store  # pyright: ignore[reportPrivateUsage]  # nobody hands it out


async def events_of(agent: Agent, run_id: str = "r") -> list[Event]:
    records, wrong = await store_of(agent).read_recorded(run_id)
    assert wrong == ""
    events = [record.event for record in records]
    assert replay(events).differs_at is None
    return events


async def planning_of(agent: Agent, run_id: str = "r") -> Planning:
    planning = fold(await events_of(agent, run_id)).planning
    assert planning is not None
    return planning


async def statuses(agent: Agent) -> dict[str, str]:
    return {name: record.status for name, record in (await planning_of(agent)).steps.items()}


LINE = plan(
    step("a", "look", q="x"), step("b", "send", ["a"], to="Ann", text="{{a.n}}: {{a.found}}", must_succeed=True)
)


async def test_a_plan_from_a_model_runs_with_references_and_an_answer() -> None:
    world, model = World(), script(LINE, "It is sent.")
    agent = world.agent(model)
    run = await agent.run("Tell Ann about x", run_id="r")
    assert (run.status, run.answer) == ("completed", "It is sent.")
    assert world.ran == ["look x", "send Ann 3: about x"]
    selected = next(one for one in await events_of(agent) if isinstance(one, ToolsSelected))
    assert selected.reason == "all"
    assert any("sent to Ann" in message.content for message in model.requests[-1].messages)


async def test_from_eight_tools_a_model_selects() -> None:
    world = World()
    model = script({"selected_tool_ids": ["look", "nothing"]}, plan(step("a", "look", q="x")))
    agent = world.agent(model, config=configured(select_all_below=2, answer="off"))
    assert (await agent.run("look up x", run_id="r")).status == "completed"
    planning = await planning_of(agent)
    assert planning.selected == ("look",)
    assert [(one.what, one.detail) for one in planning.refusals] == [("unknown_tool", "nothing")]


async def test_independent_steps_really_overlap() -> None:
    world = World()
    steps = [step(f"s{at}", "meet", who=str(at), of=3) for at in range(3)]
    run = await world.agent(script(plan(*steps)), config=configured(max_parallel=3, answer="off")).run("meet")
    assert (run.status, world.most) == ("completed", 3)


async def test_a_tool_that_is_exclusive_runs_alone() -> None:
    busy, most = 0, 0

    @tool
    async def print_page(page: int) -> str:
        """Print."""
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await anyio.lowlevel.checkpoint()
        busy -= 1
        return str(page)

    class Printer:
        spec = replace(print_page.spec, exclusive=True)
        call = print_page.call
        probe = print_page.probe

    steps = [step(f"s{at}", "print_page", page=at) for at in range(3)]
    agent = Agent(script(plan(*steps)), [Printer()], reasoner="plan", config=configured(answer="off"))
    assert ((await agent.run("print")).status, most) == ("completed", 1)


async def test_a_step_is_tried_again_with_other_parameters_and_with_another_tool() -> None:
    world = World()
    world.broken = {"look x": [ToolFailed("no", code="parameter:bad")], "look y": [ToolFailed("no", code="tool:gone")]}
    other: Reply = {
        "suggested_action": {"type": "retry_with_tool", "data": {"tool_id": "find", "parameters": {"q": "y"}}}
    }
    agent = world.agent(
        script(plan(step("a", "look", q="x")), retry(q="y"), retry(q="x"), other), config=configured(answer="off")
    )
    assert (await agent.run("go", run_id="r")).status == "completed"
    assert world.ran == ["look x", "look y", "find y False"]
    planning = await planning_of(agent)
    assert [one.what for one in planning.refusals] == ["repeat_failure"]
    assert planning.stats.step_retries == 2


@pytest.mark.parametrize(
    ("first", "second", "ending"),
    [
        (ValueError("no such city: Atlantis"), ValueError("the date is in the past"), "completed"),
        (ToolFailed("no such city"), ToolFailed("the date is in the past"), "completed"),
        (ConnectionError("no route to a"), ConnectionError("the proxy wants a password"), "completed"),
        (ValueError("row 3 of 9f2c1a7e is bad"), ValueError("row 57 of 7e0d44b1 is bad"), "repeated_failure"),
        (ToolFailed("no a", code="tool:gone"), ToolFailed("no b", code="tool:gone"), "repeated_failure"),
        (ToolFailed("gone: a", code="tool:gone"), ToolFailed("gone: b", code="tool:gone"), "repeated_failure"),
    ],
)
async def test_failures_are_the_same_by_their_code_or_else_by_what_they_say(
    first: Exception, second: Exception, ending: str
) -> None:
    world = World()
    world.broken = {"find x False": [first], "find y False": [second]}
    tries: list[Reply] = [GIVE_UP, adjusted("y"), GIVE_UP, adjusted("z")]
    agent = world.agent(
        script(plan(step("a", "find", q="x")), *tries), config=configured(answer="off", transient_retries=0)
    )
    run = await agent.run("go", run_id="r")
    assert (run.reason or run.status) == ending
    assert world.ran[:2] == ["find x False", "find y False"]


async def test_a_step_that_fails_in_another_way_may_be_tried_again() -> None:
    world = World()
    world.broken = {f"find {at} False": [ValueError(f"{at} is wrong")] for at in ("x", "y")}
    replies = (plan(step("a", "find", q="x")), retry(q="y"), retry(q="z"))
    agent = world.agent(script(*replies), config=configured(answer="off", same_error_limit=2))
    assert (await agent.run("go", run_id="r")).status == "completed"
    assert (await planning_of(agent)).refusals == ()


async def test_a_transient_failure_is_tried_again_without_a_model() -> None:
    world = World()
    world.broken = {"look x": [ToolFailed("busy", code="transient:503")] * 2}
    agent = world.agent(script(plan(step("a", "look", q="x"))), config=configured(answer="off", transient_retries=2))
    assert (await agent.run("go", run_id="r")).status == "completed"
    assert world.ran == ["look x"] * 3
    assert (await planning_of(agent)).stats.llm_calls == 1


STRATEGIES: dict[str, tuple[list[Reply], list[str], dict[str, str]]] = {
    "full_replan": (
        [replan("full_replan"), plan(step("c", "send", to="Bo", text="{{a.n}}", must_succeed=True))],
        ["send Bo 3"],
        {"a": "succeeded", "b": "superseded", "d": "superseded", "c": "succeeded"},
    ),
    "replan_from_step": (
        [replan("replan_from_step", step_id="b"), plan(step("c", "find", ["a"], q="z"))],
        ["find z False"],
        {"a": "succeeded", "b": "superseded", "d": "superseded", "c": "succeeded"},
    ),
    "skip_steps": ([replan("skip_steps", step_ids=["b"])], [], {"a": "succeeded", "b": "skipped", "d": "skipped"}),
    "add_remediation_steps": (
        [
            replan(
                "add_remediation_steps",
                suggestions=[
                    {**step("n", "find", q="n"), "insert_before": "b", "target_parameters": {"q": "{{n.output}}"}}
                ],
            )
        ],
        ["find n False", "look found n", "find 3 False"],
        {"a": "succeeded", "n": "succeeded", "b": "succeeded", "d": "succeeded"},
    ),
    "adjust_dependencies": (
        [replan("adjust_dependencies", adjustments=[{"step_id": "b", "depends_on": [], "parameters": {"q": "w"}}])],
        ["look w", "find 3 False"],
        {"a": "succeeded", "b": "succeeded", "d": "succeeded"},
    ),
}
THREE = plan(step("a", "look", q="x"), step("b", "look", ["a"], q="bad"), step("d", "find", ["b"], q="{{b.n}}"))


@pytest.mark.parametrize("name", STRATEGIES)
async def test_each_strategy_mends_the_plan_and_leaves_what_is_done(name: str) -> None:
    replies, ran, ends = STRATEGIES[name]
    world = World()
    world.broken = {"look bad": [ToolFailed("no", code="tool:gone")]}
    if name == "full_replan":
        replies = [replies[0], plan(step("c", "send", ["a"], to="Bo", text="{{a.n}}"))]
    agent = world.agent(script(THREE, GIVE_UP, *replies), config=configured(answer="off", max_parallel=1))
    run = await agent.run("go", run_id="r")
    assert run.status == "completed", run
    assert world.ran == ["look x", "look bad", *ran]
    assert await statuses(agent) == ends
    edits = [one for one in await events_of(agent) if isinstance(one, PlanEdited)]
    assert [(one.base_version, one.version, one.strategy.type) for one in edits] == [(1, 2, name)]


async def test_a_corrective_selection_is_held_to_what_there_is() -> None:
    world = World()
    world.broken = {"look bad": [ToolFailed("no", code="tool:gone")]}
    claim = {"kept_tools": ["look"], "added_tools": ["find"]}
    again: Reply = {"selected_tool_ids": ["find"], "changes_from_previous": claim}
    model = script(
        {"selected_tool_ids": ["look"]},
        plan(step("b", "look", q="bad")),
        GIVE_UP,
        replan("full_replan"),
        {"selected_tool_ids": ["nothing"]},
        again,
        plan(step("c", "find", q="z")),
    )
    agent = world.agent(model, config=configured(select_all_below=0, answer="off"))
    assert (await agent.run("go", run_id="r")).status == "completed"
    planning = await planning_of(agent)
    assert planning.selected == ("find",)
    assert [one.what for one in planning.refusals] == ["unknown_tool", "diff_corrected"]
    changes = planning.selection.changes_from_previous if planning.selection else None
    assert changes is not None
    assert ([one.tool_id for one in changes.added_tools], [one.tool_id for one in changes.removed_tools]) == (
        ["find"],
        ["look"],
    )


async def test_steps_of_all_kinds() -> None:
    world = World()
    steps = plan(
        step("a", kind="agent", instruction="look up x", allowed_tools=["look"]),
        step("t", kind="reasoning", needs=["a"], instruction="think about it"),
        step("s", kind="skip", instruction="not needed"),
        step("w", kind="response", needs=["t", "s"], instruction="say it"),
    )
    model = ScriptedModel([json.dumps(steps), calls(("look", {"q": "x"})), "x is known", "so it is", "The answer."])
    agent = world.agent(model)
    run = await agent.run("go", run_id="r")
    assert (run.status, run.answer, world.ran) == ("completed", "The answer.", ["look x"])
    assert await statuses(agent) == {"a": "succeeded", "t": "succeeded", "s": "skipped", "w": "succeeded"}


async def test_a_step_of_words_is_told_of_no_tool_and_held_to_no_form() -> None:
    steps = plan(step("l", "look", q="x"), step("t", kind="reasoning", needs=["l"], instruction="think about it"))
    said = iter([json.dumps(steps), "so it is", "The answer."])
    seen: list[ModelRequest] = []

    def reply(request: ModelRequest) -> str:
        seen.append(request)
        return next(said)

    model = FunctionModel(reply, modes=("schema", "text"))
    run = await World().agent(model, instructions="Be brief.").run("go", run_id="r")
    assert (run.status, run.answer) == ("completed", "The answer.")
    for request in seen[1:]:
        assert (request.mode, request.schema, request.tools.names) == ("text", None, ())
        assert request.system.startswith("Be brief.\n\nYou write one step")
        assert "Action" not in request.system
        assert request.messages[0].content == "Task: go"
    assert '"found":"about x"' in seen[1].messages[-1].content
    assert "so it is" in seen[2].messages[-1].content


async def test_an_answer_that_has_a_shape_is_held_to_it() -> None:
    shape = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    given = '{"thought": "t", "action": "Final Answer", "action_input": {"n": 3}}'
    said = iter([json.dumps(plan(step("l", "look", q="x"))), given])
    seen: list[ModelRequest] = []

    def reply(request: ModelRequest) -> str:
        seen.append(request)
        return next(said)

    agent = World().agent(FunctionModel(reply, modes=("schema", "text")), config=LoopConfig(output_schema=shape))
    run = await agent.run("go", run_id="r")
    assert (run.status, json.loads(run.answer)) == ("completed", {"n": 3})
    assert seen[-1].mode == "schema"


async def test_what_is_literal_is_checked_before_what_it_stands_beside_has_a_value() -> None:
    first = step("a", "look", q="x")
    bad: tuple[dict[str, Any], ...] = (  # Any: JSON
        {"q": "{{a.output.found}}", "deep": "sideways", "depth": 1},
        {"deep": "{{a.output.n}}"},
    )
    plans = [plan(first, step("b", "find", ["a"], **one)) for one in bad]
    good = plan(first, step("b", "find", ["a"], q="{{a.output.found}}"))
    world = World()
    agent = world.agent(script(plans[0], good, "done"))
    run = await agent.run("go", run_id="r")
    assert (run.status, world.ran) == ("completed", ["look x", "find about x False"])
    refused = [event.detail for event in await events_of(agent) if isinstance(event, ProposalRefused)]
    assert refused[0] == "bad_parameters:b:deep;bad_parameters:b:depth"
    agent = World().agent(script(plans[1], plans[1], plans[1]))
    await agent.run("go", run_id="r")
    refused = [event.detail for event in await events_of(agent) if isinstance(event, ProposalRefused)]
    assert set(refused) == {"bad_parameters:b:q"}


async def test_a_step_tells_when_it_began_and_how_long_it_took() -> None:
    @tool(effect="read")
    async def nap(s: float) -> float:
        """Sleep."""
        await asyncio.sleep(s)
        return s

    model = script(plan(step("a", "nap", s=0.05), step("b", "nap", ["a"], s=0.01)), "done")
    agent = Agent(model, [nap], reasoner="plan", journal=CheckedJournal(MemoryJournal()))
    assert (await agent.run("go", run_id="r")).status == "completed"
    steps = (await planning_of(agent)).steps
    first, second = steps["a"].result, steps["b"].result
    assert first is not None
    assert second is not None
    assert first.duration_s >= 0.05
    assert second.started_at_s >= first.started_at_s + 0.05
    assert second.duration_s >= 0.01


async def test_half_a_character_in_a_given_plan_breaks_nothing() -> None:
    world = World()
    given = PlanStep("a", "x\ud800", "tool", tool_id="look", parameters={"q": "x\ud800"})
    run = await world.agent(script("done")).run(Task("go\ud800", steps=(given,)))
    assert (run.status, run.answer, len(world.ran)) == ("completed", "done", 1)


async def test_an_answer_stands_when_a_step_that_was_planned_after_it_runs_after_a_skip() -> None:
    steps = plan(
        step("a", "look", q="x"),
        step("w", kind="response", needs=["a"], instruction="say it"),
        step("b", "look", ["w"], q="bad"),
        step("c", "look", ["b"], q="z"),
    )
    world = World()
    world.broken["look bad"] = [ToolFailed("gone", code="tool:gone")]
    skip = replan("skip_steps", step_ids=["b"])
    agent = world.agent(script(steps, "THE ANSWER", GIVE_UP, skip), config=configured(answer="off", max_parallel=1))
    run = await agent.run("go", run_id="r")
    assert (run.status, run.answer, world.ran) == ("completed", "THE ANSWER", ["look x", "look bad", "look z"])


async def test_violations_in_a_reasoning_step_fail_it() -> None:
    bad = calls(("look", {"q": "x"}))
    steps = plan(step("t", kind="reasoning", instruction="think"))
    model = ScriptedModel([json.dumps(steps), *[bad] * 4, "", json.dumps(GIVE_UP), json.dumps(STOP)])
    world = World()
    agent = world.agent(model, config=configured(answer="off"))
    run = await agent.run("go", run_id="r")
    assert (run.status, run.reason, world.ran) == ("stopped", "reflector_stop", [])
    error = (await planning_of(agent)).steps["t"].failures[-1].error
    assert error is not None
    assert (error.cls, error.code) == ("violation", "reasoning_violations")


@pytest.mark.parametrize("approvals", ["pause", "queue"])
@pytest.mark.parametrize("at_once", [1, 3])
async def test_a_question_holds_up_all_that_is_new_or_its_own_step_alone(approvals: Any, at_once: int) -> None:
    world = World()
    steps = plan(
        step("a", "send", to="eve@far.org", text="hi"), step("b", "look", q="x"), step("c", "find", ["b"], q="y")
    )
    guard = GuardConfig(approvals=approvals)
    agent = world.agent(script(steps), config=configured(guard, answer="off", max_parallel=at_once))
    run = await agent.run("send hi to everybody", run_id="r")
    assert (run.status, run.reason) == ("paused", "approval")
    others = ["look x", "find y False"]
    assert world.ran == ([] if approvals == "pause" else others)
    (asked,) = run.waiting
    with pytest.raises(UsageError):
        await agent.settle("r", asked.id, "done", by="Ada")
    await agent.approve("r", asked.id, by="Ada")
    run = await agent.resume("r")
    assert run.status == "completed"
    assert sorted(world.ran) == sorted([*others, "send eve@far.org hi"])


async def test_a_plan_with_as_many_open_questions_as_may_be_pauses_and_loses_no_step() -> None:
    world = World()
    names = ("ann", "bob", "cy", "dee", "eve")
    letters = (step(name, "send", to=f"{name}@far.org", text="hi") for name in names)
    steps = plan(*letters, step("late", "look", q="x"))
    config = configured(GuardConfig(max_asks=2, approvals="queue"), answer="off", max_parallel=1)
    agent = world.agent(script(steps), config=config)
    run = await agent.run("send hi to everybody", run_id="r")
    asked: list[int] = []
    while run.status == "paused":
        assert run.reason == "approval"
        asked.append(len(run.waiting))
        assert ("look x" in world.ran) == (asked[-1] < 2)  # nothing begins while two are open
        await agent.approve("r", run.waiting[0].id, by="Ada")
        run = await agent.resume("r")
    assert (run.status, asked) == ("completed", [2, 2, 2, 2, 1])
    assert sorted(world.ran) == ["look x", *(f"send {name}@far.org hi" for name in names)]
    await events_of(agent)


async def test_a_process_that_dies_while_enough_questions_are_open_leaves_a_run_that_waits_for_answers() -> None:
    world = World()
    letters = (step(name, "send", to=f"{name}@far.org", text="hi") for name in ("ann", "bob"))
    agent = world.agent(
        script(plan(step("a", "look", q="x"), *letters)), config=configured(GuardConfig(max_asks=2), answer="off")
    )
    await agent.run("send hi to everybody", run_id="r")
    events = await events_of(agent)
    ended = next(at for at, one in enumerate(events) if isinstance(one, InStep) and isinstance(one.event, CallEnded))
    dead = Run.of(fold(events[:ended]))  # the read has started, and nobody knows what it gave
    assert (dead.status, dead.reason, [one.id for one in dead.waiting]) == ("paused", "approval", ["ann.1", "bob.1"])


async def test_a_refused_call_fails_its_step_and_is_not_made() -> None:
    world = World()
    steps = plan(step("a", "send", to="eve@far.org", text="hi"))
    model = script(steps, retry(to="eve@far.org"), GIVE_UP, STOP)
    agent = world.agent(model, config=configured(GuardConfig(), answer="off"))
    (asked,) = (await agent.run("send hi to everybody", run_id="r")).waiting
    await agent.refuse("r", asked.id, by="Ada", reason="never")
    run = await agent.resume("r")
    assert (run.status, run.reason, world.ran) == ("stopped", "reflector_stop", [])
    planning = await planning_of(agent)
    assert [one.what for one in planning.refusals] == ["repeat_failure"]


@pytest.mark.parametrize("outcome", ["done", "not_done", "abandoned"])
@pytest.mark.parametrize("how", ["told", "late"])
async def test_a_call_of_which_nobody_knows_waits_for_a_person(outcome: Any, how: str) -> None:  # Any: an Outcome
    sent: list[str] = []
    never = asyncio.Event()

    @tool
    async def send(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        if len(sent) > 1:
            return "sent at last"
        if how == "told":
            raise OutcomeUnknown("the line broke")
        await never.wait()
        return ""

    @tool(effect="read")
    async def look(q: str) -> str:
        """Look."""
        sent.append(q)
        return q

    steps = plan(
        step("a", "send", to="Ann", timeout=0.01), step("b", "look", q="x"), step("c", "look", ["a"], q="{{a}}")
    )
    model = script(steps, *([GIVE_UP, STOP] if outcome == "abandoned" else []))
    store = CheckedJournal(MemoryJournal())
    agent = Agent(model, [send, look], reasoner="plan", config=configured(answer="off", max_parallel=1), journal=store)
    run = await agent.run("go", run_id="r")
    assert (run.status, run.reason, sent) == ("paused", "in_doubt", ["Ann", "x"])
    assert (await statuses(agent))["a"] == "in_doubt"
    assert (await agent.resume("r")).reason == "in_doubt"
    await agent.settle("r", run.waiting[0].id, outcome, by="Ada", result="sent by hand" if outcome == "done" else "")
    run = await agent.resume("r")
    assert sent[2:] == {"done": ["sent by hand"], "not_done": ["Ann", "sent at last"], "abandoned": []}[outcome]
    assert run.status == ("stopped" if outcome == "abandoned" else "completed")
    await events_of(agent)


async def test_an_idempotent_call_that_is_too_late_fails() -> None:
    never = asyncio.Event()

    @tool(idempotent=True)
    async def save(path: str) -> str:
        """Save."""
        await never.wait()
        return path

    model = script(plan(step("a", "save", path="x", timeout=0.01)), GIVE_UP, STOP)
    agent = Agent(model, [save], reasoner="plan", config=configured(answer="off", transient_retries=0))
    assert (await agent.run("go", run_id="r")).reason == "reflector_stop"
    error = (await planning_of(agent)).steps["a"].failures[-1].error
    assert error is not None
    assert (error.cls, error.code) == ("timeout", "timeout")


async def test_cancelled_while_calls_run_and_taken_up_again() -> None:
    world = World()
    steps = plan(step("a", "meet", who="me"), step("b", "look", q="x"), step("c", "look", ["a"], q="{{a}}"))
    store = CheckedJournal(MemoryJournal())
    agent = world.agent(script(steps), store, config=configured(answer="off"))
    looked = asyncio.Event()

    def watch(event: object) -> None:
        if isinstance(event, InStep) and isinstance(event.event, CallEnded):
            looked.set()

    running = asyncio.ensure_future(agent.run("go", run_id="r", watch=watch))
    await looked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    ended = await agent.cancel("r", by="Ada")
    assert (ended.status, ended.reason) == ("cancelled", "Ada")
    assert await statuses(agent) == {"a": "cancelled", "b": "succeeded", "c": "pending"}
    world.met.set()
    run = await agent.resume("r")
    assert (run.status, world.ran) == ("completed", ["look x", "look me"])


async def test_at_the_deadline_nothing_new_begins() -> None:
    world = World()
    steps = plan(step("a", "meet", who="me"), step("b", "look", ["a"], q="x"))
    agent = world.agent(script(steps), config=configured(deadline_s=0.3))
    run = await agent.run("go", run_id="r")
    assert (run.status, run.reason, world.ran) == ("stopped", "deadline", [])


@pytest.mark.parametrize(
    ("fields", "reason", "ran"),
    [({"max_tool_calls": 1}, "tool_budget", 1), ({"max_llm_calls": 1}, "llm_budget", 0)],
)
async def test_a_limit_ends_the_run_and_throws_nothing_away(
    fields: dict[str, Any], reason: str, ran: int
) -> None:  # Any: of the plan
    world = World()
    agent = world.agent(script(LINE, "what there is"), config=configured(**fields))
    run = await agent.run("go", run_id="r")
    assert (run.status, run.reason, len(world.ran)) == ("stopped", reason, ran)
    if ran:
        assert run.answer == "what there is"
        again = await agent.resume("r", config=configured(answer="off"))
        assert (again.status, world.ran) == ("completed", ["look x", "send Ann 3: about x"])


async def test_tokens_that_are_used_up_end_what_a_model_would_have_to_say() -> None:
    world, model = World(), script(plan(step("a", "look", q="x"), step("t", kind="reasoning", instruction="think")))
    agent = world.agent(model, config=configured(max_tokens=15, max_parallel=1))
    run = await agent.run("go", run_id="r")
    assert (run.status, run.reason, len(model.requests)) == ("stopped", "token_budget", 1)
    assert world.ran == ["look x"]


@pytest.mark.parametrize("word", ["yes", "no", "note"])
async def test_a_person_signs_the_plan(word: str) -> None:
    world = World()
    model = script(LINE, plan(step("a", "look", q="y")))
    agent = world.agent(model, config=configured(approve_plan="first", answer="off"))
    run = await agent.run("go", run_id="r")
    assert (run.status, run.reason, [call.id for call in run.waiting], world.ran) == (
        "paused",
        "approval",
        ["plan"],
        [],
    )
    if word == "yes":
        await agent.approve("r", "plan", by="Ada")
    else:
        await agent.refuse("r", "plan", by="Ada", reason="do not write to Ann" if word == "note" else "")
    run = await agent.resume("r")
    if word == "yes":
        assert (run.status, len(world.ran)) == ("completed", 2)
    elif word == "no":
        assert (run.status, run.reason, world.ran) == ("stopped", "plan_rejected", [])
    else:
        assert (run.status, world.ran) == ("paused", [])
        assert "do not write to Ann" in model.requests[-1].messages[-1].content
        await agent.approve("r", "plan", by="Ada")
        assert ((await agent.resume("r")).status, world.ran) == ("completed", ["look y"])
    await events_of(agent)


async def test_evaluators_look_at_what_was_done() -> None:
    seen: list[int] = []

    def complete(context: ExecutionContext) -> EvaluationResult:
        seen.append(len(context.step_results))
        return EvaluationResult("", passed=len(context.step_results) > 1, note="one is too few")

    world = World()
    more = replan("add_remediation_steps", suggestions=[{**step("b", "find", q="y"), "insert_after": "a"}])
    config = configured(answer="off", evaluators=("complete",))
    agent = world.agent(script(plan(step("a", "look", q="x")), more), config=config, evaluators={"complete": complete})
    assert ((await agent.run("go", run_id="r")).status, seen) == ("completed", [1, 2])
    agent = world.agent(script(plan(step("a", "look", q="x")), STOP), config=config, evaluators={"complete": complete})
    run = await agent.run("go", run_id="r")
    assert (run.status, run.reason) == ("completed_partial", "evaluation")


async def test_a_run_in_which_all_was_skipped_is_no_success() -> None:
    model = script(plan(step("a", kind="skip", instruction="not needed")), STOP)
    run = await World().agent(model, config=configured(answer="off")).run("go")
    assert (run.status, run.reason) == ("completed_partial", "evaluation")


async def test_a_planner_of_its_own_makes_the_proposals() -> None:
    planner, speaker = script(LINE), script("It is sent.")
    world = World()
    agent = world.agent(speaker)
    agent = Agent({"solo": speaker, "planner": planner}, world.tools(), reasoner="plan")
    run = await agent.run("go")
    assert (run.status, run.answer, len(planner.requests), len(speaker.requests)) == ("completed", "It is sent.", 1, 1)


async def test_who_proposes_is_told_what_is_known_around_the_task_and_why_a_plan_was_refused() -> None:
    world = World()
    good = step("a", "look", q="x")
    model = script(plan(good, step("b", "nothing")), plan(good), "done")
    context = TaskContext(
        ("user: hello",), (ContextDocument("notes", "the word is swordfish"),), {"team": "red"}, ("be brief",)
    )
    agent = world.agent(model)
    run = await agent.run(Task("go", context=context), run_id="r")
    assert (run.status, world.ran) == ("completed", ["look x"])
    events = await events_of(agent)
    assert [one.detail for one in events if isinstance(one, ProposalRefused)] == ["unknown_tool:b:nothing"]
    asked = model.requests[1].messages[0].content
    assert all(word in asked for word in ("swordfish", "red", "be brief", "hello", "step b names the tool nothing"))


async def test_a_planned_run_is_forked_at_any_record() -> None:
    world = World()
    agent = world.agent(script(LINE, "one"))
    await agent.run("go", run_id="r")
    events = await events_of(agent)
    for at in range(1, len(events)):
        sent = sum(isinstance(e, InStep) and isinstance(e.event, CallEnded) and e.step_id == "b" for e in events[:at])
        planned = any(isinstance(e, ProposalMade) for e in events[:at])
        branch = World()
        other = branch.agent(script(*([] if planned else [LINE]), "two"), store_of(agent))
        run = await other.fork("r", at, new_id=f"f{at}")
        if run.status == "paused":
            await other.settle(run.id, run.waiting[0].id, "not_done", by="Ada")
            run = await other.resume(run.id)
        assert run.status == "completed", (at, run)
        assert branch.ran.count("send Ann 3: about x") == 1 - sent, at
        await events_of(other, f"f{at}")


# ------------------------------------------------------------------ deaths


def planner_of(*replies: tuple[str, Reply]) -> FunctionModel:
    """A model that replies by what it is asked for, and so goes on after a crash. Each has a word of its request."""

    def reply(request: ModelRequest) -> Scripted:
        asked = f"{request.system}\n{request.messages[-1].content}"
        told = next((one for word, one in replies if word in asked), "done")
        return told if isinstance(told, str) else json.dumps(told)

    return FunctionModel(reply)


def agent_on(folder: Path, store: JournalStore) -> Agent:
    """A plan that fails at first, is mended, and sends a letter; a book on disk tells what was really done."""
    book = folder / "book.txt"

    def note(line: str) -> None:
        with book.open("a") as file:
            file.write(line + "\n")

    @tool(effect="read")
    async def look(q: str) -> str:
        """Look something up."""
        note(f"look {q}")
        if q == "bad":
            raise ToolFailed("no", code="tool:gone")
        return q

    @tool
    async def send(to: str, text: str) -> str:
        """Send a letter."""
        note(f"send {to} {text}")
        return f"sent to {to}"

    steps = plan(
        step("a", "look", q="bad"), step("b", "look", q="y"), step("c", "send", ["a", "b"], to="Ann", text="{{a}}{{b}}")
    )
    mended = replan("adjust_dependencies", adjustments=[{"step_id": "a", "parameters": {"q": "x"}}])
    model = planner_of(
        ("root_cause_category", GIVE_UP),
        ("replanning_strategy", mended),
        ("selected_tool_ids", "{}"),
        ("step_id", steps),
    )
    return Agent(model, [look, send], reasoner="plan", journal=store, config=configured(max_parallel=2))


async def finish(folder: Path, store: JournalStore) -> Counter[str]:
    """Go on where the dead process stopped, as a user would, and say what really happened in all."""
    book = folder / "book.txt"
    agent = agent_on(folder, store)
    run = await (agent.resume("r") if await store.runs() else agent.run("go", run_id="r"))
    if run.status == "paused":
        (call,) = run.waiting
        happened = "send Ann" in book.read_text()
        await agent.settle("r", call.id, "done" if happened else "not_done", by="Ada", result="sent to Ann")
        run = await agent.resume("r")
    assert (run.status, run.answer) == ("completed", "done"), run
    records, wrong = await store.read_recorded("r")
    assert wrong == ""
    events = [record.event for record in records]
    again = replay(events)
    assert again.differs_at is None
    made = Counter(type(event) for event in events)
    assert (made[PlanMade], made[PlanEdited], made[StepReflected]) == (1, 1, 1)
    return Counter(book.read_text().splitlines())


def check_book(happened: Counter[str], at: int) -> None:
    assert happened["send Ann xy"] == 1, (at, happened)
    assert happened.keys() == {"look bad", "look y", "look x", "send Ann xy"}, at
    assert all(times <= 2 for times in happened.values()), (at, happened)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_death_at_any_append_of_a_planned_run_changes_nothing(tmp_path: Path, when: Any) -> None:  # Any: When
    for at in range(1, 100):
        folder = tmp_path / str(at)
        folder.mkdir()
        memory = MemoryJournal()
        store = CrashingStore(CheckedJournal(memory), at, when)
        try:
            run: Run = await agent_on(folder, store).run("go", run_id="r")
        except Crash:
            check_book(await finish(folder, CheckedJournal(memory)), at)
            continue
        assert (run.status, at > 20) == ("completed", True)
        return
    pytest.fail("the run never came to its end")


PROGRAM = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[1])
from test_plan_runs import agent_on
from surefoot.testing.journals import CrashingStore
from surefoot import SqliteJournal
from pathlib import Path

class Killed(CrashingStore):
    def when_it_comes(self):
        os.kill(os.getpid(), signal.SIGKILL)

folder = Path(sys.argv[2])
store = Killed(SqliteJournal(folder / "journal.db"), int(sys.argv[3]), "after")
print(asyncio.run(agent_on(folder, store).run("go", run_id="r")).status)
"""


@pytest.mark.slow
async def test_a_killed_process_loses_nothing_of_a_plan_and_repeats_nothing(tmp_path: Path) -> None:
    for at in range(1, 100):
        folder = tmp_path / str(at)
        folder.mkdir()
        command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), str(folder), str(at)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: ASYNC221  # the test waits for its death
        if done.returncode == 0:
            assert (done.stdout.strip(), at > 20) == ("completed", True)
            return
        assert done.returncode == -9, done.stderr
        store = SqliteJournal(folder / "journal.db")
        check_book(await finish(folder, store), at)
        await store.aclose()
    pytest.fail("the run never came to its end")


async def test_an_agent_step_knows_what_other_steps_have_done() -> None:
    world = World()
    again, steps = calls(("send", {"to": "Ann"})), [step("a", "send", to="Ann"), step("b", "send", ["a"], to="Ann")]
    told = step("c", kind="agent", needs=["b"], instruction="write to Ann if she does not know", allowed_tools=["send"])
    model = ScriptedModel([json.dumps(plan(*steps, told)), again, "She knows."])
    agent = world.agent(model, config=configured(answer="off"))
    assert (await agent.run("go", run_id="r")).status == "completed"
    assert world.ran == ["send Ann", "send Ann"]  # the plan names it twice, the agent once more
    assert "Already done as call b.1" in model.requests[-1].messages[-1].content
    await events_of(agent)

    other = step("b", "send", ["a"], to="Bob")
    model, world.ran = ScriptedModel([json.dumps(plan(steps[0], other, told)), again, "She knows."]), []
    assert (await world.agent(model, config=configured(answer="off")).run("go")).status == "completed"
    assert world.ran == ["send Ann", "send Bob", "send Ann"]


async def test_two_agents_side_by_side_do_not_both_make_the_same_write() -> None:
    sent, may_end = list[str](), asyncio.Event()

    @tool
    async def send(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        await may_end.wait()
        return "sent"

    def reply(request: ModelRequest) -> Scripted:
        if "step_id" in str(request.schema) or not request.tools.names:
            return json.dumps(plan(*(step(n, kind="agent", instruction=n, allowed_tools=["send"]) for n in "ab")))
        said = [one.content for one in request.messages if one.role == "tool"]
        if len(asked) == 1:
            may_end.set()
        asked.append(said)
        return "done" if said else calls(("send", {"to": "Ann"}))

    asked: list[list[str]] = []
    agent = Agent(FunctionModel(reply), [send], reasoner="plan", config=configured(answer="off"))
    run = await agent.run("go", run_id="r")
    assert (run.status, sent) == ("completed", ["Ann"])
    assert any("Already done as call" in one for said in asked for one in said)
    await events_of(agent)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
async def test_several_doubts_are_settled_in_any_order(order: tuple[int, ...]) -> None:
    sent: list[str] = []

    @tool
    async def send(to: str) -> str:
        """Send a letter."""
        sent.append(to)
        if len(sent) <= 3:
            raise OutcomeUnknown("the line broke")
        return "sent"

    names = ("Ann", "Bob", "Cy")
    steps = plan(*(step(name, "send", to=name) for name in names))
    agent = Agent(script(steps), [send], reasoner="plan", config=configured(answer="off"))
    run = await agent.run("go", run_id="r")
    assert (run.status, len(run.waiting)) == ("paused", 3)
    for at, which in enumerate(order):
        run = await agent.settle("r", f"{names[which]}.1", "not_done", by="Ada")
        assert {one.id for one in run.waiting} == {f"{names[one]}.1" for one in order[at + 1 :]}
    run = await agent.resume("r")
    assert (run.status, sorted(sent)) == ("completed", sorted(2 * names))
    await events_of(agent)
