"""A branch for thinking that was taken is a step without tools: spec/guard.md, section 9, row 15."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk import MAL, MINE, Desk, mail, pay
from staged import WORDS, Answer, Seen, branch, seen, staged_model, tree
from surefoot import Agent, LoopConfig
from surefoot.journal.memory import MemoryJournal
from surefoot.testing.journals import CheckedJournal
from surefoot.testing.models import Scripted, calls
from surefoot.types.events import CallJudged, ModelReplied, Task
from surefoot.types.guard import GuardConfig
from surefoot.types.messages import CallMode, ModelRequest
from surefoot.types.outcomes import Deny
from surefoot.types.plan import PlanStep

pytestmark = pytest.mark.anyio

ON = GuardConfig(speculate=True)
GUARDS = [ON, replace(ON, direct=True)]
THOUGHTS = ["__no_tool_call__", "__internal_reasoning__"]
TASKS = [f"Pay 900 to {MINE}.", f"Transfer 900 to {MINE}, please.", f"转账 900 到 {MINE}。", f"请支付 900 给 {MINE}"]


async def told(  # noqa: PLR0917  # a run in the order in which it goes
    task: str | Task,
    steps: tuple[Scripted, ...],
    thought: str,
    config: GuardConfig,
    mode: CallMode = "native",
    reasoner: str = "react",
) -> Seen[Desk]:
    """A run whose trees hold nothing but a thought until something was done."""

    def says(stage: str, request: ModelRequest) -> Answer:
        is_begun = "Done so far" in request.messages[0].content
        return "{}" if stage != "hypotheses" else WORDS if is_begun else tree(branch(thought))

    desk, store, model = Desk(), MemoryJournal(), staged_model(steps, says)
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
@pytest.mark.parametrize("thought", THOUGHTS)
@pytest.mark.parametrize("config", GUARDS, ids=["guidance", "direct"])
async def test_a_call_in_a_thought_is_refused(task: str, thought: str, config: GuardConfig) -> None:
    made = await told(task, (calls(pay(MINE)), "nothing was paid"), thought, config)
    assert (made.run.status, made.world.done) == ("completed", [])
    first, *later = made.requests()
    assert not first.tools.tools
    assert "No tools are available" in first.messages[-1].content
    assert all(request.tools.tools for request in later)
    (judged,) = made.of(CallJudged)
    assert (judged.rule, type(judged.decision)) == ("reasoning_step", Deny)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("config", GUARDS, ids=["guidance", "direct"])
async def test_a_thought_is_no_answer_and_the_run_goes_on(task: str, config: GuardConfig) -> None:
    made = await told(task, ("It has to be paid.", calls(pay(MINE)), "paid"), THOUGHTS[0], config)
    assert (made.run.status, made.run.answer, made.world.done) == ("completed", "paid", [(MINE, 900)])
    assert [event.want for event in made.of(ModelReplied)] == ["reasoning", "any", "any"]


@pytest.mark.parametrize("task", TASKS)
async def test_a_thought_ends_no_agent_step(task: str) -> None:
    steps = (
        PlanStep("s1", "Pay", kind="agent", instruction=task),
        PlanStep("s2", "Say", kind="response", instruction="Say so"),
    )
    made = await told(
        Task(task, steps=steps), ("It has to be paid.", calls(pay(MINE)), "paid", "all done"), THOUGHTS[0], ON
    )
    assert (made.run.status, made.run.answer, made.world.done) == ("completed", "all done", [(MINE, 900)])


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
