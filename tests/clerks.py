"""The agent `clerk` of the tests of workers: its tools, its stores, and how it is served."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from surefoot import Agent, tool
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.sqlite import SqliteJournal
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.ports import Claimed, JournalStore, Model, RunSummary, Tool
from surefoot.types.tools import Effect
from surefoot.worker import Worker


@tool(approval="always", effect="read")
async def ask_first(what: str) -> str:
    """Ask first."""
    return f"{what}: done"


@tool(effect="read")
async def look(what: str) -> str:
    """Look."""
    return f"seen {what}"


def holding(begun: asyncio.Event, effect: Effect = "read") -> Tool:
    """A call that never ends, once it has begun."""

    async def hold() -> str:
        """Hold on."""
        begun.set()
        await asyncio.Event().wait()
        return "held"

    return tool(hold, effect=effect)


LOOK = calls(("look", {"what": "it"}))


def once(call: Scripted, answer: str) -> FunctionModel:
    """A model that makes one call, then gives an answer, whoever asks."""

    def reply(request: ModelRequest) -> Scripted:
        return ModelMessage("assistant", answer) if any(one.role == "tool" for one in request.messages) else call

    return FunctionModel(reply)


def clerk(store: JournalStore, said: Model | Sequence[Scripted], *tools: Tool, **options: Any) -> Agent:
    """The agent, with what its model says, or one that does; its tool is `look` unless others are named."""
    model = ScriptedModel(list(said)) if isinstance(said, Sequence) else said
    options.setdefault("name", "clerk")
    return Agent(model, tools=tools or [look], journal=store, **options)


def limited(agent: Agent) -> Agent:
    """An agent whose runs have one step."""
    return replace(agent, config=replace(agent.config, budget=replace(agent.config.budget, max_steps=1, reserve=0.0)))


def store_of(kind: str, folder: Path) -> JournalStore:
    return MemoryJournal() if kind == "memory" else SqliteJournal(folder / "runs.db")


def worker_of(store: JournalStore, *agents: Agent, **options: Any) -> Worker:  # Any: of a worker
    return Worker(store, {one.name: one for one in agents}, **options)


async def serve(store: JournalStore, *agents: Agent) -> None:
    """Drive what is ready."""
    await asyncio.wait_for(worker_of(store, *agents).run(once=True), 30)


async def claimed(store: JournalStore) -> Sequence[Claimed]:
    return await store.claim(("clerk",), 9, 30.0)


async def stands(store: JournalStore, run_id: str, status: str) -> RunSummary:
    """The run in one line, once it stands so."""
    async with asyncio.timeout(30):
        while (summary := await store.summary(run_id)).status != status:  # noqa: ASYNC110  # others drive it
            await asyncio.sleep(0.01)
    return summary
