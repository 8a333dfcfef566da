"""A branch of words that was taken is a step without tools: spec/guard.md, section 9, row 15, and section 2."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk import MAL, MINE, Desk, mail, pay
from plan_kit import World, events_of, off, step
from scenes import Row, Words, said
from staged import HEADS, ISOLATED, NO_OPINION, Answer, Seen, branch, seen, staged_model, tree
from surefoot import Agent, CallMode, GuardConfig, LoopConfig, MemoryJournal, ModelRequest, Task
from surefoot.testing.journals import CheckedJournal
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.testing.world import plan
from surefoot.types.events import CallJudged, InStep, ModelReplied
from surefoot.types.guard_events import BranchRejected
from surefoot.types.outcomes import Deny
from surefoot.types.plan import PlanStep
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


DATA = Path(__file__).parent / "data" / "thinking_branches.jsonl"
ROWS: list[Row] = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
SAYS: Words = {
    "$PAY": calls(pay(MINE)),
    "$AS_text": f'Thought: now\nAction: pay\nAction Input: {{"account": "{MINE}", "amount": 900}}',
    "$AS_schema": f'{{"thought": "now", "tool": "pay", "arguments": {{"account": "{MINE}", "amount": 900}}}}',
}


@pytest.mark.parametrize("config", GUARDS, ids=IDS)
@pytest.mark.parametrize("row", ROWS, ids=[row["why"] for row in ROWS])
async def test_what_comes_of_a_branch_of_words(row: Row, config: GuardConfig) -> None:
    """No tool is offered until there are words; they are asked for as often as in a step of a plan."""
    if config.direct and row.get("guards") == "guidance":
        return
    script, isolated = tuple(said(line, SAYS) for line in row["said"]), said(row.get("isolated", ""), SAYS)
    how = {name: row[name] for name in ("mode", "reasoner", "always") if name in row}
    for words in TASKS if row.get("tasks") == "all" else TASKS[:1]:
        kinds = enumerate(row.get("kinds", ()), 1)
        steps = (PlanStep(f"s{at}", kind=kind, instruction=told.replace("$TASK", words)) for at, (kind, told) in kinds)
        made = await told(Task(words, steps=tuple(steps)), script, row["thought"], config, isolated=isolated, **how)
        asked, violated, rules = made.requests(), made.of(ReasoningStepViolated), [e.rule for e in made.of(CallJudged)]
        alone = [one for one in asked if one.system.startswith(ISOLATED)]
        assert all(
            (len(one.messages), one.tools.tools) == (1, ()) and words in one.messages[0].content for one in alone
        )
        assert all(isinstance(e.decision, Deny) for e in made.of(CallJudged) if e.rule == "reasoning_step")
        assert not any(one.tools.tools for one in asked[: row.get("bare", 0)])
        assert row.get("first_told", "") in asked[0].messages[-1].content
        assert {*rules} <= ({row["only"]} if "only" in row else {*rules})
        seen = {
            "end": made.run.status,
            "answer": made.run.answer,
            "done": len([one for one in made.world.done if one == (MINE, 900)]),
            "alone": len(alone),
            "rules": rules,
            "rejected": [[e.branch_id, e.rule] for e in made.of(BranchRejected)],
            "violated": [[e.step_id, e.attempt, e.reason, [*e.tools]] for e in violated],
            "attempts": [e.attempt for e in violated][:3],
            "tries": len(violated),
            "of_steps": [e.step_id for e in violated],
            "wants": [e.want for e in made.of(ModelReplied)][: len(row.get("wants", ()))],
        }
        assert len(made.world.done) == seen["done"]
        assert {name: row[name] for name in seen if name in row} == {name: seen[name] for name in seen if name in row}


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
