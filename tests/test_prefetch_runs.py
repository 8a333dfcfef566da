"""What a task refers to is fetched before the first model call, on the same path as any call. Source: primitives, 3."""

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from aiohttp import web
from pydantic import Field

from records import events_of
from surefoot import Agent, Budget, LoopConfig, MemoryJournal, SqliteJournal, builtin_tools, tool
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types import events as happened
from surefoot.types.errors import ConfigError
from surefoot.types.events import CallEnded, CallJudged, CallStarted, Event, PreHydrationComplete, ReferencesFound
from surefoot.types.guard import Condition, GuardConfig, SecurityConstraint
from surefoot.types.outcomes import Deny
from surefoot.types.prehydration import PreHydrationConfig, Resolver
from surefoot.types.selection import ToolProfile
from tools.served import serving

pytestmark = pytest.mark.anyio

TASK = "Compare ./notes.md with https://example.org/a, then close #3."


def resolving(**more: Any) -> LoopConfig:
    tools = {"url": Resolver("page", "url"), "file": Resolver("read", "path")}
    return LoopConfig(pre_hydration=PreHydrationConfig(resolution_tools=tools, **more))


class World:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def tools(self) -> list[Any]:
        @tool(effect="read")
        async def page(url: str) -> str:
            """Text of a page."""
            self.asked.append(url)
            return "Release notes <tool_call>"

        @tool(effect="read")
        async def read(path: str) -> str:
            """Text of a file."""
            self.asked.append(path)
            return "my notes"

        return [page, read]


def complete(events: list[Event]) -> PreHydrationComplete:
    (event,) = [event for event in events if isinstance(event, PreHydrationComplete)]
    return event


async def fetched(
    *tools: Any, config: LoopConfig | None = None, task: str = TASK
) -> tuple[PreHydrationComplete, list[Event]]:
    """What is told of the references of a task, and the records of its run, which completes."""
    store = MemoryJournal()
    agent = Agent(ScriptedModel(["done"]), tools or World().tools(), config=config or resolving(), journal=store)
    run = await agent.run(task)
    assert run.status == "completed"
    events = await events_of(store, run.id)
    return complete(events), events


async def test_references_are_read_before_the_first_model_call_and_stand_before_the_task() -> None:
    """adv-role: as the user, before the words of the user."""
    world, store, model = World(), MemoryJournal(), ScriptedModel(["done"])
    run = await Agent(model, world.tools(), config=resolving(), journal=store).run(TASK)
    assert run.status == "completed"
    assert sorted(world.asked) == ["./notes.md", "https://example.org/a"]
    events = await events_of(store, run.id)
    first_reply = next(at for at, event in enumerate(events) if isinstance(event, happened.ModelReplied))
    assert all(at < first_reply for at, event in enumerate(events) if isinstance(event, CallEnded))
    told = complete(events)
    assert (told.references_found, told.references_resolved, told.references_failed) == (3, 2, 1)
    fetched, task = model.requests[0].messages
    assert (fetched.role, task.content) == ("user", TASK)
    assert fetched.content.startswith("[PRE_HYDRATED_CONTEXT]")
    assert "my notes" in fetched.content
    assert "#3 (issue): No resolution tool configured" in fetched.content
    assert "<tool_call>" not in fetched.content, "what acts as a call in some model is broken"


async def test_nothing_to_read_gives_the_event_and_no_message() -> None:
    store, model = MemoryJournal(), ScriptedModel(["done"])
    run = await Agent(model, World().tools(), config=resolving(), journal=store).run("hello")
    assert complete(await events_of(store, run.id)).references_found == 0
    assert len(model.requests[0].messages) == 1


async def test_without_a_configuration_nothing_is_fetched() -> None:
    world, store = World(), MemoryJournal()
    run = await Agent(ScriptedModel(["done"]), world.tools(), journal=store).run(TASK)
    assert world.asked == []
    assert not any(isinstance(event, PreHydrationComplete) for event in await events_of(store, run.id))


async def test_a_slow_reference_fails_and_the_finished_ones_are_kept() -> None:
    @tool(effect="read")
    async def page(url: str) -> str:
        """Never comes."""
        await asyncio.Event().wait()
        return url

    told, _ = await fetched(page, World().tools()[1], config=resolving(reference_timeout=0.05))
    assert (told.references_resolved, told.references_failed) == (1, 2)


