"""Plans through the front door: what a user sees, from the first proposal to the end. Source: spec/planning.md."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import anyio.lowlevel
import pytest

from plan_kit import (
    GIVE_UP,
    ONE_BY_ONE,
    STOP,
    WORDS,
    World,
    configured,
    evaluators,
    events_of,
    off,
    planning_of,
    refusals,
    script,
    statuses,
    step,
    store_of,
    thinking,
)
from scenes import Row, play, rows_in
from surefoot import Agent, GuardConfig, MemoryJournal, ModelRequest, Run, Task, tool
from surefoot.core.loop.fold import fold
from surefoot.testing.journals import CheckedJournal
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.testing.world import overall, plan
from surefoot.types.events import CallEnded, InStep
from surefoot.types.plan import ContextDocument, TaskContext
from surefoot.types.plan_events import ProposalMade

pytestmark = pytest.mark.anyio

LOOK = plan(step("a", "look", q="x"))
LINE = plan(
    step("a", "look", q="x"), step("b", "send", ["a"], to="Ann", text="{{a.n}}: {{a.found}}", must_succeed=True)
)
BAD = {"look bad": "tool:gone"}


ROWS = [*rows_in("plans", "runs"), *rows_in("plans", "further")]  # the first are played elsewhere, too


@pytest.mark.parametrize("row", ROWS, ids=[row["why"] for row in ROWS])
async def test_what_comes_of_a_plan(row: Row) -> None:
    await play(row, World, WORDS, reasoner="plan", config=ONE_BY_ONE, evaluators=evaluators())


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


async def test_a_corrective_selection_is_held_to_what_there_is() -> None:
    claim = {"kept_tools": ["look"], "added_tools": ["find"]}
    said: list[Scripted] = [
        {"selected_tool_ids": ["look"]},
        plan(step("b", "look", q="bad")),
        GIVE_UP,
        overall("full_replan"),
        {"selected_tool_ids": ["nothing"]},
        {"selected_tool_ids": ["find"], "changes_from_previous": claim},
        plan(step("c", "find", q="z")),
    ]
    refused = [
        "unknown_tool nothing",
        'diff_corrected {"added": ["find"], "kept": ["look"], "removed": [], "replaced": []}',
    ]
    row = {"said": said, "ran": ["look bad", "find z False"], "end": "completed", "refused": refused}
    config = {"plan": {**ONE_BY_ONE["plan"], "select_all_below": 0}}
    played = await play({**row, "world": {"broken": BAD}, "config": config}, World, reasoner="plan")
    planning = await planning_of(played.agent)
    assert planning.selected == ("find",)
    changes = planning.selection.changes_from_previous if planning.selection else None
    assert changes is not None
    told = [[one.tool_id for one in some] for some in (changes.added_tools, changes.removed_tools)]
    assert told == [["find"], ["look"]]


def replying(*replies: Scripted) -> tuple[FunctionModel, list[ModelRequest]]:
    """A model that is held to forms and says these in turn, and what it was asked."""
    said, seen = iter([one if isinstance(one, str) else json.dumps(one) for one in replies]), list[ModelRequest]()

    def reply(request: ModelRequest) -> str:
        seen.append(request)
        return next(said)

    return FunctionModel(reply, modes=("schema", "text")), seen


async def test_a_step_of_words_is_told_of_no_tool_and_held_to_no_form() -> None:
    model, seen = replying(plan(step("l", "look", q="x"), thinking("t", ["l"])), "so it is", "The answer.")
    run = await World().agent(model, instructions="Be brief.").run("go", run_id="r")
    assert (run.status, run.answer) == ("completed", "The answer.")
    for request in seen[1:]:
        assert (request.mode, request.schema, request.tools.names) == ("text", None, ())
        assert request.system.startswith("Be brief.\n\nYou write one step")
        assert "Action" not in request.system
        assert request.messages[0].content == "Task: go"
    assert '"found":"about x"' in seen[1].messages[-1].content
    assert "so it is" in seen[2].messages[-1].content


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


async def test_a_plan_with_as_many_open_questions_as_may_be_pauses_and_loses_no_step() -> None:
    world = World()
    names = ("ann", "bob", "cy", "dee", "eve")
    letters = (step(name, "send", to=f"{name}@far.org", text="hi") for name in names)
    steps = plan(*letters, step("late", "look", q="x"))
    config = off(guard=GuardConfig(max_asks=2, approvals="queue"))
    agent = world.agent(steps, config=config)
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
        script(plan(step("a", "look", q="x"), *letters)), config=off(guard=GuardConfig(max_asks=2), max_parallel=4)
    )
    await agent.run("send hi to everybody", run_id="r")
    events = await events_of(agent)
    ended = next(at for at, one in enumerate(events) if isinstance(one, InStep) and isinstance(one.event, CallEnded))
    dead = Run.of(fold(events[:ended]))  # the read has started, and nobody knows what it gave
    assert (dead.status, dead.reason, [one.id for one in dead.waiting]) == ("paused", "approval", ["ann.1", "bob.1"])


@pytest.mark.parametrize("outcome", ["done", "not_done", "abandoned"])
@pytest.mark.parametrize("how", ["told", "late"])
async def test_a_call_of_which_nobody_knows_waits_for_a_person(outcome: Any, how: str) -> None:  # Any: an Outcome
    world = World({"send Ann": "OutcomeUnknown: the line broke"} if how == "told" else {})
    world.holds_up = {} if how == "told" else {"send Ann": asyncio.Event()}
    steps = plan(
        step("a", "send", to="Ann", timeout=0.01), step("b", "look", q="x"), step("c", "look", ["a"], q="{{a}}")
    )
    agent = world.agent(steps, *([GIVE_UP, STOP] if outcome == "abandoned" else []), config=off())
    run = await agent.run("go", run_id="r")
    assert (run.status, run.reason, world.ran) == ("paused", "in_doubt", ["send Ann", "look x"])
    assert (await statuses(agent))["a"] == "in_doubt"
    assert (await agent.resume("r")).reason == "in_doubt"
    await agent.settle("r", run.waiting[0].id, outcome, by="Ada", result="sent by hand" if outcome == "done" else "")
    world.holds_up.clear()
    run = await agent.resume("r")
    after = {"done": ["look sent by hand"], "not_done": ["send Ann", "look sent to Ann"], "abandoned": []}
    assert world.ran[2:] == after[outcome]
    assert run.status == ("stopped" if outcome == "abandoned" else "completed")
    await events_of(agent)


async def test_cancelled_while_calls_run_and_taken_up_again() -> None:
    world = World()
    steps = plan(step("a", "meet", who="me"), step("b", "look", q="x"), step("c", "look", ["a"], q="{{a}}"))
    store = CheckedJournal(MemoryJournal())
    agent = world.agent(steps, store=store, config=configured(answer="off"))
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
    assert await refusals(agent) == ["invalid_plan unknown_tool:b:nothing"]
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
        other = branch.agent(script(*([] if planned else [LINE]), "two"), store=store_of(agent))
        run = await other.fork("r", at, new_id=f"f{at}")
        if run.status == "paused":
            await other.settle(run.id, run.waiting[0].id, "not_done", by="Ada")
            run = await other.resume(run.id)
        assert run.status == "completed", (at, run)
        assert branch.ran.count("send Ann 3: about x") == 1 - sent, at
        await events_of(other, f"f{at}")


async def test_two_agents_side_by_side_do_not_both_make_the_same_write() -> None:
    world, asked = World(), list[list[str]]()
    world.holds_up = {"send Ann": asyncio.Event()}

    def reply(request: ModelRequest) -> Scripted:
        if "step_id" in str(request.schema) or not request.tools.names:
            return json.dumps(plan(*(thinking(n, kind="agent", allowed_tools=["send"]) for n in "ab")))
        said = [one.content for one in request.messages if one.role == "tool"]
        if len(asked) == 1:
            world.holds_up["send Ann"].set()
        asked.append(said)
        return "done" if said else calls(("send", {"to": "Ann"}))

    agent = world.agent(FunctionModel(reply), config=configured(answer="off"))
    run = await agent.run("go", run_id="r")
    assert (run.status, world.ran) == ("completed", ["send Ann"])
    assert any("Already done as call" in one for said in asked for one in said)
    await events_of(agent)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
async def test_several_doubts_are_settled_in_any_order(order: tuple[int, ...]) -> None:
    names = ("Ann", "Bob", "Cy")
    world = World({f"send {name}": "OutcomeUnknown: the line broke" for name in names})
    agent = world.agent(plan(*(step(name, "send", to=name) for name in names)), config=configured(answer="off"))
    run = await agent.run("go", run_id="r")
    assert (run.status, len(run.waiting)) == ("paused", 3)
    for at, which in enumerate(order):
        run = await agent.settle("r", f"{names[which]}.1", "not_done", by="Ada")
        assert {one.id for one in run.waiting} == {f"{names[one]}.1" for one in order[at + 1 :]}
    run = await agent.resume("r")
    assert (run.status, sorted(world.ran)) == ("completed", sorted(2 * [f"send {name}" for name in names]))
    await events_of(agent)
