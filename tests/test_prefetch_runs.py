"""What a task refers to is fetched before the first model call, on the same path as any call. Source: primitives, 3."""

import asyncio
import contextlib
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import pytest

from surefoot import Agent, Budget, LoopConfig, MemoryJournal, SqliteJournal, builtin_tools, tool
from surefoot.core.replay import replay
from surefoot.testing.journals import CheckedJournal, Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.types.errors import ConfigError
from surefoot.types.events import CallEnded, Event, ModelReplied, PreHydrationComplete
from surefoot.types.messages import ModelRequest
from surefoot.types.ports import JournalStore
from surefoot.types.prehydration import PreHydrationConfig, Resolver
from surefoot.types.profile import ToolProfile

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


async def events_of(store: JournalStore, run_id: str) -> list[Event]:
    records, wrong = await store.read_recorded(run_id)
    assert wrong == ""
    events = [record.event for record in records]
    assert replay(events).differs_at is None
    return events


def complete(events: list[Event]) -> PreHydrationComplete:
    (event,) = [event for event in events if isinstance(event, PreHydrationComplete)]
    return event


async def test_references_are_read_before_the_first_model_call_and_stand_before_the_task() -> None:
    world, store, model = World(), MemoryJournal(), ScriptedModel(["done"])
    run = await Agent(model, world.tools(), config=resolving(), journal=store).run(TASK)
    assert run.status == "completed"
    assert sorted(world.asked) == ["./notes.md", "https://example.org/a"]
    events = await events_of(store, run.id)
    first_reply = next(at for at, event in enumerate(events) if isinstance(event, ModelReplied))
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

    world, store, model = World(), MemoryJournal(), ScriptedModel(["done"])
    tools = [page, world.tools()[1]]
    run = await Agent(model, tools, config=resolving(reference_timeout=0.05), journal=store).run(TASK)
    told = complete(await events_of(store, run.id))
    assert (run.status, told.references_resolved, told.references_failed) == ("completed", 1, 2)


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


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_crash_at_any_append_changes_nothing(tmp_path: Path, when: Literal["before", "after"]) -> None:
    def model() -> FunctionModel:
        def reply(request: ModelRequest) -> Scripted:
            return "done" if "my notes" in request.messages[0].content else "nothing was fetched"

        return FunctionModel(reply)

    counting = CrashingStore(MemoryJournal(), 0, "before")
    await Agent(model(), World().tools(), config=resolving(), journal=counting).run(TASK)
    for death in range(2, counting.appends + 1):
        path = tmp_path / f"{death}.db"
        broken = CrashingStore(CheckedJournal(SqliteJournal(path)), death, when)
        with pytest.raises(Crash):
            await Agent(model(), World().tools(), config=resolving(), journal=broken).run(TASK, run_id="r")
        store = SqliteJournal(path)
        agent = Agent(model(), World().tools(), config=resolving(), journal=store)
        run = await (agent.resume("r") if await store.runs() else agent.run(TASK, run_id="r"))
        assert (run.status, run.answer) == ("completed", "done"), death
        complete(await events_of(store, "r"))
        await agent.aclose()


class _Notes(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"The hut opens in June.")

    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # nothing of it is used
        """Say nothing on stderr."""


@contextlib.contextmanager
def serving() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Notes)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


async def test_the_built_in_tools_resolve_urls_and_files(tmp_path: Path) -> None:
    (tmp_path / "hut.md").write_text("Twelve beds.", encoding="utf-8")
    model, store = ScriptedModel(["done"]), MemoryJournal()
    config = LoopConfig(pre_hydration=PreHydrationConfig(), budget=Budget(max_steps=3))
    with serving() as host:
        agent = Agent(model, builtin_tools(tmp_path, allow_hosts=[host]), config=config, journal=store)
        run = await agent.run(f"When does it open, and how many beds are there? See ./hut.md and http://{host}/hut.")
    told = complete(await events_of(store, run.id))
    assert told.references_resolved == 2
    assert "Twelve beds." in told.message
    assert "opens in June" in told.message
