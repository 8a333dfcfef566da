"""Runs as workflows, on Temporal's development server: the same events as without it, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields, is_dataclass, replace
from itertools import count
from typing import Any, cast

import pytest

pytest.importorskip("temporalio", reason="the extra `temporal` is not installed")

from temporalio.client import Client

from conftest import Server
from desk import BILL, Desk
from plan_kit import ONE_BY_ONE, WORDS, World
from scenes import Played, Row, config_of, drive, models_of, rows_in
from surefoot import Agent, MemoryJournal, Run, Task
from surefoot.core.loop.fold import fold
from surefoot.engines.temporal.payloads import Size
from surefoot.engines.temporal.worker import Engine, connected
from surefoot.testing.journals import CheckedJournal
from surefoot.types.events import DriverChanged, Event, RunResumed
from surefoot.types.ports import JournalStore

pytestmark = [pytest.mark.anyio, pytest.mark.temporal, pytest.mark.timeout(300)]

_NUMBERS = count()
_PATIENCE_S = 120
_TIMES = ("elapsed_s", "took_s", "first_s")


@asynccontextmanager
async def engine(
    server: Server, store: JournalStore, agents: Mapping[str, Agent[Any]], *, size: Size = "move", **options: Any
) -> AsyncIterator[Client]:
    """A worker for these agents, on a queue of its own."""
    client, told = await connected(store, server.address), asyncio.Event()
    made = Engine(store, agents, client, queue=f"q{next(_NUMBERS)}", size=size, **options)
    working = asyncio.create_task(made.run(told))
    try:
        yield client
    finally:
        told.set()
        await asyncio.wait_for(working, 60)


async def records_of(store: JournalStore, run_id: str) -> list[Event]:
    return [one.event for one in (await store.read_recorded(run_id))[0]]


async def at_rest(store: JournalStore, run_id: str) -> Run:
    """The run, once it has ended or waits for a person, and nobody drives it."""
    summary = await store.summary(run_id)
    until = time.monotonic() + _PATIENCE_S
    while summary.status in ("running", "queued", "ready", "interrupted"):
        assert time.monotonic() < until, summary
        await asyncio.sleep(0.05)
        summary = await store.summary(run_id)
    events = await records_of(store, run_id)
    assert summary.status != "set_aside", summary.reason
    return Run.of(fold(events), events[-1])


def timeless(value: object) -> Any:  # Any: as it was given
    """An event without the times in it."""
    if isinstance(value, tuple):
        return tuple(map(timeless, cast("tuple[object, ...]", value)))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    own = {one.name: getattr(value, one.name) for one in fields(value) if one.init and not one.name.startswith("_")}
    return replace(value, **{key: 0.0 if key in _TIMES else timeless(inner) for key, inner in own.items()})


def told(events: Sequence[Event]) -> list[Event]:
    """What happened, whoever drove it and whenever."""
    return [timeless(one) for one in events[1:] if not isinstance(one, DriverChanged | RunResumed)]


def _is_for_all(row: Row) -> bool:
    """Whether a person only answers in it."""
    return not any(do[0] == "resume" and len(do) > 1 for do in row.get("then", ()))


async def through(store: JournalStore, agent: Agent[Any], row: Row, task: Task, run_id: str) -> Run:
    """The run of a row as a workflow, with what a person says to it."""
    await agent.start(task, run_id=run_id)
    run = await at_rest(store, run_id)
    for do, *what in row.get("then", ()):
        match do:
            case "approve" | "refuse" | "yes" | "no":
                called = what[0] if what else 0
                call = called if isinstance(called, str) else run.waiting[called].id
                if do in ("approve", "yes"):
                    await agent.approve(run_id, call, by="Ada")
                else:
                    await agent.refuse(run_id, call, by="Ada", reason="".join(what[1:]))
            case _:
                continue
        run = await at_rest(store, run_id)
    return run


def made_of(row: Row, world: Any, words: Any, store: JournalStore, name: str, **options: Any) -> tuple[Agent, Any, Any]:
    models, real = models_of(row, words), world(**row.get("world", {}))
    given = {**options, **row.get("agent", {})}
    config = config_of({**given.pop("config", {}), **row.get("config", {})})
    model = models if len(models) > 1 else models["solo"]
    return Agent(model, real.tools(), journal=store, config=config, name=name, **given), real, models


SCENES: list[tuple[Row, Any, Any, str, dict[str, Any]]] = [
    *((row, World, WORDS, "go", {"reasoner": "plan", "config": ONE_BY_ONE}) for row in rows_in("plans", "runs")),
    *((row, Desk, None, BILL, {"config": {"guard": {}}}) for row in rows_in("guard")),
]


async def play_all(server: Server, scenes: Sequence[tuple[Row, Any, Any, str, dict[str, Any]]], size: Size) -> None:
    store, alone = CheckedJournal(MemoryJournal()), CheckedJournal(MemoryJournal())
    made = [
        made_of(row, world, words, store, f"a{n}", **options)
        for n, (row, world, words, _, options) in enumerate(scenes)
    ]
    room, mark = asyncio.Semaphore(6), next(_NUMBERS)  # workflows of other tests may be open still

    async def played(n: int) -> str:
        row, world, words, task, options = scenes[n]
        agent, real, models = made[n]
        other, _, _ = made_of(row, world, words, alone, f"a{n}", **options)
        await drive(other, row, task, run_id := f"r{mark}-{n}")
        async with room:
            run = await through(store, agent, row, Task(row.get("task", task)), run_id)
        events = await records_of(store, run_id)
        Played(run, agent, real, models, events).hold(row)
        assert told(events) == told(await records_of(alone, run_id)), row["why"]
        return row["why"]

    async with engine(server, store, {f"a{n}": agent for n, (agent, _, _) in enumerate(made)}, size=size):
        assert len(await asyncio.gather(*map(played, range(len(scenes))))) == len(scenes)


@pytest.mark.parametrize("size", ["move", "run"])
async def test_what_happens_is_what_happens_without_temporal(temporal_server: Server, size: Size) -> None:
    await play_all(temporal_server, [one for one in SCENES if _is_for_all(one[0])][::6], size)


@pytest.mark.scale
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", ["move", "run"])
async def test_each_scene_is_what_it_is_without_temporal(temporal_server: Server, size: Size) -> None:
    await play_all(temporal_server, [one for one in SCENES if _is_for_all(one[0])], size)
