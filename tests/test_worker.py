"""Workers: runs that are ready are driven, by one at a time, whoever dies, sleeps or is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clerks import LOOK, ask_first, claimed, clerk, limited, look, once, serve, stands, store_of, worker_of
from records import events_of
from surefoot import Agent, Run, tool
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.sqlite import SqliteJournal
from surefoot.run import Opened
from surefoot.speak import speak
from surefoot.testing.models import calls
from surefoot.types.errors import JournalUnavailable, RunExists, UsageError
from surefoot.types.events import DriverChanged, RunResumed, RunStarted
from surefoot.types.ports import Claimed, JournalStore, RunFilter
from surefoot.types.words import Approve, Resume
from surefoot.worker import Worker

pytestmark = pytest.mark.anyio

LOOKS = once(LOOK, "All is done.")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[JournalStore]:
    one = store_of(request.param, tmp_path)
    yield one
    await one.aclose()


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    one = SqliteJournal(tmp_path / "runs.db")
    yield one
    await one.aclose()


async def test_what_is_started_is_driven_as_if_it_had_been_run(store: JournalStore) -> None:
    agent, told = clerk(store, LOOKS), list[str]()
    begun = await agent.start("look at it", run_id="r1", labels={"team": "红"}, request="ab")
    assert (begun.status, (await store.summary("r1")).status) == ("interrupted", "queued")
    with pytest.raises(RunExists):
        await agent.start("look at it", run_id="r1")
    await Worker(store, {"clerk": agent}, tell=lambda run_id, _: told.append(run_id)).run(once=True)
    summary = await store.summary("r1")
    assert (summary.status, summary.answer, summary.labels) == ("completed", "All is done.", {"team": "红"})
    assert set(told) == {"r1"}
    events = await events_of(store, "r1")
    started = next(one for one in events if isinstance(one, RunStarted))
    assert (started.agent, started.request, bool(started.recipe)) == ("clerk", "ab", True)
    assert not [one for one in events if isinstance(one, DriverChanged | RunResumed)]
    assert (await agent.run("look at it", run_id="r2")).answer == summary.answer
    assert [one.type for one in await events_of(store, "r2")] == [one.type for one in events]


async def test_many_runs_are_driven_side_by_side_up_to_a_limit(store: JournalStore) -> None:
    at_once, most = 0, 0

    async def work() -> str:
        """Work."""
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return "done"

    agent = clerk(store, once(calls(("work", {})), "ok"), tool(work, effect="read"))
    for number in range(20):
        await agent.start(f"task {number}", run_id=f"r{number}")
    await worker_of(store, agent, most=4).run(once=True)
    assert await store.count(RunFilter(status="completed")) == 20
    assert most <= 4


async def test_runs_that_wait_for_a_place_are_let_go_when_they_are_left(store: JournalStore) -> None:
    begun, going = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def wait(what: str) -> str:
        """Wait."""
        begun.set()
        await going.wait()
        return what

    agent = clerk(store, [calls(("wait", {"what": "it"})), "Done."], wait, max_concurrent_runs=1)
    for name in ("r1", "r2"):
        await agent.start("wait", run_id=name)
    await (await store.open("r2")).release("approval", wake_at=0.0)  # the time for its answer is over
    running = asyncio.create_task(worker_of(store, agent, most=2).run())
    await begun.wait()
    assert await claimed(store) == []
    running.cancel()
    await asyncio.wait([running])
    assert {one.run_id for one in await claimed(store)} == {"r1", "r2"}


async def test_a_run_that_waits_is_let_go_and_taken_up_when_its_question_is_answered(store: JournalStore) -> None:
    agent = clerk(store, [calls(("ask_first", {"what": "mail"})), "Sent."], ask_first)
    await agent.start("send the mail", run_id="r1")
    worker = worker_of(store, agent)
    running = asyncio.create_task(worker.run())
    await stands(store, "r1", "paused")
    assert (await speak(store, "r1", Approve((("1.0", ""),), "mika"))).outcome == "applied"
    worker.wake()
    await stands(store, "r1", "completed")
    await worker.drain(1)
    await asyncio.wait_for(running, 30)
    await events_of(store, "r1")


async def test_a_word_to_go_on_takes_up_a_run_that_has_ended(store: JournalStore) -> None:
    agent = clerk(store, [LOOK, "Found."])
    await agent.start("look", run_id="r1", config=limited(agent).config)
    for _ in range(2):  # nobody has asked for more
        await serve(store, agent)
        assert (await store.summary("r1")).status == "stopped"
    assert (await speak(store, "r1", Resume("mika", agent.config))).outcome == ""
    await serve(store, agent)
    assert (await stands(store, "r1", "completed")).answer == "Found."
    assert [one.by for one in await events_of(store, "r1") if isinstance(one, RunResumed)] == ["mika"]
    assert (await store.posted("r1", 1)).outcome == "applied"


async def test_a_drain_lets_what_must_not_be_repeated_end_and_cuts_off_the_rest(store: JournalStore) -> None:
    begun, done = asyncio.Event(), list[str]()

    async def pay() -> str:
        """Pay."""
        begun.set()
        await asyncio.sleep(0.2)
        done.append("paid")
        return "paid"

    agent = clerk(store, [calls(("pay", {})), "Paid."], tool(pay))
    await agent.start("pay", run_id="r1")
    worker = worker_of(store, agent)
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(begun.wait(), 30)
    await worker.drain(20)
    await asyncio.wait_for(running, 30)
    assert done == ["paid"]
    assert [one.type for one in await events_of(store, "r1")][-1] == "CallEnded"
    assert (await store.summary("r1")).status == "queued"
    await serve(store, agent)
    assert ((await store.summary("r1")).answer, done) == ("Paid.", ["paid"])


async def test_a_run_that_makes_its_driver_fail_is_set_aside(file: SqliteJournal) -> None:
    class Broken(Agent):
        async def drive(self, claimed: Claimed, **_: object) -> object:  # type: ignore[override]  # a bug of somebody's
            async with asyncio.timeout(5):
                await (await self._store.open(claimed.run_id)).release()
            raise RuntimeError("no such luck")

    agent = clerk(file, LOOKS)
    await agent.start("look at it", run_id="r1")
    await serve(file, Broken(LOOKS, tools=[look], journal=file, name="clerk"))
    assert (await file.summary("r1")).reason == "RuntimeError: no such luck"
    for _ in range(2):
        assert [one.run_id for one in (await file.list(RunFilter(status="set_aside"))).runs] == ["r1"]
        await serve(file, agent)
    await speak(file, "r1", Resume("mika"))
    await serve(file, agent)
    assert (await file.summary("r1")).status == "completed"


async def test_a_run_that_asks_is_given_back_by_a_driver_cut_off_in_a_read(file: SqliteJournal, tmp_path: Path) -> None:
    reads = asyncio.Event()

    class Silent(SqliteJournal):
        async def read_recorded(self, *_: object, **__: object) -> Any:  # Any: never given
            reads.set()
            await asyncio.Event().wait()

    await clerk(file, LOOKS).start("pay it", run_id="r1")
    (one,) = await claimed(file)

    async def leave() -> None:
        async with Opened(await file.open("r1", fence=one.fence), Silent(tmp_path / "other.db")) as opened:
            opened.leave(Run("r1", "paused", reason="approval"))

    leaving = asyncio.create_task(leave())
    await reads.wait()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert [one.run_id for one in await claimed(file)] == ["r1"]


async def test_no_run_is_blamed_for_a_journal_that_cannot_be_written(file: SqliteJournal) -> None:
    failures = iter(range(3))

    class OnAFullDisk(Agent):
        async def drive(self, claimed: Claimed, **how: Any) -> Run:  # Any: passed on as they are
            if next(failures, None) is not None:
                await (await self._store.open(claimed.run_id, fence=claimed.fence)).release()
                raise JournalUnavailable("the disk is full")
            return await super().drive(claimed, **how)

    await clerk(file, LOOKS).start("look at it", run_id="r1")
    await serve(file, OnAFullDisk(LOOKS, tools=[look], journal=file, name="clerk"))
    assert (await file.summary("r1")).status == "completed"


def test_an_agent_is_served_under_its_name() -> None:
    with pytest.raises(UsageError, match="has the name 'clerk'"):
        Worker(MemoryJournal(), {"other": Agent(LOOKS, name="clerk")})
    with pytest.raises(UsageError, match="cannot be the name"):
        Agent(LOOKS, name="My Clerk")
