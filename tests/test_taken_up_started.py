"""A started call of a foreign journal: no repeat of it runs before a person is asked."""

from __future__ import annotations

import pytest

from surefoot import Agent, LoopConfig, tool
from surefoot.journal.memory import MemoryJournal
from surefoot.run import Opened, Run
from surefoot.testing.models import ScriptedModel, calls
from surefoot.types.events import CallJudged, CallStarted, Event
from surefoot.types.guard import GuardConfig
from surefoot.types.ports import Tool

pytestmark = pytest.mark.anyio

SAVE = calls(("save", {"path": "notes.txt", "text": "the plans"}))


def tools(saved: list[str], *, idempotent: bool) -> list[Tool]:
    @tool(effect="write", idempotent=idempotent)
    def save(path: str, text: str) -> str:
        """Save a text."""
        saved.append(path)
        return f"saved {text}"

    return [save]


async def cut(store: MemoryJournal, run: Run, kind: type[Event], behind: int = 1) -> None:
    """Fork a run as if its process had died right behind such a record, or before it."""
    events = [record.event for record in (await store.read_recorded(run.id))[0]]
    await store.fork(run.id, next(n for n, one in enumerate(events, behind) if isinstance(one, kind)), "cut")


@pytest.mark.parametrize("words", ["Save the plans in notes.txt.", "把计划保存到 notes.txt。", "Hello."])
@pytest.mark.parametrize("guard", [None, GuardConfig()])
@pytest.mark.parametrize("is_settled", [False, True])
async def test_a_started_call_of_a_foreign_journal_is_asked_about_before_it_is_repeated(
    words: str, guard: GuardConfig | None, is_settled: bool
) -> None:
    store, saved = MemoryJournal(), list[str]()
    agent = Agent(ScriptedModel([SAVE, "done"]), tools(saved, idempotent=not is_settled), journal=store)
    await cut(store, await agent.run(words), CallStarted)
    if is_settled:
        await agent.settle("cut", "1.0", "not_done", by="Eve")
    saved.clear()
    config = LoopConfig(guard=guard)
    again = Agent(ScriptedModel(["done"]), tools(saved, idempotent=not is_settled), journal=store, config=config)
    run = await again.resume("cut", origin="foreign")
    assert saved == []
    assert (run.status, run.reason) in (("paused", "approval"), ("completed", ""))  # the latter: refused by the gate
    assert run.status == "paused" or (guard is not None and words == "Hello.")


async def test_what_a_foreign_journal_says_has_started_without_a_verdict_does_not_run_either() -> None:
    store, saved = MemoryJournal(), list[str]()
    run = await Agent(ScriptedModel([SAVE, "done"]), tools(saved, idempotent=True), journal=store).run("Save it.")
    await cut(store, run, CallJudged, behind=0)
    async with Opened(await store.open("cut"), store) as opened:
        await opened.journal.append([CallStarted("1.0")], "written")
    saved.clear()
    again = Agent(ScriptedModel(["done"]), tools(saved, idempotent=True), journal=store)
    run = await again.resume("cut", origin="foreign")
    assert (run.status, run.reason, saved) == ("paused", "approval", [])
    await again.approve(run.id, run.waiting[0].id, by="Ada")
    assert ((await again.resume(run.id)).status, saved) == ("completed", ["notes.txt"])


async def test_a_started_call_of_an_own_journal_is_repeated_unasked() -> None:
    store, saved = MemoryJournal(), list[str]()
    agent = Agent(ScriptedModel([SAVE, "done", "done"]), tools(saved, idempotent=True), journal=store)
    await cut(store, await agent.run("Save it."), CallStarted)
    assert ((await agent.resume("cut")).status, saved) == ("completed", ["notes.txt"] * 2)
