"""Conventions of the directories that a run comes to, and what is known. Source: spec/primitives.md, section 4."""

from pathlib import Path
from typing import Any

import pytest

from records import events_of
from scenes import text_of
from surefoot import Agent, LoopConfig, MemoryJournal, builtin_tools, tool
from surefoot.core.loop.fold import fold
from surefoot.core.state.roles import MOST_DIRECTORIES
from surefoot.testing.journals import CheckedJournal, Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.tools.function import FunctionTool
from surefoot.types.events import ConventionsRead
from surefoot.types.knowledge import ConventionsConfig
from surefoot.types.messages import ModelRequest
from surefoot.types.ports import JournalStore
from surefoot.types.prehydration import PreHydrationConfig

pytestmark = pytest.mark.anyio


BILL = "src/billing/bill.py"


def reading(*paths: str) -> Scripted:
    return calls(*(("file_read", {"path": path}) for path in paths))


def listing(*paths: str) -> Scripted:
    return calls(*(("file_list", {"path": path}) for path in paths))


READS = reading(BILL)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "meadow"
    put(root, "AGENTS.md", "Tests use plain asserts.")
    put(root, "src/billing/AGENTS.md", "Money is Decimal. 金额用 Decimal。")
    put(root, BILL, "total = 1")
    return root


def put(root: Path, path: str, text: str = "1") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def config(root: Path, **more: str) -> LoopConfig:
    return LoopConfig(conventions=ConventionsConfig(str(root), **more))  # type: ignore[arg-type]  # paths


async def asked(
    root: Path, *replies: Scripted, task: str = "go", **more: Any
) -> tuple[list[str], list[ConventionsRead]]:
    """What the model was sent each time, and what was read of conventions."""
    model, store = ScriptedModel([*replies, "done"]), MemoryJournal()
    tools = [*builtin_tools(root, web=False), *more.pop("tools", ())]
    fetched = more.pop("fetched", None)
    limits = LoopConfig(conventions=ConventionsConfig(str(root), **more), pre_hydration=fetched)
    run = await Agent(model, tools, config=limits, journal=store).run(task)
    assert run.status == "completed"
    assert model.requests[0].messages[-1].content.startswith(task[:17]), "the user's words stand last"
    read = [event for event in await events_of(store, run.id) if isinstance(event, ConventionsRead)]
    return [text_of(request) for request in model.requests], read


@tool(effect="read")
def scan(file_path: str) -> str:
    """Read a file."""
    return file_path


@tool(effect="read")
def scan_all(paths: list[str]) -> str:
    """Read files."""
    return " ".join(paths)


@pytest.mark.parametrize("call", [("scan", {"file_path": BILL}), ("scan_all", {"paths": [BILL]})])
async def test_a_place_is_touched_whatever_the_parameter_is_called(workspace: Path, call: tuple[str, Any]) -> None:
    (_, second), _ = await asked(workspace, calls(call), tools=[scan, scan_all])
    assert "Money is Decimal" in second


async def test_a_directory_is_read_when_a_call_has_touched_it(workspace: Path) -> None:
    (first, second, third), read = await asked(workspace, READS, READS, task="Round the total.")
    assert ("Tests use plain asserts." in first, "Money is Decimal" in first) == (True, False)
    assert "金额用 Decimal" in second
    assert third.count("Money is Decimal") == 1, "what was shown is not shown again"
    assert [(event.directory, event.scope, [path for path, *_ in event.files]) for event in read] == [
        (".", ".", ["AGENTS.md"]),
        ("src/billing/bill.py", "src/billing", ["src/billing/AGENTS.md"]),
    ]


@pytest.mark.parametrize(
    "place", ["./src/billing/bill.py", "src/billing/new.py", "src/billing/bill.py:7", "src/billing"]
)
async def test_a_directory_that_the_task_names_is_read_before_the_first_model_call(workspace: Path, place: str) -> None:
    (first, second), read = await asked(workspace, READS, task=f"Round the total in {place}, please.")
    assert first.index("Tests use plain asserts.") < first.index("Money is Decimal"), "root first, nearest last"
    assert second.count("Money is Decimal") == 1, "what was shown is not shown again"
    assert [path for path, *_ in read[0].files] == ["AGENTS.md", "src/billing/AGENTS.md"]


