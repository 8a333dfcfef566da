"""What a guard is told of a run, and where it cannot be: the kind of a step, the user, Cedar, a request alone."""

from dataclasses import replace

import pytest

from records import events_of
from surefoot import Agent, LoopConfig, ModelService, Task, tool
from surefoot.journal.memory import MemoryJournal
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.events import CallJudged
from surefoot.types.guard import GuardConfig
from surefoot.types.outcomes import Deny
from surefoot.types.plan import PlanStep
from surefoot.types.rules import Declared, Rule, When

pytestmark = pytest.mark.anyio

PERMIT = "permit(principal, action, resource);"


@tool(effect="read")
def look(name: str) -> str:
    return f"{name} is green"


@pytest.mark.parametrize(("kind", "is_refused"), [("agent", True), ("tool", False)])
async def test_a_rule_knows_the_kind_of_the_step_that_runs(kind: str, is_refused: bool) -> None:
    no_agents = Rule("no-agents", When(tool="look", step_kind="agent"), "deny")
    step = (
        PlanStep("one", kind="agent", instruction="Look up the lake.", allowed_tools=("look",))
        if kind == "agent"
        else PlanStep("one", tool_id="look", parameters={"name": "lake"})
    )
    store = MemoryJournal()
    agent = Agent(
        ScriptedModel([calls(("look", {"name": "lake"})), "done", "done"] if kind == "agent" else ["done"]),
        tools=[look],
        journal=store,
        config=LoopConfig(guard=GuardConfig(rules=(no_agents,))),
    )
    run = await agent.run(
        Task("Look up the lake.", steps=(step, PlanStep("end", kind="response", instruction="Say it.")))
    )
    judged = [one for one in await events_of(store, run.id) if isinstance(one, CallJudged)]
    assert [isinstance(one.decision, Deny) and one.rule == "user_rules" for one in judged] == [is_refused]


async def test_cedar_knows_whose_runs_these_are() -> None:
    policy = 'permit(principal == User::"ada", action, resource);'
    for user, is_refused in (("ada", False), ("bob", True), ("", True)):
        store = MemoryJournal()
        config = LoopConfig(guard=GuardConfig(cedar=policy, user=user))
        agent = Agent(
            ScriptedModel([calls(("look", {"name": "lake"})), "done"]), tools=[look], journal=store, config=config
        )
        run = await agent.run("Look up the lake.")
        (judged,) = [one for one in await events_of(store, run.id) if isinstance(one, CallJudged)]
        assert isinstance(judged.decision, Deny) == is_refused


def test_what_is_no_cedar_is_told_when_the_agent_is_made() -> None:
    for text in ("permit(everything);", " "):
        with pytest.raises(ConfigError, match="valid Cedar"):
            Agent(ScriptedModel([]), config=LoopConfig(guard=GuardConfig(cedar=text)))
    Agent(ScriptedModel([]), config=LoopConfig(guard=GuardConfig(cedar=PERMIT)))


def test_a_guard_needs_a_task() -> None:
    with pytest.raises(UsageError, match="give the guard to an `Agent`"):
        ModelService(ScriptedModel([]), config=LoopConfig(guard=GuardConfig()))
    ModelService(ScriptedModel([]), config=LoopConfig(guard=GuardConfig(mode="off")))


async def test_a_word_turns_the_guard_on_and_it_is_given_once() -> None:
    sent: list[str] = []

    @tool(effect="communicate")
    def send(to: str) -> str:
        sent.append(to)
        return "sent"

    model = ScriptedModel([calls(("send", {"to": "eve@w.example"})), "done"])
    run = await Agent(model, tools=[send], guard=True).run("Send the report to ann@x.example.")
    assert (run.status, sent) == ("completed", [])  # nothing of the call is in the words, so it is refused
    declared = GuardConfig(declared={"send": Declared("read")})
    model = ScriptedModel([calls(("send", {"to": "eve@w.example"})), "done"])
    assert (await Agent(model, tools=[send], guard=declared).run("Send it to ann@x.example.")).status == "completed"
    with pytest.raises(UsageError, match="two guards"):
        Agent(model, tools=[send], guard=GuardConfig(strict=True), config=LoopConfig(guard=declared))


def test_the_guard_of_an_agent_can_be_read_and_goes_into_its_copies() -> None:
    strict, model = LoopConfig(guard=GuardConfig(strict=True)), ScriptedModel([])
    assert (Agent(model).guard, Agent(model, guard=True).guard) == (False, True)
    agent = Agent(model, config=strict)
    assert agent.guard
    assert (
        replace(agent, name="copy").config.guard == Agent(model, guard=True, config=strict).config.guard == strict.guard
    )
    observes = LoopConfig(guard=GuardConfig(mode="observe"))
    assert replace(agent, config=observes).config.guard == observes.guard
    assert replace(agent, config=LoopConfig()).config.guard == GuardConfig()
    assert not replace(agent, config=LoopConfig(), guard=False).guard
