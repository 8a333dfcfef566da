"""What a long run must not lose when its window is full: the question, what the user adds, calls as written."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot import Agent, LoopConfig, MemoryJournal, PlanStep, Task, tool
from surefoot.core.state.window import catalogue_tokens, message_tokens, text_tokens
from surefoot.testing.models import Scripted, ScriptedModel, calls
from surefoot.types.errors import ModelError
from surefoot.types.messages import ModelMessage, NativeCall

pytestmark = pytest.mark.anyio

SMALL = LoopConfig(context_tokens=1600)
OVERFLOW = ModelError("maximum context length is 1000 tokens", kind="context_overflow")


def seen(n: int, words: int = 20) -> str:
    return f"item {n}: " + " ".join(f"w{n}x{at}" for at in range(words))


@tool(effect="read")
def look(n: int) -> str:
    """Look at an item."""
    return seen(n)


def looks(count: int, first: int = 0) -> list[Scripted]:
    return [calls(("look", {"n": number})) for number in range(first, first + count)]


def shown(model: ScriptedModel, words: str) -> list[bool]:
    return [any(words in one.content for one in request.messages) for request in model.requests]


async def test_the_question_of_a_conversation_stays_in_view() -> None:
    model = ScriptedModel(["the first answer", *looks(30), "done"])
    agent = Agent(model, [look], journal=MemoryJournal(), config=SMALL)
    first = await agent.run("FIRST")
    assert (await agent.run("SECOND", history=first)).answer == "done"
    assert all(shown(model, "SECOND")[1:])
    assert any("earlier steps are not shown" in one.content for one in model.requests[-1].messages)


async def test_the_question_of_a_conversation_stays_in_view_of_both_speakers() -> None:
    history: dict[str, Any] = {}  # Any: passed on
    store = MemoryJournal()
    for question, rounds in (("FIRST", 2), ("SECOND", 12)):
        told = [f"<instruction>look at {at}</instruction><input>None</input>" for at in range(rounds)]
        said = [one for at in range(rounds) for one in (*looks(1, at), f"report {at} " + "word " * 60)]
        thinker = ScriptedModel([*told, "TASK_DONE"])
        actor = ScriptedModel([*said, "<deliverable>x</deliverable>\nTASK_DONE"])
        both, config = {"thinker": thinker, "actor": actor}, LoopConfig(context_tokens=2600)
        agent = Agent(both, [look], reasoner="dual", journal=store, config=config)
        history = {"history": await agent.run(question, **history)}
        assert all((*shown(thinker, question), *shown(actor, question)))


@pytest.mark.parametrize("reasoner", ["react", "dual"])
async def test_what_the_user_adds_stays_in_view(reasoner: str) -> None:
    @tool(effect="read")
    async def peek(n: int) -> str:
        """Look at an item."""
        if n == 0:
            await agent.note("r", "BOB TOO", by="Ada")
        return seen(n)

    count = 26 if reasoner == "react" else 2
    peeks: list[Scripted] = [calls(("peek", {"n": number})) for number in range(count)]
    reader = ScriptedModel([*peeks, "done"])
    model: Any = reader  # Any: one, or one for each speaker
    if reasoner == "dual":
        orders = [f"<instruction>look at {at}</instruction><input>None</input>" for at in range(count)]
        reader = ScriptedModel([*orders, "TASK_DONE"])
        said = [one for at in range(count) for one in (peeks[at], f"report {at}")]
        model = {"thinker": reader, "actor": ScriptedModel([*said, "<deliverable>x</deliverable>\nTASK_DONE"])}
    agent = Agent(model, [peek], reasoner=reasoner, journal=MemoryJournal(), config=SMALL)
    assert (await agent.run("Look", run_id="r")).status == "completed"
    assert all(shown(reader, "BOB TOO")[1:])


async def test_what_a_step_is_told_counts_where_its_turns_are_left_out() -> None:
    step = PlanStep("s", "look at it", "agent", instruction="Look at all of these: " + "place " * 700)
    model = ScriptedModel([*looks(30), "done"])
    config = LoopConfig(context_tokens=2400)
    assert (await Agent(model, [look], config=config).run(Task("go", steps=(step,)))).status == "completed"
    for one in model.requests:
        told = sum(map(message_tokens, one.messages)) + text_tokens(one.system) + catalogue_tokens(one.tools)
        assert told <= 2400


async def test_long_arguments_that_had_to_be_repaired_are_folded() -> None:
    @tool(effect="read")
    def weigh(text: str) -> str:
        """Weigh a text."""
        return str(len(text))

    body = '{"text": "' + "\n".join(f"line {at} of the program" for at in range(60)) + '"}'
    sent = [
        ModelMessage("assistant", "", (NativeCall("a", "weigh", body.replace("program", str(at))),)) for at in range(14)
    ]
    model = ScriptedModel([*sent, "done"])
    run = await Agent(model, [weigh], config=LoopConfig(context_tokens=3000)).run("weigh")
    assert (run.status, run.calls) == ("completed", 14)


async def test_a_plan_follows_a_run_whose_turns_were_left_out() -> None:
    store = MemoryJournal()
    first = await Agent(ScriptedModel([*looks(30), "seen"]), [look], journal=store, config=SMALL).run("first")
    model = ScriptedModel([*looks(2, 100), "looked", "the answer"])
    step = PlanStep("s", "look", "agent", instruction="Look at item 100 and item 101.")
    agent = Agent(model, [look], reasoner="plan", journal=store, config=SMALL)
    assert (await agent.run(Task("second", steps=(step,)), history=first)).answer == "the answer"


async def test_what_an_overflow_said_of_one_model_holds_for_no_other() -> None:
    @tool(effect="read", name="look")
    def stare(n: int) -> str:
        """Look at an item for long."""
        return seen(n, 60)

    store = MemoryJournal()
    small = ScriptedModel([*looks(8), OVERFLOW, "seen"], name="test:small")
    first = await Agent(small, [stare], journal=store).run("first")
    big = ScriptedModel([*looks(8, 100), "done"], name="test:big", traits={"context_tokens": "100000"})
    assert (await Agent(big, [stare], journal=store).run("second", history=first)).answer == "done"
    sizes = [len(one.messages) for one in big.requests]
    assert sizes == sorted(sizes)


async def test_an_overflow_of_the_first_request_of_a_turn_is_tried_again_with_less() -> None:
    model = ScriptedModel(["a1", *looks(1), "a2", OVERFLOW, "a3"])
    agent = Agent(model, [look], journal=MemoryJournal())
    run = await agent.run("q2", history=await agent.run("q1"))
    assert (await agent.run("q3", history=run)).answer == "a3"


async def test_failures_of_a_polled_call_with_successes_between_are_not_in_a_row() -> None:
    asked = 0

    @tool(effect="read", polling=True)
    def job(number: int) -> str:
        """How a job goes."""
        nonlocal asked
        asked += 1
        if asked in (1, 4):
            raise ValueError(f"the status of job {number} could not be read")
        return f"running {asked}" if asked < 6 else "finished"

    run = await Agent(ScriptedModel([*[calls(("job", {"number": 7}))] * 7, "done"]), [job]).run("watch job 7")
    assert (run.status, asked) == ("completed", 7)
