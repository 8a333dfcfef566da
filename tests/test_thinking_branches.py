"""A branch of words that was taken is a step without tools: spec/guard.md, section 9, row 15, and section 2."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk import MAL, MINE, Desk, mail, pay
from plan_kit import World, events_of, off, step
from staged import HEADS, ISOLATED, NO_OPINION, Answer, Seen, branch, seen, staged_model, tree
from surefoot import Agent, CallMode, GuardConfig, LoopConfig, MemoryJournal, ModelRequest, Task
from surefoot.testing.journals import CheckedJournal
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.testing.world import plan
from surefoot.types.events import CallJudged, InStep, ModelReplied
from surefoot.types.guard_events import BranchRejected
from surefoot.types.outcomes import Deny
from surefoot.types.plan import PlanStep, StepKind
from surefoot.types.plan_events import ReasoningStepViolated

pytestmark = pytest.mark.anyio

ON = GuardConfig(speculate=True)
GUARDS = [ON, replace(ON, direct=True)]
IDS = ["guidance", "direct"]
THOUGHTS = ["__no_tool_call__", "__internal_reasoning__"]
RESPONSE = "__response__"
TASKS = [f"Pay 900 to {MINE}.", f"Transfer 900 to {MINE}, please.", f"转账 900 到 {MINE}。", f"请支付 900 给 {MINE}"]


async def told(  # noqa: PLR0917  # a run in the order in which it goes
    task: str | Task,
    steps: tuple[Scripted, ...],
    thought: str,
    config: GuardConfig,
    mode: CallMode = "native",
    reasoner: str = "react",
    isolated: Scripted = "",
    *,
    always: bool = False,
) -> Seen[Desk]:
    """A run whose trees hold nothing but a branch of words until something was done, or `always`."""

    def says(stage: str, request: ModelRequest) -> Answer:
        is_begun = "Done so far" in request.messages[0].content or "Refused or failed" in request.messages[0].content
        return "{}" if stage != "hypotheses" else NO_OPINION if is_begun and not always else tree(branch(thought))

    desk, store, model = Desk(), MemoryJournal(), staged_model(steps, says, isolated)
    agent = Agent(
        model,
        tools=desk.agent.tools,
        journal=CheckedJournal(store),
        config=LoopConfig(guard=config),
        call_mode=mode,
        reasoner=reasoner,
    )
    return await seen(agent, await agent.run(task), desk, model, store)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", [*THOUGHTS, RESPONSE])
@pytest.mark.parametrize("config", GUARDS)
async def test_a_call_in_a_branch_of_words_is_refused(task: str, name: str, config: GuardConfig) -> None:
    """It is asked for again as often as a step of a plan is, and no tool is offered until there are words."""
    bad = calls(pay(MINE))
    made = await told(task, (bad, bad, "nothing was paid", "so it is"), name, config)
    assert (made.run.status, made.world.done) == ("completed", [])
    assert made.run.answer == ("nothing was paid" if name == RESPONSE else "so it is")
    words = made.requests()[:3]
    assert not any(request.tools.tools for request in words)
    assert "No tools are available" in words[0].messages[-1].content
    assert [(e.rule, type(e.decision)) for e in made.of(CallJudged)] == [("reasoning_step", Deny)] * 2
    violated = [(e.step_id, e.attempt, e.reason, e.tools) for e in made.of(ReasoningStepViolated)]
    assert violated == [("run", 1, "calls", ("pay",)), ("run", 2, "calls", ("pay",))]


@pytest.mark.parametrize("name", [THOUGHTS[0], RESPONSE])
@pytest.mark.parametrize("config", GUARDS)
@pytest.mark.parametrize("reasoner", ["react", "mono"])
async def test_after_the_retries_words_are_asked_for_once_out_of_fresh_messages(
    name: str, config: GuardConfig, reasoner: str
) -> None:
    bad, asked = calls(pay(MINE)), "what is known so far"
    made = await told(TASKS[0], (bad, bad, bad, "", "it is over"), name, config, reasoner=reasoner, isolated=asked)
    (alone,) = (request for request in made.requests() if request.system.startswith(ISOLATED))
    assert (alone.tools.tools, len(alone.messages)) == ((), 1)
    assert TASKS[0] in alone.messages[0].content
    assert [event.want for event in made.of(ModelReplied)][:4] == ["reasoning"] * 3 + ["isolated"]
    assert (made.run.status, made.world.done) == ("completed", [])
    assert made.run.answer == (asked if name == RESPONSE else "it is over")


@pytest.mark.parametrize("name", [THOUGHTS[0], RESPONSE])
@pytest.mark.parametrize("config", GUARDS, ids=IDS)
async def test_a_branch_that_never_gets_words_has_failed_and_the_run_goes_on(name: str, config: GuardConfig) -> None:
    bad = calls(pay(MINE))
    steps = (bad, bad, bad, bad, bad, "paid")
    made = await told(TASKS[0], steps, name, config, isolated=calls(pay(MINE)))
    assert [(e.branch_id, e.rule) for e in made.of(BranchRejected)] == [("b1", "reasoning_violations")]
    assert len(made.of(ReasoningStepViolated)) == 3
    assert (made.run.status, made.run.answer, made.world.done) == ("completed", "paid", [(MINE, 900)])


IN_TEXT = {
    "text": f'Thought: now\nAction: pay\nAction Input: {{"account": "{MINE}", "amount": 900}}',
    "schema": f'{{"thought": "now", "tool": "pay", "arguments": {{"account": "{MINE}", "amount": 900}}}}',
}


@pytest.mark.parametrize("mode", ["text", "schema"])
@pytest.mark.parametrize("name", [THOUGHTS[0], RESPONSE])
@pytest.mark.parametrize("config", GUARDS)
async def test_a_call_written_as_text_does_not_run_either(name: str, config: GuardConfig, mode: CallMode) -> None:
    made = await told(TASKS[0], (IN_TEXT[mode],) * 3, name, config, mode=mode, isolated="nothing was paid", always=True)
    assert made.world.done == []
    assert {event.rule for event in made.of(CallJudged)} <= {"reasoning_step"}
    assert [event.attempt for event in made.of(ReasoningStepViolated)][:3] == [1, 2, 3]


async def test_twenty_calls_are_twenty_refusals_and_the_tries_have_a_limit() -> None:
    flood = calls(*(pay(MINE) for _ in range(20)))
    made = await told(TASKS[0], (flood,) * 40, RESPONSE, replace(ON, max_backtracks=1), isolated=flood, always=True)
    assert (made.run.status, made.world.done) == ("paused", [(MINE, 900)])
    refused = [e for e in made.of(CallJudged) if e.rule == "reasoning_step"]
    assert len(refused) == 20 * len(made.of(ReasoningStepViolated)) == 20 * 3 * 2


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("config", GUARDS)
async def test_a_thought_is_no_answer_and_the_run_goes_on(task: str, config: GuardConfig) -> None:
    made = await told(task, ("It has to be paid.", calls(pay(MINE)), "paid"), THOUGHTS[0], config)
    assert (made.run.status, made.run.answer, made.world.done) == ("completed", "paid", [(MINE, 900)])
    assert [event.want for event in made.of(ModelReplied)] == ["reasoning", "any", "any"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", [THOUGHTS[0], RESPONSE])
async def test_a_response_ends_an_agent_step_with_its_words_and_a_thought_does_not(task: str, name: str) -> None:
    kinds: list[tuple[StepKind, str]] = [("agent", task), ("response", "Say so")]
    steps = tuple(PlanStep(f"s{at}", kind=kind, instruction=told) for at, (kind, told) in enumerate(kinds, 1))
    paying, known = calls(pay(MINE)), "It has to be paid."
    said = (paying, known) if name == RESPONSE else (known, paying, "paid")
    made = await told(Task(task, steps=steps), (*said, "all done"), name, ON)
    assert (made.run.status, made.run.answer) == ("completed", "all done")
    assert made.world.done == ([] if name == RESPONSE else [(MINE, 900)])
    assert [event.step_id for event in made.of(ReasoningStepViolated)] == (["s1"] if name == RESPONSE else [])


@pytest.mark.parametrize("config", GUARDS, ids=IDS)
@pytest.mark.parametrize("name", [THOUGHTS[0], RESPONSE])
async def test_an_agent_step_of_a_plan_that_repairs_itself_has_the_same_tries(config: GuardConfig, name: str) -> None:
    world, ways = World(), iter((tree(branch(name)),))
    words = iter((calls(("send", {"to": "Ann"})), "", "It is known.", "It is done."))

    async def reply(request: ModelRequest) -> Scripted:
        if request.system.startswith(HEADS["hypotheses"]):
            return next(ways, NO_OPINION)
        return (
            next(words)
            if "Do this step now" in str(request.messages)
            else plan(step("a", kind="agent", instruction="x"))
        )

    agent = world.agent(FunctionModel(reply), config=off(guard=config))
    run = await agent.run("Say what is known of Ann.", run_id="r")
    inner = [event.event for event in await events_of(agent) if isinstance(event, InStep)]
    assert [one.attempt for one in inner if isinstance(one, ReasoningStepViolated)] == [1, 2]
    assert [one.rule for one in inner if isinstance(one, CallJudged)] == ["reasoning_step"]
    assert (run.status, world.ran) == ("completed", [])
    assert (next(words, None) is None) is (name != RESPONSE)


async def test_a_deliverable_in_a_thought_is_no_answer() -> None:
    steps = ("<deliverable>paid</deliverable>", calls(pay(MINE)), "<deliverable>now it is</deliverable>")
    made = await told(TASKS[0], steps, THOUGHTS[0], ON, reasoner="mono")
    assert (made.run.status, made.run.answer, made.world.done) == ("completed", "now it is", [(MINE, 900)])


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from((pay(MINE), mail(MAL), ("read_file", {"path": "bill.txt"}))), min_size=1, max_size=4),
    st.sampled_from(GUARDS),
    st.sampled_from(TASKS),
)
async def test_no_call_in_a_thought_ever_runs(
    made_calls: list[tuple[str, dict[str, object]]], config: GuardConfig, task: str
) -> None:
    made = await told(task, (calls(*made_calls), "nothing was done"), THOUGHTS[0], config)
    assert (made.run.status, made.world.done) == ("completed", [])
    assert {event.rule for event in made.of(CallJudged)} == {"reasoning_step"}
    assert len(made.of(CallJudged)) == len(made_calls)
