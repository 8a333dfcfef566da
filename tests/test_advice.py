"""What a planned run asks a model about, asked alone; and pre-hydration on its own."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

import surefoot
from plan_kit import GIVE_UP, STOP, World, events_of, exchange, overall, retry, step
from surefoot.testing.models import FunctionModel, ScriptedModel
from surefoot.types.errors import TraitRefused
from surefoot.types.events import Event
from surefoot.types.ports import Tool
from surefoot.types.reflection import RetryWithAdjustedParams, SkipSteps

pytestmark = pytest.mark.anyio

PLAN = {"steps": [step("a", "look", q="x"), step("b", "send", ["a"], to="Ann", text="{{a.found}}")]}


async def failed() -> list[Event]:
    """A run whose second step has failed, and that nobody could mend."""
    agent = World({"send Ann about x": "tool:full"}).agent(PLAN, GIVE_UP, STOP, "Only x was found.")
    run = await agent.run("Look x up and write to Ann about it.", run_id="r")
    assert run.status == "stopped"
    return await events_of(agent)


async def test_tools_are_chosen_for_a_task_and_only_what_is_there() -> None:
    asked = ScriptedModel(["I would take look.", {"selected_tool_ids": ["look", "send"], "selection_confidence": 80}])
    chosen = await surefoot.select_relevant_tools("Look x up and write to Ann.", World().tools(), model=asked)
    assert (chosen.selected_tool_ids, chosen.selection_confidence) == (("look", "send"), 80)
    assert "Look something up." in asked.requests[0].messages[0].content
    assert asked.requests[1] != asked.requests[0]  # it is told what is wrong


async def test_what_an_endpoint_refuses_is_left_out_from_then_on() -> None:
    refused = TraitRefused("json_schema", "no", "response_format is not supported")
    asked = ScriptedModel([refused, "I would take look.", {"selected_tool_ids": ["look"], "selection_confidence": 80}])
    chosen = await surefoot.select_relevant_tools("Look x up.", World().tools(), model=asked)
    assert chosen.selected_tool_ids == ("look",)
    assert [one.mode for one in asked.requests] == ["schema", "text", "text"]
    with pytest.raises(TraitRefused):
        await surefoot.select_relevant_tools("Look x up.", World().tools(), model=ScriptedModel([refused, refused]))


async def test_a_failed_step_is_thought_about_and_what_came_before_is_refused() -> None:
    run = await failed()
    model = ScriptedModel([exchange("send", to="Ann", text="about x"), retry(to="Bea")])
    reflection = await surefoot.reflect_on_single_step(run, "b", model=model)
    assert isinstance(reflection.suggested_action, RetryWithAdjustedParams)
    assert reflection.adjusted_parameters == {"to": "Bea"}
    assert "tool full" in model.requests[0].messages[0].content
    with pytest.raises(surefoot.UsageError, match="step 'a' has not failed in this run; those that have: b"):
        await surefoot.reflect_on_single_step(run, "a", model=model)


async def test_a_whole_run_is_thought_about() -> None:
    model = ScriptedModel([overall("skip_steps", step_ids=["b"])])
    reflection = await surefoot.perform_overall_reflection(await failed(), model=model)
    assert (reflection.should_replan, reflection.replanning_strategy) == (True, SkipSteps(("b",)))
    fine = World().agent(PLAN, "Done.")
    await fine.run("Look x up and write to Ann about it.", run_id="r")
    with pytest.raises(surefoot.UsageError, match="no step of this run has failed"):
        await surefoot.perform_overall_reflection(await events_of(fine), model=model)


async def test_tools_are_chosen_anew_after_what_has_happened() -> None:
    model = ScriptedModel([{"selected_tool_ids": ["look", "find"]}])
    chosen = await surefoot.select_tools_for_replanning(await failed(), model=model)
    assert set(chosen.selected_tool_ids) >= {"look", "find"}
    assert chosen.changes_from_previous is not None
    assert "look" in chosen.changes_from_previous.kept_tools
    assert "tool full" in model.requests[0].messages[0].content


async def test_what_cannot_be_used_is_an_error() -> None:
    with pytest.raises(surefoot.ModelError, match="no reply of test:scripted could be used in 3 tries; the last one: "):
        await surefoot.select_relevant_tools("x", World().tools(), model=ScriptedModel(["no idea"] * 3))
    with pytest.raises(surefoot.UsageError, match="this run has no plan"):
        await surefoot.perform_overall_reflection([], model=ScriptedModel([]))
    assert FunctionModel(lambda _: "").requests == []


async def test_references_of_a_text_are_fetched_without_a_run() -> None:
    never = asyncio.Event()

    @surefoot.tool(effect="read")
    async def page(url: str) -> str:
        """Text of a page."""
        if "slow" in url:
            await never.wait()
        return f"what stands at {url}"

    config = surefoot.PreHydrationConfig(
        resolution_tools={"url": surefoot.Resolver("page", "url")}, reference_timeout=0.05
    )
    engine = surefoot.PreHydrationEngine([page], config)
    found = await engine.hydrate("Compare https://example.org/a and https://example.org/slow, please.")
    assert [one.ref.value for one in found.resolved] == ["https://example.org/a"]
    assert [one.ref.value for one in found.failed] == ["https://example.org/slow"]
    assert "what stands at https://example.org/a" in found.message
    assert (await engine.hydrate("Nothing here.")).message == ""

    async def broken(*_: object) -> object:
        raise ValueError("no such page")

    engine = surefoot.PreHydrationEngine([cast("Tool", SimpleNamespace(spec=page.spec, call=broken))], config)
    assert [one.error for one in (await engine.hydrate("https://e.org")).failed] == ["ValueError: no such page"]

    @surefoot.tool
    async def change(url: str) -> str:
        """Change a page."""
        return url

    with pytest.raises(surefoot.ConfigError, match="change"):
        surefoot.PreHydrationEngine(
            [change], surefoot.PreHydrationConfig(resolution_tools={"url": surefoot.Resolver("change", "url")})
        )


def test_a_profile_is_applied_by_hand() -> None:
    names = [surefoot.ToolSpec(name, "", {"type": "object"}) for name in ("web_get", "web_post", "shell")]
    assert surefoot.apply_profile(names, surefoot.ToolProfile(include=["web_*"], exclude=["*_post"])).visible == (
        "web_get",
    )
