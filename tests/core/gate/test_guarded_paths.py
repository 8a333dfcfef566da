"""Files that others run or obey are written with a person's approval alone, with the gate and without it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cases import cases
from records import events_of
from surefoot import Agent, LoopConfig
from surefoot.core.guard.judge import guarded_path, is_guarded
from surefoot.core.state.state import EMPTY, Call
from surefoot.journal.memory import MemoryJournal
from surefoot.testing.models import ScriptedModel, calls
from surefoot.tools.builtin import file_tools
from surefoot.tools.workspace import Workspace
from surefoot.types.events import ValuesEndorsed
from surefoot.types.guard import GuardConfig
from surefoot.types.outcomes import Allow, Ask, Deny
from surefoot.types.tools import ToolSpec

WRITE = ToolSpec("file_write", "", {}, declared=True)
FOREIGN = ToolSpec("fs__write_file", "", {}, server="fs", origin="remote")


@cases("gate/guarded_paths")
def test_names_that_others_run_or_obey(path: str) -> None:
    assert is_guarded(path)
    for spec in (WRITE, FOREIGN):
        decision = guarded_path(EMPTY, Call("1.0", "", spec.name, {"path": path, "text": "x"}, spec))
        is_closed = spec is WRITE and "git/" in f"{path}/".lower().replace("\u200b", "").replace("./", "/")
        assert isinstance(decision, Deny if is_closed else Ask), decision


@pytest.mark.parametrize("path", ["summary.txt", "src/main.py", "Makefile.bak.txt", "git/config", "my.gitx", "bashrc"])
def test_other_names_are_free(path: str) -> None:
    assert guarded_path(EMPTY, Call("1.0", "", "file_write", {"path": path, "text": "Makefile"}, WRITE)) == Allow()


@cases("gate/guarded_paths")
def test_which_tools_and_arguments(
    own: bool, changes: dict[str, Any], arguments: dict[str, object], asks: bool
) -> None:
    spec = replace(WRITE if own else FOREIGN, **changes)
    assert isinstance(guarded_path(EMPTY, Call("1.0", "", spec.name, arguments, spec)), Ask) is asks


@pytest.mark.anyio
@pytest.mark.parametrize("guard", [None, GuardConfig(mode="observe"), GuardConfig()])
async def test_nobody_is_asked_about_a_folder_that_is_never_written(tmp_path: Path, guard: GuardConfig | None) -> None:
    model = ScriptedModel([calls(("file_write", {"path": ".git/hooks/pre-push", "text": "x"})), "done"])
    agent = Agent(model, tools=file_tools(Workspace(tmp_path)), config=LoopConfig(guard=guard))
    run = await agent.run("Write x to .git/hooks/pre-push.")
    assert (run.status, run.answer, (tmp_path / ".git").exists()) == ("completed", "done", False)
    assert "version control" in str(model.requests[-1].messages)


@pytest.mark.anyio
@pytest.mark.parametrize("guard", [None, "off", "observe", "enforce"])
async def test_a_run_waits_for_a_person_and_writes_then(tmp_path: Path, guard: str | None) -> None:
    for answer in ("yes", "no"):
        root = tmp_path / answer
        root.mkdir()
        model = ScriptedModel([calls(("file_write", {"path": "Makefile", "text": "all:"})), "done"])
        config = LoopConfig(guard=GuardConfig(mode=guard)) if guard else LoopConfig()  # type: ignore[arg-type]  # a mode
        agent = Agent(model, tools=file_tools(Workspace(root)), config=config)
        run = await agent.run("Write the Makefile, with all: in it.")
        assert [call.name for call in run.waiting] == ["file_write"]
        assert not (root / "Makefile").exists()
        if answer == "yes":
            await agent.approve(run.id, run.waiting[0].id, by="Ada")
        else:
            await agent.refuse(run.id, run.waiting[0].id, by="Ada")
        run = await agent.resume(run.id)
        assert (run.answer, (root / "Makefile").exists()) == ("done", answer == "yes")


@pytest.mark.anyio
@pytest.mark.parametrize("words", ["Write the Makefile, with all: in it.", "把 all: 写入 Makefile。"])
async def test_a_yes_to_what_the_words_name_endorses_nothing_but_the_text(tmp_path: Path, words: str) -> None:
    model = ScriptedModel([calls(("file_write", {"path": "Makefile", "text": "all:"})), "done"])
    store = MemoryJournal()
    tools = file_tools(Workspace(tmp_path))
    agent = Agent(model, tools=tools, config=LoopConfig(guard=GuardConfig()), journal=store)
    run = await agent.run(words)
    await agent.approve(run.id, run.waiting[0].id, by="Ada")
    (endorsed,) = [event for event in await events_of(store, run.id) if isinstance(event, ValuesEndorsed)]
    assert {role for role, _ in endorsed.values} == {"content"}