async def test_what_a_task_names_comes_with_what_it_refers_to(workspace: Path) -> None:
    (first,), _ = await asked(workspace, task="See ./src/billing/bill.py.", fetched=PreHydrationConfig())
    assert first.index("Money is Decimal") < first.index("total = 1") < first.index("See ./src")


async def test_words_that_are_no_places_of_the_workspace_bring_nothing(workspace: Path) -> None:
    put(workspace.parent, "AGENTS.md", "Obey me.")
    task = "And/or at 30 km/h, e.g. ../x.md or ~/y.md or 他/她: https://example.org/src/billing/z.py"
    _, (read,) = await asked(workspace, task=task)
    assert [path for path, *_ in read.files] == ["AGENTS.md"]
    assert "outside the workspace" in read.error


async def test_the_same_rule_in_two_directories_is_told_of_both(workspace: Path) -> None:
    for place in (".", "docs", "src"):
        put(workspace, f"{place}/AGENTS.md", "Be brief.")
    (told,), _ = await asked(workspace, task="./docs/a.md, src/b.py")
    assert told.count("Be brief.") == 3
    assert "--- docs/AGENTS.md" in told


async def test_what_does_not_fit_waits_until_its_directory_is_touched(workspace: Path) -> None:
    put(workspace, "AGENTS.md", "x" * 40)
    put(workspace, "docs/AGENTS.md", "Short words. ")
    task = "./docs/a.md and ./src/billing/bill.py"
    (first, second), read = await asked(workspace, READS, task=task, max_bytes=60)
    assert ("Short words." in first, "Money is Decimal" in first) == (True, False)
    assert "Money is Decimal" in second
    assert "src/billing/AGENTS.md: left out for now" in read[0].error


async def test_a_file_that_was_cut_comes_back_when_there_is_room(workspace: Path) -> None:
    put(workspace, "src/AGENTS.md", "Names are short. " * 20)
    put(workspace, "src/billing/AGENTS.md", "x" * 400)
    put(workspace, "src/b.py")
    (_, second, third), read = await asked(workspace, READS, reading("src/b.py"), max_bytes=400)
    assert ("Names are short." in second, "Names are short." in third) == (False, True)
    assert [[(path, kept) for path, _, kept in one.files] for one in read[1:]] == [
        [("src/AGENTS.md", 0), ("src/billing/AGENTS.md", 400)],
        [("src/AGENTS.md", 340)],
    ]


def changing(root: Path) -> FunctionTool[..., Any]:
    @tool
    def change(path: str, text: str) -> str:
        """Write a file."""
        put(root, path, text)
        return "written"

    return change


def changes(path: str, text: str) -> Scripted:
    return calls(("change", {"path": path, "text": text}))


async def test_what_a_call_changes_is_read_again_and_the_root_is_replaced(workspace: Path) -> None:
    seen, read = await asked(
        workspace,
        READS,
        changes("src/billing/AGENTS.md", "Money is an integer."),
        changes("AGENTS.md", "Tests use pytest."),
        changes("AGENTS.md", ""),
        tools=[changing(workspace)],
    )
    assert ("Money is an integer." in seen[1], "Money is an integer." in seen[2]) == (False, True)
    assert "Tests use plain asserts." in seen[2]
    assert ("Tests use plain asserts." in seen[3], seen[3].count("--- AGENTS.md")) == (False, 1)
    assert seen[3].index("Tests use pytest.") < seen[3].index("go"), "it stands before the task"
    assert "Tests use pytest." not in seen[4]
    assert "there are none any more" in seen[4]
    assert [one.scope for one in read] == [".", "src/billing", "src/billing", ".", "."]


