"""Runs that are longer than their window, through the front door: read again, resumed, in every reasoner and mode."""

import sys
from collections.abc import Mapping
from types import FrameType

import pytest

from records import shown_anew
from surefoot import Agent, Budget, CallMode, LoopConfig, MemoryJournal, ModelRequest, tool
from surefoot.core.loop.replay import replay
from surefoot.core.state.window import message_tokens
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.errors import ModelUnreachable

pytestmark = pytest.mark.anyio

STEPS = 24
FACT = "the key is under the third stone"
DONE = "<deliverable>\n<final_output>done</final_output>\n</deliverable>\nTASK_DONE"
CONFIG = LoopConfig(budget=Budget(max_steps=200), max_rounds=100, actor_steps=4, context_tokens=6_000)


@tool(effect="read")
async def hall(n: int) -> str:
    """What is in a hall."""
    return f"Hall {n}. {'stone ' * 500}{FACT if n == 2 else ''}{' moss' * 200}"


def step(mode: CallMode, name: str, n: int) -> Scripted:
    """A call as a step in that mode."""
    match mode:
        case "native":
            return calls((name, {"n": n}))
        case "schema":
            return f'{{"thought":"","action":"{name}","action_input":{{"n":{n}}}}}'
        case "text":
            return f'Thought: on\nAction: {name}\nAction Input: {{"n": {n}}}'


def walker(mode: CallMode, *, fails_at: int = 0) -> FunctionModel:
    """Walks from hall to hall; fails once where it is told to."""
    answer = '{"thought":"","action":"Final Answer","action_input":"done"}'
    said = [step(mode, "hall", n) for n in range(1, STEPS + 1)]
    said.append({"native": "done", "schema": answer, "text": "Thought: all seen\nFinal Answer: done"}[mode])
    if fails_at:
        said.insert(fails_at - 1, ModelUnreachable("down"))
    left = iter(said)
    return FunctionModel(lambda _: next(left), modes=(mode,))


def sizes(model: FunctionModel) -> list[int]:
    return [sum(map(message_tokens, request.messages)) for request in model.requests]


@pytest.mark.parametrize("mode", ["native", "schema", "text"])
async def test_every_request_of_a_long_run_fits_and_is_the_same_when_it_is_taken_up(mode: CallMode) -> None:
    whole = walker(mode)
    assert (await Agent(whole, [hall], config=CONFIG).run("Walk.")).answer == "done"
    assert max(sizes(whole)) < CONFIG.context_tokens  # type: ignore[operator]  # it is set above
    assert any("[folded: " in message.content for message in whole.requests[-1].messages)

    store, model = MemoryJournal(), walker(mode, fails_at=17)
    agent = Agent(model, [hall], config=CONFIG, journal=store)
    run = await agent.run("Walk.", run_id="r")
    assert run.status == "failed"
    run = await agent.resume("r")
    assert run.answer == "done"
    again = model.requests[:16] + model.requests[17:]
    assert [one.messages for one in again] == [one.messages for one in whole.requests]
    assert replay(await (await store.open("r")).read()).differs_at is None


@pytest.mark.parametrize("reasoner", ["react", "mono", "dual"])
async def test_in_another_process_each_role_is_shown_the_same(reasoner: str) -> None:
    def act(request: ModelRequest) -> Scripted:
        made["n"] += 1
        is_last = not request.tools.tools or made["n"] > STEPS
        if reasoner == "dual" and (is_last or made["n"] % 3 == 0):
            return DONE if "Deliver now" in request.messages[-1].content else f"report {made['n']} " + "moss " * 400
        return DONE if is_last else calls(("hall", {"n": made["n"]}))

    def think(_request: ModelRequest) -> Scripted:
        is_done = made["n"] > STEPS
        return "TASK_DONE" if is_done else f"<instruction>\nwalk on from {made['n']}\n</instruction>"

    made = {"n": 0}
    actor = FunctionModel(act, modes=("native",))
    thinker = FunctionModel(think, name="test:thinker", modes=("text",))
    models: Mapping[str, FunctionModel] = (
        {"thinker": thinker, "actor": actor} if reasoner == "dual" else {"solo": actor}
    )
    store = MemoryJournal()
    agent = Agent(models if reasoner == "dual" else actor, [hall], reasoner=reasoner, config=CONFIG, journal=store)
    run = await agent.run("Walk.", run_id="r")
    assert run.status == "completed"
    for model in models.values():
        assert max(sizes(model)) < 6_000
        assert any("[folded: " in message.content for message in model.requests[-1].messages)
    shown = shown_anew(await (await store.open("r")).read())
    for role, model in models.items():
        assert [told for one, told in shown if one == role] == [request.messages for request in model.requests]


async def test_what_was_folded_is_read_again_page_by_page_and_as_often_as_it_is_asked_for() -> None:
    step = 0
    pages = [("2.0", 0), ("2.0", 3_000), ("2.0", 0)]

    def reply(request: ModelRequest) -> Scripted:
        nonlocal step
        step += 1
        at = step - STEPS - 1
        if at > 0:
            seen.append(request.messages[-1].content)
        if at < 0:
            return calls(("hall", {"n": step}))
        return calls(("read_result", {"call_id": pages[at][0], "start": pages[at][1]})) if at < len(pages) else "done"

    seen: list[str] = []
    model = FunctionModel(reply, modes=("native",))
    run = await Agent(model, [hall], config=CONFIG).run("Walk.")
    assert run.answer == "done"
    assert "read_result" not in model.requests[1].tools.names
    assert "read_result" in model.requests[-1].tools.names
    first, second, again = seen
    assert first.startswith("Hall 2. stone")
    assert first.endswith("[characters 0 to 3000 of 4040]")
    assert FACT in second
    assert "made this call already" in again
    assert "Hall 2. stone" in again


class Counted:
    """Calls one read for ever, and counts how many calls Python makes about some of its steps."""

    def __init__(self, mode: CallMode, *at: int) -> None:
        self.made = dict.fromkeys(at, 0)
        self.step = 0
        self.mode: CallMode = mode

    def reply(self, _request: ModelRequest) -> Scripted:
        sys.setprofile(None)
        self.step += 1
        if self.step in self.made:
            sys.setprofile(self._count)
        return step(self.mode, "stone", self.step)

    def _count(self, _frame: FrameType, what: str, _arg: object) -> None:
        self.made[self.step] += what in ("call", "c_call")


@tool(effect="read")
async def stone(n: int) -> str:
    """What is under a stone."""
    if n % 2:
        raise ValueError(f"there is no stone {n * n}")
    return f"stone {n}"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["native", "schema", "text"])
async def test_without_a_window_a_late_step_does_no_more_than_an_early_one(mode: CallMode) -> None:
    early, late = 40, 440
    model = Counted(mode, early, late)
    config = LoopConfig(budget=Budget(max_steps=late + 2))
    run = await Agent(FunctionModel(model.reply, modes=(mode,)), [stone], config=config).run("Look under every stone.")
    assert run.reason == "steps"
    assert model.made[late] <= 1.3 * model.made[early]
