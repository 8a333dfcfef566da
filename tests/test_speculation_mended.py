"""Direct turns count as steps, a branch answers for its own calls, and what runs is what was judged, in each try.

Every run here is replayed, and folded in parts. Source: spec/guard.md,
sections 3.4 and 3.5.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from records import events_of
from staged import EVIL, NO_OPINION, OWN, PAY, WORDS, Seen, World, branch, seen, staged_model, tree
from surefoot import Agent, Budget, GuardConfig, JournalError, LoopConfig, ModelRequest, PlanStep, Task, tool
from surefoot.core.state.roles import steps_so_far
from surefoot.journal.memory import MemoryJournal
from surefoot.testing.journals import CheckedJournal, Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.events import CallStarted, ModelReplied
from surefoot.types.guard_events import BranchRejected, HypothesesMade

pytestmark = pytest.mark.anyio

ON = GuardConfig(speculate=True)
DIRECT = replace(ON, direct=True)
Trees = str | Callable[[ModelRequest], str]


def model_of(steps: tuple[Scripted, ...], trees: Trees = NO_OPINION) -> FunctionModel:
    """A model whose reply depends on the request alone, so that it may be asked again."""

    def says(stage: str, request: ModelRequest) -> str:
        if stage != "hypotheses":
            return "no"
        return trees if isinstance(trees, str) else trees(request)

    return staged_model(steps, says)


def another_file(request: ModelRequest) -> str:
    """One more file to read, for ever."""
    text = request.messages[0].content
    done = text.partition("Done so far:")[2].count("[[end ")
    return tree(branch("read_file", {"path": f"f{done}x{text.count('bill')}.txt"}))


async def told(
    task: str | Task,
    steps: tuple[Scripted, ...],
    config: GuardConfig | LoopConfig,
    trees: Trees = NO_OPINION,
    world: World | None = None,
    **how: Any,
) -> Seen[World]:
    world, model, store = world or World(), model_of(steps, trees), MemoryJournal()
    loop = config if isinstance(config, LoopConfig) else LoopConfig(guard=config)
    agent = Agent(model, tools=world.tools(), journal=CheckedJournal(store), config=loop, **how)
    return await seen(agent, await agent.run(task), world, model, store)


def limited(most: int, **more: Any) -> LoopConfig:
    return LoopConfig(guard=DIRECT, budget=Budget(max_steps=most), **more)


@pytest.mark.parametrize(("most", "reads"), [(1, 1), (2, 1), (5, 4)])
async def test_direct_turns_count_as_steps_and_the_last_one_is_a_word(most: int, reads: int) -> None:
    made = await told("Read the bills.", ("the bills",) * 9, limited(most), another_file)
    assert len(made.world.done) == reads
    assert steps_so_far(made.state) == most
    assert made.run.reason == "steps"
    assert [e.want for e in made.of(ModelReplied)] == (["answer"] if most > 1 else [])  # one is kept for the last word
    assert (made.run.requests, made.run.answer) == (int(most > 1), "the bills" if most > 1 else "")
    assert len(made.of(HypothesesMade)) == reads


async def test_direct_turns_are_rounds_and_the_last_ones_are_told() -> None:
    words = ("<deliverable>the bills</deliverable>",) * 9
    config = LoopConfig(guard=DIRECT, max_rounds=4)
    made = await told("Read the bills.", words, config, another_file, reasoner="mono")
    assert (len(made.world.done), made.run.rounds) == (4, 4)
    assert [e.want for e in made.of(ModelReplied)] == ["answer"]
    assert [turn.wrap_up for turn in made.state.turns][-2:] == [0, 0]
    assert [turn.wrap_up for turn in made.state.turns][:3] == [0, 0, 1]


async def test_a_step_of_a_plan_has_its_own_count_and_a_given_plan_that_of_the_run() -> None:
    two = tuple(PlanStep(name, kind="agent", instruction="Read the bills.") for name in ("a", "b"))
    given = await told(Task("Read the bills.", steps=two), ("x",) * 9, limited(4), another_file)
    assert len(given.world.done) == 3
    assert steps_so_far(given.state) == 4
    whole = await told(Task("Read the bills.", steps=two), ("x",) * 9, limited(4), another_file, reasoner="plan")
    assert (len(whole.world.done), whole.run.reason) == (3, "llm_budget")  # the budget of the run is for all its steps
    own = tuple(replace(one, max_steps=4) for one in two)
    planned = await told(Task("Read the bills.", steps=own), ("x",) * 9, DIRECT, another_file, reasoner="plan")
    scopes = {event.call_id.rpartition(".")[0].rpartition(".")[0] for event in planned.of(CallStarted)}
    assert not scopes  # what a step does is inside of its events
    gate = planned.state.gate
    assert gate is not None
    assert {place: one.turns for place, one in gate.choosing.items()} == {"a.1": 3, "b.1": 3}
    assert len(planned.world.done) == 6


async def test_a_run_that_is_taken_up_goes_on_counting() -> None:
    whole = await told("Read the bills.", ("the bills",), limited(4), another_file)
    for at in (3, 5, 7):
        memory, world = MemoryJournal(), World()
        model = model_of(("the bills",) * 9, another_file)
        broken = Agent(
            model, tools=world.tools(), journal=CrashingStore(memory, at, "after", of=["append"]), config=limited(4)
        )
        with pytest.raises((Crash, JournalError)):
            await broken.run("Read the bills.", run_id="r")
        agent = Agent(model, tools=world.tools(), journal=CheckedJournal(memory), config=limited(4))
        made = await seen(agent, await agent.resume("r"), world, model, memory)
        assert (made.run.status, made.run.reason) == (whole.run.status, whole.run.reason)
        assert steps_so_far(made.state) == 4
        assert {*made.world.done} == {*whole.world.done}


async def test_what_was_recommended_is_no_step_of_its_own() -> None:
    config = LoopConfig(guard=ON, budget=Budget(max_steps=3))
    made = await told("Read bill.txt.", (calls(("read_file", {"path": "bill.txt"})), "a bill"), config)
    assert (steps_so_far(made.state), made.run.requests, made.run.status) == (2, 2, "completed")


async def test_each_try_of_a_call_gets_the_arguments_that_were_judged() -> None:
    got: list[object] = []

    @tool(effect="read")
    def look(names: list[str], about: dict[str, object]) -> str:
        """Look."""
        got.append(orjson.loads(orjson.dumps([names, about])))
        names.append("evil")
        about["deep"] = {"to": EVIL}
        if len(got) < 3:
            raise ConnectionError("not there")
        return "seen"

    store, model = MemoryJournal(), model_of((calls(("look", {"names": ["a"], "about": {"deep": {"to": "b"}}})), "x"))
    agent = Agent(model, tools=[look], journal=store, config=LoopConfig(guard=GuardConfig()))
    made = await seen(agent, await agent.run("Look at a and b."), World(), model, store)
    assert got == [[["a"], {"deep": {"to": "b"}}]] * 3
    (call,) = made.state.done[0].calls
    assert call.arguments == {"names": ["a"], "about": {"deep": {"to": "b"}}}


async def test_what_a_tool_does_to_its_arguments_is_not_asked_for_again() -> None:
    got: list[list[str]] = []

    @tool(effect="write")
    def keep(names: list[str]) -> str:
        """Keep names."""
        got.append(list(names))
        names.clear()
        return "kept"

    twice = calls(("keep", {"names": ["a"]}))
    store, model = MemoryJournal(), model_of((twice, twice, "x"))
    agent = Agent(model, tools=[keep], journal=store)
    made = await seen(agent, await agent.run("Keep a."), World(), model, store)
    assert got == [["a"]]  # the second is known: it is the very same call
    assert [call.arguments for turn in made.state.done for call in turn.calls] == [{"names": ["a"]}] * 2


async def test_a_probe_gets_arguments_of_its_own_too() -> None:
    asked: list[list[str]] = []

    def was_kept(names: list[str]) -> str:
        asked.append(list(names))
        names.append("evil")
        return "kept"

    @tool(effect="write", probe=was_kept)
    def keep(names: list[str]) -> str:
        """Keep names."""
        return f"kept {names}"

    store, model = MemoryJournal(), model_of((calls(("keep", {"names": ["a"]})), "x"))
    for at in range(1, 12):
        store = MemoryJournal()
        broken = CrashingStore(store, at, "after", of=["append"])
        with pytest.raises((Crash, JournalError)):
            await Agent(model, tools=[keep], journal=broken).run("Keep a.", run_id="r")
        events = await events_of(store, "r")
        if events and isinstance(events[-1], CallStarted):
            break
    agent = Agent(model, tools=[keep], journal=store)
    made = await seen(agent, await agent.resume("r"), World(), model, store)
    assert asked == [["a"]]
    assert made.state.done[0].calls[0].arguments == {"names": ["a"]}


TASK = f"Read bill.txt, then pay 900 to {OWN}."
GOOD = tree(branch(*PAY))


def until_paid(request: ModelRequest) -> str:
    return WORDS if "ok: paid" in request.messages[0].content else GOOD


async def test_a_call_with_other_arguments_is_not_held_against_the_branch() -> None:
    bad = calls(("pay", {"account": EVIL, "amount": 5}))
    made = await told(TASK, (bad, calls(PAY), "x"), replace(ON, approvals="deny"), until_paid)
    assert made.of(BranchRejected) == []
    assert [len(event.tree.branches) for event in made.of(HypothesesMade)] == [1, 1, 1]
    assert [event.dropped for event in made.of(HypothesesMade)] == [0, 0, 0]
    stages = [request for request in made.model.requests if request.system.startswith("You name the ways")]
    assert all("Refused or failed" not in request.messages[0].content for request in stages)
    assert made.world.done == [f"pay {OWN} 900"]


def deep(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [150, 500, 1_010, 5_000])
@pytest.mark.parametrize("place", ["arguments", "of no tool", "beside"])
async def test_a_reply_that_is_nested_too_deeply_gives_an_ordinary_step(levels: int, place: str) -> None:
    @tool(effect="read")
    def look(meta: dict[str, object]) -> str:
        """Look."""
        return f"seen {len(meta)}"

    inner = '{"a":' * levels + "1" + "}" * levels
    told_ = {
        "arguments": f'{{"tool_name":"look","argument_sets":[{{"meta":{inner}}}]}}',
        "of no tool": f'{{"tool_name":"else","argument_sets":[{{"meta":{inner}}}]}}',
        "beside": f'{{"tool_name":"look","argument_sets":[{{"meta":{{}}}}],"more":{inner}}}',
    }[place]
    store, model = MemoryJournal(), model_of((calls(("look", {"meta": {}})), "x"), f'{{"branches":[{told_}]}}')
    agent = Agent(model, tools=[look], journal=store, config=LoopConfig(guard=ON))
    made = await seen(agent, await agent.run("Look."), World(), model, store)
    assert (made.run.status, made.run.answer) == ("completed", "x")
    first = made.of(HypothesesMade)[0]
    assert len(first.tree.branches) == (levels == 150 and place != "of no tool")
    assert first.dropped == 1 - len(first.tree.branches) or first.asking.failure