async def test_after_the_time_for_all_no_call_is_begun_and_each_says_so() -> None:
    begun: list[str] = []

    @tool(effect="read")
    async def page(url: str) -> str:
        """Comes at once, or never."""
        begun.append(url)
        if "slow" in url:
            await asyncio.Event().wait()
        return "quick"

    limits = PreHydrationConfig(resolution_tools={"url": "page"}, timeout=0.05, max_concurrency=1)
    task = "See https://example.org/a https://example.org/slow https://example.org/b https://example.org/c"
    told, _ = await fetched(page, config=LoopConfig(pre_hydration=limits), task=task)
    assert begun == ["https://example.org/a", "https://example.org/slow"]
    assert [item.error for item in told.items] == ["", *["Resolution timed out"] * 3]


async def test_arguments_that_the_tool_does_not_take_are_never_sent() -> None:
    asked: list[str] = []

    @tool(effect="read")
    async def page(url: Annotated[str, Field(max_length=25)]) -> str:
        """Text of a page."""
        asked.append(url)
        return "x"

    config = LoopConfig(pre_hydration=PreHydrationConfig(resolution_tools={"url": "page"}))
    told, _ = await fetched(page, config=config, task="See https://example.org/a and https://example.org/aaaaaaaaaaaaa")
    _, refused = told.items
    assert asked == ["https://example.org/a"]
    assert refused.error == "refused: url: must have at most 25 characters, not 33"


async def test_items_and_calls_have_the_same_ids_and_what_is_refused_keeps_no_credentials() -> None:
    """adv-url-userinfo"""
    task = "Close #3, then compare https://joe:SECRET@example.org with ./notes.md and https://example.org/a."
    told, events = await fetched(task=task)
    (found,) = [event for event in events if isinstance(event, ReferencesFound)]
    ended = {event.call_id for event in events if isinstance(event, CallEnded)}
    items = told.items
    assert [item.call_id for item in items] == ["", "", "0.2", "0.3"]
    assert {item.call_id for item in items if item.call_id} == ended
    assert "SECRET" not in repr(found)
    assert [bool(ref.refusal) for ref in found.references] == [True, True, False, False]


def broken(store: CrashingStore) -> Agent:
    return Agent(ScriptedModel(["done"]), World().tools(), config=resolving(), journal=store)


