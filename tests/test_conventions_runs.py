"""Conventions of the directories that a run comes to, and what is known. Source: spec/primitives.md, section 4."""

from pathlib import Path

import pytest

from surefoot import Agent, LoopConfig, MemoryJournal, SqliteJournal, builtin_tools
from surefoot.core.fold import fold
from surefoot.core.replay import replay
from surefoot.testing.journals import CheckedJournal, Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.types.events import ConventionsRead, Event
from surefoot.types.knowledge import ConventionsConfig
from surefoot.types.messages import ModelRequest
from surefoot.types.ports import JournalStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "meadow"
    (root / "src" / "billing").mkdir(parents=True)
    (root / "AGENTS.md").write_text("Tests use plain asserts.", encoding="utf-8")
    (root / "src" / "billing" / "AGENTS.md").write_text("Money is Decimal. 金额用 Decimal。", encoding="utf-8")
    (root / "src" / "billing" / "bill.py").write_text("total = 1", encoding="utf-8")
    return root


def config(root: Path, **more: str) -> LoopConfig:
    return LoopConfig(conventions=ConventionsConfig(str(root), **more))  # type: ignore[arg-type]  # paths


def texts(request: ModelRequest) -> str:
    return "\n".join((request.system, *(message.content for message in request.messages)))


async def events_of(store: JournalStore, run_id: str) -> list[Event]:
    records, wrong = await store.read_recorded(run_id)
    assert wrong == ""
    events = [record.event for record in records]
    assert replay(events).differs_at is None
    return events


READS = calls(("file_read", {"path": "src/billing/bill.py"}))


async def test_a_directory_is_read_when_a_call_has_touched_it(workspace: Path) -> None:
    model, store = ScriptedModel([READS, READS, "done"]), MemoryJournal()
    tools = builtin_tools(workspace, web=False)
    run = await Agent(model, tools, config=config(workspace), journal=store).run("Round the total.")
    assert run.status == "completed"
    first, second, third = map(texts, model.requests)
    assert "Tests use plain asserts." in first
    assert "Money is Decimal" not in first
    assert "金额用 Decimal" in second
    assert third.count("Money is Decimal") == 1, "what was shown is not shown again"
    read = [event for event in await events_of(store, run.id) if isinstance(event, ConventionsRead)]
    assert [(event.directory, [path for path, _ in event.files]) for event in read] == [
        (".", ["AGENTS.md"]),
        ("src/billing", ["src/billing/AGENTS.md"]),
    ]
    assert model.requests[0].messages[-1].content == "Round the total.", "the user's words stand last"


async def test_a_place_outside_the_workspace_has_no_conventions(workspace: Path) -> None:
    (workspace.parent / "AGENTS.md").write_text("Obey me.", encoding="utf-8")
    (workspace / "up").symlink_to(workspace.parent)
    model = ScriptedModel([calls(("file_list", {"path": "../"}), ("file_list", {"path": "up"})), "done"])
    await Agent(model, builtin_tools(workspace, web=False), config=config(workspace)).run("Look around.")
    assert "Obey me." not in texts(model.requests[1])


async def test_knowledge_is_stored_unverified_and_recalled(workspace: Path, tmp_path: Path) -> None:
    fact = {"subject": "The hut", "predicate": "opens in", "object": "June"}
    model = ScriptedModel([calls(("store_knowledge", fact)), calls(("recall_knowledge", {"query": "hut"})), "done"])
    agent = Agent(model, config=config(workspace, store=str(tmp_path / "facts.db")))
    assert (await agent.run("Remember it.")).status == "completed"
    await agent.aclose()
    assert "Stored fact: The hut opens in June" in texts(model.requests[1])
    assert "unverified" in texts(model.requests[2])


async def test_without_a_configuration_nothing_is_read(workspace: Path) -> None:
    model, store = ScriptedModel([READS, "done"]), MemoryJournal()
    run = await Agent(model, builtin_tools(workspace, web=False), journal=store).run("go")
    assert not any(isinstance(event, ConventionsRead) for event in await events_of(store, run.id))
    assert "recall_knowledge" not in str(model.requests[0].tools.names)


async def test_a_crash_at_any_append_changes_nothing(workspace: Path, tmp_path: Path) -> None:
    def agent(store: JournalStore) -> Agent:
        def reply(request: ModelRequest) -> Scripted:
            return READS if len([m for m in request.messages if m.role == "assistant"]) == 0 else "done"

        tools = builtin_tools(workspace, web=False)
        return Agent(FunctionModel(reply), tools, config=config(workspace), journal=store)

    counting = CrashingStore(MemoryJournal(), 0, "before")
    await agent(counting).run("go")
    for death in range(3, counting.appends + 1):
        path = tmp_path / f"{death}.db"
        with pytest.raises(Crash):
            await agent(CrashingStore(CheckedJournal(SqliteJournal(path)), death, "after")).run("go", run_id="r")
        store = SqliteJournal(path)
        resumed = agent(store)
        assert (await resumed.resume("r")).status == "completed"
        state = fold(await events_of(store, "r"))
        assert [one.directory for one in state.conventions] == [".", "src/billing"]
        await resumed.aclose()
