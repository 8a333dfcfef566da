"""A tool profile in a run: what it hides is not shown, not called, and told of. Source: spec/primitives.md, 1.6."""

import json
from dataclasses import replace
from unicodedata import normalize

import pytest

from records import events_of
from surefoot import Agent, LoopConfig, MemoryJournal, tool
from surefoot.core.select.profile import digest_of_tool
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.errors import ConfigError
from surefoot.types.events import CallJudged, ToolsSelected
from surefoot.types.messages import CallMode, ModelMessage, NativeCall
from surefoot.types.prehydration import PreHydrationConfig
from surefoot.types.selection import ToolProfile

pytestmark = pytest.mark.anyio

ran: list[str] = []


@tool(effect="read")
async def web_get(url: str) -> str:
    ran.append("web_get")
    return url


@tool
async def shell(command: str) -> str:
    ran.append("shell")
    return command


PROFILE = LoopConfig(tool_profile=ToolProfile(include=["web_*"]))


@pytest.mark.parametrize("mode", ["native", "text"])
async def test_a_hidden_tool_that_is_called_anyway_is_refused_and_never_runs(mode: CallMode) -> None:
    """adv-hidden-tool-called"""
    ran.clear()
    text = 'Action: shell\nAction Input: {"command": "ls"}'
    reply = calls(("shell", {"command": "ls"})) if mode == "native" else text
    model = ScriptedModel([reply, "done" if mode == "native" else "Final Answer: done"], modes=(mode,))
    store = MemoryJournal()
    run = await Agent(model, [web_get, shell], config=PROFILE, journal=store).run("go")
    assert (run.status, ran) == ("completed", [])
    events = await events_of(store, run.id)
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


async def test_verified_tools_are_those_marked_or_pinned_as_they_are() -> None:
    @tool(effect="read", verified=True)
    async def marked() -> str:
        return "marked"

    pinned = {"web_get": digest_of_tool(web_get.spec), "shell": digest_of_tool(replace(web_get.spec, name="shell"))}
    config = LoopConfig(tool_profile=ToolProfile(require_verified=True, digests=pinned))
    store, model = MemoryJournal(), ScriptedModel(["done"])
    run = await Agent(model, [web_get, shell, marked], config=config, journal=store).run("go")
    assert run.status == "completed"
    selected = next(one for one in await events_of(store, run.id) if isinstance(one, ToolsSelected))
    assert selected.visible == ("web_get", "marked", "read_result")
    assert selected.dropped == (("shell", "verified", "the tool has changed since it was pinned"),)
    assert selected.warnings == ("not verified, because changed since pinned: 'shell'",)


@pytest.mark.parametrize("arguments", [{}, {"command": "ls", "more": 1}, "no JSON"])
async def test_a_hidden_tool_called_with_bad_arguments_is_refused_without_a_word_of_its_schema(
    arguments: dict[str, object] | str,
) -> None:
    store = MemoryJournal()
    reply = ModelMessage("assistant", calls=(NativeCall("id", "shell", arguments),), finish_reason="tool_calls")
    model = ScriptedModel([reply, "done"])
    run = await Agent(model, [web_get, shell], config=PROFILE, journal=store).run("go")
    assert run.status == "completed"
    judged = [event for event in await events_of(store, run.id) if isinstance(event, CallJudged)]
    assert [event.rule for event in judged] == ["profile"]
    told = model.requests[1].messages
    assert "not in profile" in told[-1].content
    assert "command" not in told[-1].content
    assert isinstance(json.loads(str(told[-2].calls[0].arguments)), dict)