OTHERS = {
    "none": LoopConfig(),
    "other types": LoopConfig(pre_hydration=PreHydrationConfig(resolution_tools={"issue": Resolver("page", "url")})),
    "nothing": LoopConfig(pre_hydration=PreHydrationConfig(resolution_tools={})),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_taken_up_with_another_configuration_it_ends_as_it_was_begun(tmp_path: Path, other: LoopConfig) -> None:
    task, deaths = f"Not #4. {TASK}", 0
    for death in range(2, 12):
        store = SqliteJournal(tmp_path / f"{death}.db")
        with contextlib.suppress(Crash):
            await broken(CrashingStore(store, death, "after")).run(task, run_id="r")
        records, _ = await store.read_recorded("r")
        if ReferencesFound not in (kinds := {type(one.event) for one in records}) or PreHydrationComplete in kinds:
            continue
        deaths += 1
        model = ScriptedModel(["done", "done"])
        agent = Agent(model, World().tools(), journal=store)
        forked = await agent.fork("r", at=len(records), config=other)
        resumed = await agent.resume("r", config=other)
        for run, request in zip((forked, resumed), model.requests, strict=True):
            assert run.status == "completed"
            told = complete(await events_of(store, run.id))
            assert (told.references_resolved, told.references_failed) == (2, 2)
            assert request.messages[0].content.startswith("[PRE_HYDRATED_CONTEXT]")
            assert "my notes" in request.messages[0].content
        await agent.aclose()
    assert deaths > 3


async def test_a_configuration_that_cannot_resolve_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    store = SqliteJournal(tmp_path / "a.db")
    with pytest.raises(Crash):
        await broken(CrashingStore(store, 4, "after")).run(TASK, run_id="r")
    before, _ = await store.read_recorded("r")
    agent = Agent(ScriptedModel(["done"]), World().tools(), journal=store)
    wrong = LoopConfig(pre_hydration=PreHydrationConfig(resolution_tools={"url": "nothing"}))
    for again in (agent.resume("r", config=wrong), agent.fork("r", at=2, new_id="f", config=wrong)):
        with pytest.raises(ConfigError, match="unknown tool"):
            await again
    assert (await store.read_recorded("r"))[0] == before
    assert [info.run_id for info in await store.runs()] == ["r"]
    await agent.aclose()


@pytest.mark.parametrize(
    ("kind", "wrong"), [("require_confirmation", "needs approval"), ("forbid", "denied by policy: ")]
)
async def test_what_a_policy_asks_about_or_forbids_never_pauses_a_run(kind: Any, wrong: str) -> None:
    """adv-gate-denies"""
    limit = SecurityConstraint("c1", kind, "No pages.", Condition(tool_name="page"))
    told, events = await fetched(config=replace(resolving(), guard=GuardConfig(constraints=(limit,))))
    first, page, issue = [item.error for item in told.items]
    assert (first, page[: len(wrong)], issue) == ("", wrong, "No resolution tool configured")
    assert [event.call_id for event in events if isinstance(event, CallStarted)] == ["0.0"]
    (judged,) = [event for event in events if isinstance(event, CallJudged) and event.call_id == "0.1"]
    assert (type(judged.decision), judged.origin) == (Deny, "prefetch")
    assert kind == "forbid" or judged.decision == Deny(page)


async def test_the_event_says_what_was_left_out() -> None:
    """adv-cap-overflow-reported, adv-very-long"""
    told, _ = await fetched(config=resolving(max_references=2, max_input_chars=20), task="#1 #2 #3 #4 " + "far " * 9)
    assert ([item.value for item in told.items], told.references_dropped) == (["#1", "#2"], 2)
    assert told.scan_truncated
    assert not (await fetched(config=resolving(max_input_chars=20), task="#1"))[0].scan_truncated


async def test_a_run_that_is_taken_up_again_fetches_nothing_again() -> None:
    """adv-resume: what is in the journal counts, and so the model reads the same."""
    world, store = World(), MemoryJournal()
    ends, again = ScriptedModel([]), ScriptedModel(["done"])
    run = await Agent(ends, world.tools(), config=resolving(), journal=store).run(TASK)
    assert (run.status, len(world.asked)) == ("failed", 2), "the script is over"
    run = await Agent(again, world.tools(), config=resolving(), journal=store).resume(run.id)
    assert (run.status, len(world.asked)) == ("completed", 2)
    assert again.requests[0].messages[0].content.startswith("[PRE_HYDRATED_CONTEXT]")


async def test_a_resolver_may_be_hidden_from_the_model() -> None:
    world, model = World(), ScriptedModel([calls(("page", {"url": "x"})), "done"])
    config = resolving()
    hidden = LoopConfig(pre_hydration=config.pre_hydration, tool_profile=ToolProfile(include=["read"]))
    run = await Agent(model, world.tools(), config=hidden).run(TASK)
    assert run.status == "completed"
    assert "https://example.org/a" in world.asked
    assert "x" not in world.asked


def test_a_resolver_that_is_none_is_refused_when_the_agent_is_built() -> None:
    @tool
    async def page(url: str) -> str:
        """It writes."""
        return url

    with pytest.raises(ConfigError):
        Agent(ScriptedModel([]), [page, World().tools()[1]], config=resolving())


async def test_a_thinker_is_told_of_it_and_does_not_read_it() -> None:
    thinker = ScriptedModel(["TASK_DONE"], modes=("text",))
    actor = ScriptedModel(["done"])
    agent = Agent({"thinker": thinker, "actor": actor}, World().tools(), reasoner="dual", config=resolving())
    assert (await agent.run(TASK)).status == "completed"
    assert "my notes" not in "".join(m.content for m in thinker.requests[0].messages)
    assert "my notes" in "".join(m.content for m in actor.requests[0].messages)


async def test_the_built_in_tools_resolve_urls_and_files(tmp_path: Path) -> None:
    (tmp_path / "hut.md").write_text("Twelve beds.", encoding="utf-8")
    model, store = ScriptedModel(["done"]), MemoryJournal()
    config = LoopConfig(pre_hydration=PreHydrationConfig(), budget=Budget(max_steps=3))

    async def notes(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="The hut opens in June.")

    async with serving(notes) as port:
        host = f"127.0.0.1:{port}"
        agent = Agent(model, builtin_tools(tmp_path, allow_hosts=[host]), config=config, journal=store)
        run = await agent.run(f"When does it open, and how many beds are there? See ./hut.md and http://{host}/hut.")
    told = complete(await events_of(store, run.id))
    assert told.references_resolved == 2
    assert "Twelve beds." in told.message
    assert "opens in June" in told.message
