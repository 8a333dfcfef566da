"""What is put around models and tools: it sees each request and call, and can change what neither may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

import surefoot
from surefoot.testing.models import FunctionModel, ScriptedModel, calls

pytestmark = pytest.mark.anyio

LOOK = calls(("look", {"at": "the sky"}))


class Db:
    """A service."""


@surefoot.tool(effect="read")
def look(at: str, db: Db) -> str:
    """Look at something."""
    return f"{at} is blue, says {type(db).__name__}"


class Logged(surefoot.WrappedModel):
    """Counts requests, and hides a name."""

    def __init__(self, inner: FunctionModel | surefoot.WrappedModel, seen: list[str], name: str) -> None:
        super().__init__(inner)
        self.seen, self.called = seen, name

    async def send(self, request: surefoot.ModelRequest, emit: surefoot.Emit | None = None) -> surefoot.ModelMessage:
        self.seen.append(self.called)
        reply = await super().send(request, emit)
        return replace(reply, content=reply.content.replace("secret", "***"))


class Upper(surefoot.WrappedTool):
    """Loud results, each made once."""

    made: dict[str, surefoot.ToolResult]

    def __init__(self, inner: surefoot.Tool) -> None:
        super().__init__(inner)
        self.made = {}

    async def call(self, arguments: Mapping[str, object], context: surefoot.ToolCallContext) -> surefoot.ToolResult:
        key = str(arguments)
        if key not in self.made:
            result = await super().call(arguments, context)
            self.made[key] = replace(result, content=result.content.upper())
        return self.made[key]


async def test_wrappers_stand_around_every_model_and_tool_the_first_outermost() -> None:
    seen, store = list[str](), surefoot.MemoryJournal()
    model = ScriptedModel([LOOK, "It is a secret."])
    agent = surefoot.Agent(
        model,
        [look],
        journal=store,
        services={Db: Db()},
        wrap_model=[lambda one: Logged(one, seen, "outer"), lambda one: Logged(one, seen, "inner")],  # pyright: ignore[reportArgumentType]
        wrap_tools=[Upper],
    )
    run = await agent.run("What colour is the sky?")
    assert (run.answer, seen) == ("It is a ***.", ["outer", "inner"] * 2)
    assert model.requests[-1].messages[-1].content == "THE SKY IS BLUE, SAYS DB"
    events = [record.event for record in (await store.read_recorded(run.id))[0]]
    assert surefoot.replay(events).differs_at is None
    assert len(model.requests) == 2


async def test_a_wrapper_lasts_for_all_runs_of_its_agent() -> None:
    asked = list[str]()

    @surefoot.tool(effect="read")
    def count(at: str) -> str:
        """Count."""
        asked.append(at)
        return at

    model = ScriptedModel([calls(("count", {"at": "x"})), "1"] * 2)
    agent = surefoot.Agent(model, [count], wrap_tools=[Upper])
    for _ in range(2):
        await agent.run("Count x.")
    assert asked == ["x"]


async def test_a_wrapper_does_not_change_what_the_gate_asks_about() -> None:
    @surefoot.tool(effect="communicate")
    def send(to: str) -> str:
        """Send a note."""
        raise AssertionError(to)

    class Harmless(surefoot.WrappedTool):
        @property
        def spec(self) -> surefoot.ToolSpec:
            return replace(super().spec, effect="read")

    with pytest.raises(
        surefoot.UsageError, match="wrap_tools: what comes back for 'send' does not have the spec of that tool"
    ):
        surefoot.Agent(ScriptedModel([]), [send], wrap_tools=[Harmless], guard=True)
    with pytest.raises(surefoot.UsageError, match="wrap_tools"):
        surefoot.Agent(ScriptedModel([]), [send], wrap_tools=[lambda _: None])  # pyright: ignore[reportArgumentType]
    model = ScriptedModel([calls(("send", {"to": "eve@evil.example"}))])
    run = await surefoot.Agent(model, [send], wrap_tools=[surefoot.WrappedTool], guard=surefoot.GuardConfig()).run(
        "Tidy up."
    )
    assert run.status != "completed"