async def test_a_configuration_without_a_profile_lifts_it() -> None:
    store, ask = MemoryJournal(), calls(("shell", {"command": "ls"}))
    run = await Agent(ScriptedModel([calls(("web_get", {}))]), [web_get, shell], config=PROFILE, journal=store).run(
        "go"
    )
    ran.clear()
    again = Agent(ScriptedModel([ask, "done", ask, "done"]), [web_get, shell], journal=store)
    await again.fork(run.id, 2, new_id="forked", config=LoopConfig())
    await again.resume(run.id, config=LoopConfig())
    assert ran == ["shell", "shell"]
    for run_id in (run.id, "forked"):
        await events_of(store, run_id)


async def test_a_fork_keeps_the_profile_even_of_a_run_that_had_not_selected_yet() -> None:
    store = MemoryJournal()
    run = await Agent(ScriptedModel(["done"]), [web_get, shell], config=PROFILE, journal=store).run("go")
    ran.clear()
    model = ScriptedModel([calls(("shell", {"command": "ls"})), "done"])
    await Agent(model, [web_get, shell], journal=store).fork(run.id, 1, new_id="forked")
    assert ran == []


async def test_a_fork_that_is_refused_leaves_no_run() -> None:
    store = MemoryJournal()
    agent = Agent(ScriptedModel(["done"]), [web_get, shell], journal=store)
    run = await agent.run("go")
    impossible = LoopConfig(tool_profile=ToolProfile(max_tools=0, pinned=["shell"]))
    with pytest.raises(ConfigError, match="pin fewer"):
        await agent.fork(run.id, 1, new_id="forked", config=impossible)
    assert [summary.run_id for summary in await store.runs()] == [run.id]


def test_no_setting_can_force_a_tool_that_the_profile_hides() -> None:
    """adv-tool-choice-hidden: there is no forced choice, so it cannot be written."""
    with pytest.raises(ConfigError, match="tool_choice"):
        LoopConfig(tool_profile=ToolProfile(include=["a"]), tool_choice="b")  # type: ignore[call-arg]  # that is asked


async def test_more_drops_than_are_named_are_told_of_and_so_is_a_hidden_resolver() -> None:
    """adv-tool-profile-hides-resolver"""

    def made(name: str) -> object:
        async def fetch(url: str) -> str:
            return url

        return tool(fetch, effect="read", name=name)

    tools = [made("web_fetch"), *(made(f"tool_{number}") for number in range(150))]
    config = LoopConfig(tool_profile=ToolProfile(include=["web_get"]), pre_hydration=PreHydrationConfig())
    store = MemoryJournal()
    run = await Agent(ScriptedModel(["done"]), [web_get, *tools], config=config, journal=store).run("go")  # type: ignore[list-item]
    (selected,) = [event for event in await events_of(store, run.id) if isinstance(event, ToolsSelected)]
    assert (len(selected.dropped), selected.counts["include"]) == (100, 151)
    assert any("51 more tools" in warning for warning in selected.warnings)
    assert any("web_fetch" in warning for warning in selected.warnings)


async def test_a_name_is_kept_in_one_form_with_and_without_a_profile() -> None:
    @tool(effect="read", name=normalize("NFD", "café"))
    async def cafe() -> str:
        ran.append("cafe")
        return "coffee"

    ran.clear()
    for config in (LoopConfig(), LoopConfig(tool_profile=ToolProfile(include=["caf*"]))):
        model = ScriptedModel([calls((normalize("NFC", "café"), {})), "done"])
        run = await Agent(model, [web_get, cafe], config=config).run("go")
        assert run.status == "completed"
    assert ran == ["cafe", "cafe"]


async def test_what_prefetch_asks_for_is_told_from_what_the_model_asks_for() -> None:
    config = LoopConfig(pre_hydration=PreHydrationConfig(resolution_tools={"url": "web_get"}))
    store, model = MemoryJournal(), ScriptedModel([calls(("web_get", {"url": "y"})), "done"])
    run = await Agent(model, [web_get], config=config, journal=store).run("see https://example.org/a")
    judged = [event for event in await events_of(store, run.id) if isinstance(event, CallJudged)]
    assert [event.origin for event in judged] == ["prefetch", "model"]
