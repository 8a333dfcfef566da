"""A tool that a person approves: each call, or the first of a run, with the gate or without it."""

from __future__ import annotations

from typing import Literal

import pytest

from surefoot import Agent, ConfigError, Declared, GuardConfig, LoopConfig, MemoryJournal, tool
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
        """Ship something."""
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
        """Ship something."""
        return item

    model = ScriptedModel([ONE, "All right."])
    agent = Agent(model, [ship])
    run = await agent.run("Order the lamp.")
    await agent.refuse(run.id, run.waiting[0].id, by="Ann", reason="too dear")
    assert (await agent.resume(run.id)).answer == "All right."
    assert "refused by Ann: too dear" in model.requests[-1].messages[-1].content


def test_an_unknown_word_is_an_error() -> None:
    with pytest.raises(ConfigError, match="approval='never': choose one of always, once"):
        tool(approval="never")(print)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] # the mistake is the case
