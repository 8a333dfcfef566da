"""What a planned run is about, and how far its steps are, after each event of real runs."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from cases import each
from surefoot import Agent, GuardConfig, LimitAction, LoopConfig, PlanConfig, Run, StepIterationConfig, ToolResult, tool
from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import RunPhase, phase_of, status_of
from surefoot.core.state.state import EMPTY, State
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.testing.world import overall, plan, reflects, step
from surefoot.tools.call import OutcomeUnknown, ToolFailed
from surefoot.types.events import CallEnded, Event, InStep
from surefoot.types.rules import Rule, When

Json = dict[str, object]


@tool(effect="read")
async def look(at: str) -> str:
    """Look at something."""
    if at == "nothing":
        raise ToolFailed("there is nothing", code="parameter:nothing")
    await asyncio.sleep(0)
    return f"seen {at}"


@tool
async def send(to: str) -> str:
    """Send a letter."""
    if to == "nobody knows":
        raise OutcomeUnknown("no receipt")
    return f"sent to {to}"


GIVE_UP = reflects("trigger_overall_reflection")


def ran(*replies: Scripted, **config: Any) -> tuple[Run, list[Event]]:  # Any: fields of a plan's configuration by name
    events: list[Event] = []
    loop = LoopConfig(guard=config.pop("guard", None), plan=PlanConfig(**config))
    agent = Agent(ScriptedModel(list(replies)), tools=[look, send], reasoner="plan", config=loop)
    run = agent.run_sync("Look at x and send a letter to Bob.", watch=events.append)  # type: ignore[arg-type]  # no signals
    return run, events


def states(events: Sequence[Event]) -> list[State]:
    found = [EMPTY]
    for event in events:
        found.append(fold((event,), found[-1]))
    return found[1:]


def phases(events: Sequence[Event]) -> list[RunPhase]:
    told: list[RunPhase] = []
    for state in states(events):
        if not told or phase_of(state) != told[-1]:
            told.append(phase_of(state))
    return told


def test_a_run_without_a_plan_has_no_phase() -> None:
    events: list[Event] = []
    Agent(ScriptedModel(["done"]), tools=[look]).run_sync("Look.", watch=events.append)  # type: ignore[arg-type]  # no signals
    assert phases(events) == [""]


FIRST, LAST = "selecting, decomposing, ", "running, evaluating, answering, ended"
AGAIN = "running, step reflecting, overall reflecting, selecting (corrective), redecomposing, "
WORKS = plan(step("a", "look", at="x"), step("b", "send", ["a"], to="Bob"))
FAILS = [plan(step("a", "look", at="nothing")), GIVE_UP, overall("full_replan"), plan(step("c", "look", at="y"))]


@each("replies, config, end, told", [
    ([WORKS, "Done."], {}, ("completed", ""), FIRST + LAST),
    ([*FAILS, "Done."], {}, ("completed", ""), FIRST + AGAIN + LAST),
    ([WORKS], {"approve_plan": "first"}, ("paused", "approval"), FIRST + "signing"),
])  # fmt: skip
def test_the_phases_of_a_run(replies: list[Scripted], config: dict[str, str], end: tuple[str, str], told: str) -> None:
    run, events = ran(*replies, **config)
    assert ((run.status, run.reason), phases(events)) == (end, told.split(", "))
    assert status_of(states(events)[-1], "a") == (
        "pending" if config else "succeeded" if replies[0] is WORKS else "superseded"
    )


def test_what_runs_beside_a_failure_is_drained_first() -> None:
    _, events = ran(plan(step("a", "look", at="nothing"), step("b", "look", at="x")), GIVE_UP, overall(), "Stopped.")
    at = next(at for at, event in enumerate(events) if event.type == "StepReflected")
    before = [event for event in events[: at + 1] if not (isinstance(event, InStep) and event.step_id == "b")]
    open_b = [event for event in events if isinstance(event, InStep) and event.step_id == "b"]
    started = [event for event in open_b if not isinstance(event.event, CallEnded)]
    state = fold([*before, *started])
    assert phase_of(state) == "draining"
    assert status_of(state, "b") == "running"
    assert phase_of(fold([InStep("b", 1, CallEnded("b.1", ToolResult("x")))], state)) == "overall reflecting"


def test_a_step_waits_for_a_person_while_the_run_goes_on() -> None:
    rule = Rule("asks", When(tool="send"), "ask", "looked at first")
    guard = GuardConfig(rules=(rule,), approvals="queue")
    run, events = ran(plan(step("a", "send", to="Bob"), step("b", "look", at="x")), guard=guard)
    assert (run.status, run.reason) == ("paused", "approval")
    last = states(events)[-1]
    assert (status_of(last, "a"), status_of(last, "b")) == ("waiting", "succeeded")
    assert phase_of(last) == "running"


def test_a_step_that_goes_in_circles_is_asked_about() -> None:
    thinks: Json = {"step_id": "g", "kind": "agent", "instruction": "look", "dependencies": []}
    again = [calls(("look", {"at": "nothing"})) for _ in range(4)]
    stuck = StepIterationConfig(on_limit_reached=LimitAction.Escalate)
    agent = Agent(
        ScriptedModel([plan(thinks), *again]),
        tools=[look, send],
        reasoner="plan",
        config=LoopConfig(step_iteration=stuck),
    )
    events: list[Event] = []

    async def asked_and_answered() -> tuple[Run, Run]:
        run = await agent.run("Look.", run_id="r1", watch=events.append)  # type: ignore[arg-type]  # no signals
        return run, await agent.approve("r1", run.waiting[0].id, by="Ada")

    run, after = asyncio.run(asked_and_answered())
    assert (run.status, run.reason) == ("paused", "approval")
    assert status_of(states(events)[-1], "g") == "waiting"
    assert (after.status, after.waiting) == ("ready", ())


def test_a_step_whose_outcome_nobody_knows_is_in_doubt() -> None:
    run, events = ran(plan(step("a", "send", to="nobody knows")))
    assert (run.status, run.reason) == ("paused", "in_doubt")
    assert status_of(states(events)[-1], "a") == "in_doubt"


@pytest.mark.parametrize(
    ("asked", "left"), [(step("a", "send", to="Bob"), "in_doubt"), (step("a", "look", at="x"), "running")]
)
def test_a_started_call_is_in_doubt_unless_somebody_drives_the_run_or_it_may_be_made_again(
    asked: Json, left: str
) -> None:
    _, events = ran(plan(asked), "Done.")
    at = next(at for at, one in enumerate(events) if isinstance(one, InStep) and one.event.type == "CallStarted")
    state = fold(events[: at + 1])
    assert (status_of(state, "a", is_driven=True), status_of(state, "a")) == ("running", left)
    with pytest.raises(KeyError):
        status_of(state, "z")