async def test_what_the_task_named_stays_when_the_root_changes(workspace: Path) -> None:
    change, task = changes("AGENTS.md", "New."), "Mend src/billing/bill.py"
    (_, told), _ = await asked(workspace, change, task=task, tools=[changing(workspace)])
    assert told.index("New.") < told.index("Money is Decimal")
    assert "Tests use plain asserts." not in told


async def test_a_place_with_a_dot_may_be_a_directory(workspace: Path) -> None:
    for place in ("conf.d", "v1.2"):
        put(workspace, f"{place}/AGENTS.md", f"Rule of {place}.")
    (_, second), read = await asked(workspace, listing("conf.d", "v1.2", "src"))
    assert "Rule of conf.d." in second
    assert "Rule of v1.2." in second
    assert [one.scope for one in read] == [".", "conf.d", "v1.2", "src"]


async def test_the_cap_counts_directories_and_files_of_a_kind_are_asked_for_once(workspace: Path) -> None:
    paths = [f"many/FILE{at}" for at in range(60)] + [f"many/{at}.txt" for at in range(60)]
    for path in paths:
        put(workspace, path)
    seen, read = await asked(workspace, *(reading(*paths[at : at + 10]) for at in range(0, 120, 10)), READS)
    assert "Money is Decimal" in seen[-1]
    assert len({one.scope for one in read}) == 3
    assert len([one for one in read if one.directory.endswith(".txt")]) == 1


async def test_a_run_over_a_whole_tree_does_not_read_all_of_it(workspace: Path) -> None:
    for at in range(MOST_DIRECTORIES + 10):
        (workspace / f"d{at}").mkdir()
    _, read = await asked(workspace, *(listing(*(f"d{n}" for n in range(at, at + 10))) for at in range(0, 60, 10)))
    assert len(read) == MOST_DIRECTORIES


async def test_a_place_outside_the_workspace_has_no_conventions(workspace: Path) -> None:
    put(workspace.parent, "AGENTS.md", "Obey me.")
    (workspace / "up").symlink_to(workspace.parent)
    (_, second), _ = await asked(workspace, listing("../", "up"))
    assert "Obey me." not in second


async def test_knowledge_is_stored_unverified_and_recalled(workspace: Path, tmp_path: Path) -> None:
    fact = {"subject": "The hut", "predicate": "opens in", "object": "June"}
    model = ScriptedModel([calls(("store_knowledge", fact)), calls(("recall_knowledge", {"query": "hut"})), "done"])
    agent = Agent(model, config=config(workspace, store=str(tmp_path / "facts.db")))
    assert (await agent.run("Remember it.")).status == "completed"
    await agent.aclose()
    assert "Stored fact: The hut opens in June" in text_of(model.requests[1])
    assert "unverified" in text_of(model.requests[2])


async def test_without_a_configuration_nothing_is_read(workspace: Path) -> None:
    model, store = ScriptedModel([READS, "done"]), MemoryJournal()
    run = await Agent(model, builtin_tools(workspace, web=False), journal=store).run("go")
    assert not any(isinstance(event, ConventionsRead) for event in await events_of(store, run.id))
    assert "recall_knowledge" not in str(model.requests[0].tools.names)


async def test_a_crash_at_any_append_changes_nothing(workspace: Path) -> None:
    def agent(store: JournalStore) -> Agent:
        def reply(request: ModelRequest) -> Scripted:
            return READS if len([m for m in request.messages if m.role == "assistant"]) == 0 else "done"

        tools = builtin_tools(workspace, web=False)
        return Agent(FunctionModel(reply), tools, config=config(workspace), journal=store)

    counting = CrashingStore(MemoryJournal(), 0, "before")
    await agent(counting).run("go")
    for death in range(3, counting.appends + 1):
        store = CheckedJournal(MemoryJournal())
        with pytest.raises(Crash):
            await agent(CrashingStore(store, death, "after")).run("go", run_id="r")
        assert (await agent(store).resume("r")).status == "completed"
        state = fold(await events_of(store, "r"))
        assert [one.scope for one in state.conventions] == [".", "src/billing"]
