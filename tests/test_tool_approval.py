"""A tool that a person approves: each call, or the first of a run, with the gate or without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from surefoot import Agent, ConfigError, Declared, GuardConfig, LoopConfig, MemoryJournal, UsageError, tool
from surefoot.testing.models import ScriptedModel, calls

pytestmark = pytest.mark.anyio

ONE = calls(("ship", {"item": "lamp"}))
OTHER = calls(("ship", {"item": "desk"}))


@pytest.mark.parametrize("guard", [False, True, GuardConfig(mode="observe")])
@pytest.mark.parametrize(("approval", "asked"), [("always", 2), ("once", 1)])
@pytest.mark.parametrize("where", ["tool", "configuration"])
async def test_a_person_is_asked_about_each_call_or_the_first(
    guard: bool | GuardConfig, approval: Literal["always", "once"], asked: int, where: str
) -> None:
    shipped: list[str] = []

    @tool(approval=approval if where == "tool" else None)
    async def ship(item: str) -> str:
        shipped.append(item)
        return "on its way"

    config = LoopConfig()
    if where == "configuration":
        said = {"ship": Declared(approval=approval)}
        own = GuardConfig(mode="off") if guard is False else GuardConfig() if guard is True else guard
        guard, config = False, LoopConfig(guard=GuardConfig(mode=own.mode, declared=said))
    store = MemoryJournal()
    agent = Agent(ScriptedModel([ONE, OTHER, "Done."]), [ship], journal=store, config=config, guard=guard)
    run = await agent.run("Order the lamp and the desk.")
    questions = 0
    while run.status == "paused":
        assert "needs a person's approval" in str(run.waiting[0].decision)
        assert len(shipped) == questions
        questions += 1
        await agent.approve(run.id, run.waiting[0].id, by="Ann")
        run = await agent.resume(run.id)
    assert (run.status, questions, shipped) == ("completed", asked, ["lamp", "desk"])


async def test_a_no_is_told_to_the_model() -> None:
    @tool(approval="once")
    async def ship(item: str) -> str:
        return item

    model = ScriptedModel([ONE, "All right."])
    agent = Agent(model, [ship])
    run = await agent.run("Order the lamp.")
    await agent.refuse(run.id, run.waiting[0].id, by="Ann", reason="too dear")
    assert (await agent.resume(run.id)).answer == "All right."
    assert "refused by Ann: too dear" in model.requests[-1].messages[-1].content


async def test_a_run_and_its_questions_stand_for_their_ids() -> None:
    @tool(approval="always")
    async def ship(item: str) -> str:
        return item

    agent = Agent(ScriptedModel([calls(("ship", {"item": "lamp"}), ("ship", {"item": "desk"})), "Done."]), [ship])
    run = await agent.run("Order the lamp and the desk.")
    lamp, desk = run.waiting
    assert {run: "kept"}[run] == "kept"
    with pytest.raises(UsageError, match="is not the one that was shown"):
        await agent.approve(run, replace(lamp, arguments={"item": "yacht"}), by="Ann")
    await agent.approve(run, [lamp], by="Ann")
    await agent.refuse(await agent.note(run, "Be quick.", by="Ann"), desk, by="Ann")
    run = await agent.resume(run)
    assert (run.answer, (await agent.fork(run, 1)).status) == ("Done.", "failed")  # the script is at its end
    assert await agent.cancel(run, by="Ann") == run


async def test_what_is_neither_a_run_nor_a_text_is_told_by_its_name() -> None:
    """Whatever stands for a run, a call, or a person's words: no bare TypeError."""
    wrong: Any = 3
    agent = Agent(ScriptedModel(["Done."]))
    run = await agent.run("Hello")
    for resume in (
        agent.resume(wrong),
        agent.fork(wrong, 1),
        agent.cancel(wrong, by="Ann"),
        agent.run("Hi", run_id=wrong),
    ):
        with pytest.raises(UsageError, match="run_id=3: give a run"):
            await resume
    with pytest.raises(UsageError, match="history=3: give a run"):
        await agent.run("Hello", history=wrong)
    for field, said in (
        ("call_id", agent.approve(run, wrong, by="Ann")),
        ("call_id", agent.refuse(run, [wrong], by="Ann")),
        ("call_id", agent.settle(run, wrong, "done", by="Ann")),
        ("outcome", agent.settle(run, "1.0", wrong, by="Ann")),
        ("result", agent.settle(run, "1.0", "done", by="Ann", result=wrong)),
        ("reason", agent.refuse(run, "1.0", by="Ann", reason=wrong)),
        ("text", agent.note(run, wrong, by="Ann")),
        ("by", agent.cancel(run, by=wrong)),
        ("by", agent.resume(run, by=wrong)),
        ("config", agent.start("Hi", config=wrong)),
        ("attachments", agent.run("Hi", attachments=wrong)),
    ):
        with pytest.raises(ConfigError, match=f"^{field}=3: "):
            await said
    odd: Any = {"order": 17}  # a record of it could never be read again
    for begin in (
        agent.start("Hi", labels=odd),
        agent.start("Hi", labels=wrong),
        agent.start("Hi", request=wrong),
        agent.fork(run, 1, labels={wrong: ""}),
    ):
        with pytest.raises(UsageError, match="labels and request are texts"):
            await begin
    with pytest.raises(ConfigError, match="id=3"):
        agent.chat(wrong)
