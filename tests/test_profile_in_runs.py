"""A tool profile in a run: what it hides is not shown, not called, and told of. Source: spec/primitives.md, 1.6."""

import pytest

from surefoot import Agent, LoopConfig, MemoryJournal, tool
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.errors import ConfigError
from surefoot.types.events import CallJudged, ToolsSelected
from surefoot.types.messages import CallMode
from surefoot.types.profile import ToolProfile

pytestmark = pytest.mark.anyio

ran: list[str] = []


@tool(effect="read")
async def web_get(url: str) -> str:
    """Get a page."""
    ran.append("web_get")
    return url


@tool
async def shell(command: str) -> str:
    """Run a command."""
    ran.append("shell")
    return command


PROFILE = LoopConfig(tool_profile=ToolProfile(include=["web_*"]))


@pytest.mark.parametrize("mode", ["native", "text"])
async def test_a_hidden_tool_that_is_called_anyway_is_refused_and_never_runs(mode: CallMode) -> None:
    ran.clear()
    text = 'Action: shell\nAction Input: {"command": "ls"}'
    reply = calls(("shell", {"command": "ls"})) if mode == "native" else text
    model = ScriptedModel([reply, "done" if mode == "native" else "Final Answer: done"], modes=(mode,))
    store = MemoryJournal()
    run = await Agent(model, [web_get, shell], config=PROFILE, journal=store).run("go")
    assert (run.status, ran) == ("completed", [])
    records, _ = await store.read_recorded(run.id)
    events = [record.event for record in records]
    judged = next(event for event in events if isinstance(event, CallJudged))
    assert (judged.rule, judged.decision.kind) == ("profile", "deny")
    selected = next(event for event in events if isinstance(event, ToolsSelected))
    assert selected.visible == ("web_get", "read_result")
    assert [(name, stage) for name, stage, _ in selected.dropped] == [("shell", "include")]
    told = "\n".join(message.content for message in model.requests[1].messages)
    assert "refused: not in profile" in told
    assert "shell" not in model.requests[0].system


async def test_another_profile_counts_from_when_the_run_is_taken_up() -> None:
    store = MemoryJournal()
    first = ScriptedModel([calls(("web_get", {"url": "x"}))])
    run = await Agent(first, [web_get, shell], config=PROFILE, journal=store).run("go")
    assert run.status == "failed"
    again = ScriptedModel([calls(("shell", {"command": "ls"})), "done"])
    ran.clear()
    agent = Agent(again, [web_get, shell], journal=store)
    run = await agent.resume(run.id, config=LoopConfig(tool_profile=ToolProfile.permissive()))
    assert (run.status, ran) == ("completed", ["shell"])


def test_a_profile_that_cannot_be_kept_is_refused_when_the_agent_is_built() -> None:
    config = LoopConfig(tool_profile=ToolProfile(max_tools=0, pinned=["shell"]))
    with pytest.raises(ConfigError, match="pin fewer"):
        Agent(ScriptedModel([]), [web_get, shell], config=config)
