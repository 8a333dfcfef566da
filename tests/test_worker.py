"""Workers: runs that are ready are driven, by one at a time, whoever dies, sleeps or is told to stop.

Of runs that change hands no word is lost, none that waits is woken in vain, and none stands still for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from records import events_of, until
from surefoot import Agent, GuardConfig, Run, tool
from surefoot.journal.heads import heads_of
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.memory_log import MemoryRun
from surefoot.journal.sqlite import SqliteJournal
from surefoot.run import Opened, state_of
from surefoot.runtime.under_way import Leave
from surefoot.speak import speak
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import FunctionModel, Scripted, ScriptedModel, calls
from surefoot.types.errors import JournalError, JournalUnavailable, RunExists, UsageError
from surefoot.types.events import CallEnded, CallStarted, DriverChanged, RunNoted, RunResumed, RunStarted
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.ports import Claimed, JournalStore, Model, RunFilter, RunSummary, Tool
from surefoot.types.tools import Effect
from surefoot.types.words import Approve, Note, Posted, Resume, Settle
from surefoot.worker import Worker

pytestmark = pytest.mark.anyio


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


LOOKS = once(LOOK, "All is done.")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[JournalStore]:
    one = MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "runs.db")
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


# --- runs that change hands


HOLD = calls(("hold", {}))


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_word_to_go_on_outlives_whoever_hears_it(store: JournalStore, at: int, when: str) -> None:
    agent = clerk(store, once(LOOK, "Found."))
    await agent.start("look", run_id="r1", config=limited(agent).config)
    await serve(store, agent)
    await store.say("r1", Resume("mika", agent.config))
    (one,) = await claimed(store)
    mortal = replace(agent, journal=CrashingStore(store, at, when))  # type: ignore[arg-type]  # one of these
    with suppress(Crash):
        await mortal.drive(one, by="the first")
    await serve(store, agent)
    assert (await store.summary("r1")).status == "completed"
    assert len([one for one in await events_of(store, "r1") if isinstance(one, RunResumed)]) == 1
    assert (await store.posted("r1", 1)).outcome == "applied"


@pytest.mark.parametrize("config", [True, False])
async def test_a_word_to_go_on_that_cannot_be_followed_is_not_tried_for_ever(store: JournalStore, config: bool) -> None:
    agent = clerk(store, [LOOK, "Found."])
    await agent.start("look", run_id="r1", config=limited(agent).config)
    await serve(store, agent)
    other = replace(agent, guard=GuardConfig(anchor="model"))
    await store.say("r1", Resume("mika", other.config if config else None))
    await serve(store, other)
    assert (await store.summary("r1")).reason.startswith("ConfigError")
    assert await claimed(store) == []


async def test_a_word_to_a_damaged_run_does_not_have_it_claimed_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = SqliteJournal(path)
    agent = clerk(store, ["Done."])
    await agent.start("think", run_id="r1")
    await store.aclose()
    with heads_of(path).open("r+b") as file:
        file.seek(20)
        file.write(b"\xff\xff\xff")
    with suppress(JournalError):
        await agent.cancel("r1", by="Ada")
    await serve(store, agent)
    await store.aclose()


async def test_a_run_that_is_left_while_it_goes_on_is_ready_for_others(store: JournalStore) -> None:
    """Its question has expired; whoever goes on with it is told to leave it."""
    begun, script = asyncio.Event(), [calls(("ask_first", {"what": "mail"})), HOLD, "Done."]
    agent = clerk(store, script, ask_first, holding(begun), guard=GuardConfig(approval_timeout_s=0.05))
    await agent.start("send the mail", run_id="r1")
    await serve(store, agent)
    assert (await store.summary("r1")).status == "paused"
    found: Sequence[Claimed] = ()
    async with asyncio.timeout(20):
        while not found:
            await asyncio.sleep(0.01)
            found = await claimed(store)  # nobody asks: its time has come
    leave = Leave()
    driving = asyncio.create_task(agent.drive(found[0], by="the first", leave=leave))
    await asyncio.wait_for(begun.wait(), 20)
    leave.begin(0.1)
    await asyncio.wait((driving,))
    assert (await store.summary("r1")).status == "queued"
    assert [one.run_id for one in await claimed(store)] == ["r1"]


async def test_a_run_that_is_to_be_left_while_its_only_call_is_announced_is_left(store: JournalStore) -> None:
    agent, leave = clerk(store, [HOLD, "Done."], holding(asyncio.Event())), Leave()
    await agent.start("hold on", run_id="r1")
    (one,) = await claimed(store)

    def watch(item: object) -> None:
        if isinstance(item, CallStarted):
            leave.begin(0.1)

    driving = asyncio.create_task(agent.drive(one, by="the first", watch=watch, leave=leave))
    done, _ = await asyncio.wait((driving,), timeout=10)
    assert done
    assert (await store.summary("r1")).status == "queued"


async def test_what_a_call_gave_outlives_a_cancel_while_a_word_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, heard, go_on, sent = asyncio.Event(), asyncio.Event(), asyncio.Event(), list[str]()

    @tool(effect="communicate")
    async def send(to: str) -> str:
        """Send it."""
        begun.set()
        await go_on.wait()
        sent.append(to)
        return f"sent to {to}"

    async def words(_: MemoryRun) -> list[Posted]:
        heard.set()
        await asyncio.sleep(60)
        return []

    store = MemoryJournal()
    agent = clerk(store, [calls(("send", {"to": "Ann"})), "Done."], send)
    running = asyncio.create_task(agent.run("send it", run_id="r1"))
    await asyncio.wait_for(begun.wait(), 20)
    monkeypatch.setattr(MemoryRun, "words", words)
    await speak(store, "r1", Note("Bob too.", "mika"), wait_s=0)
    await asyncio.wait_for(heard.wait(), 20)
    go_on.set()
    await until(lambda: sent)
    running.cancel()
    await asyncio.wait((running,))
    ended = [one.result.content for one in await events_of(store, "r1") if isinstance(one, CallEnded)]
    assert ended == ["sent to Ann"]


async def test_a_run_is_started_while_as_many_are_driven_as_may_be(store: JournalStore) -> None:
    begun = asyncio.Event()
    agent = clerk(store, [HOLD, "Done."], holding(begun), max_concurrent_runs=1)
    driving = asyncio.create_task(agent.run("hold on", run_id="r1"))
    await asyncio.wait_for(begun.wait(), 20)
    assert (await asyncio.wait_for(agent.start("hold on", run_id="r2"), 20)).status == "interrupted"
    forked = await asyncio.wait_for(agent.fork("r1", 1, new_id="r3", drives=False), 20)
    assert forked.status == "interrupted"
    driving.cancel()
    await asyncio.wait((driving,))


async def test_a_note_to_a_reply_that_would_be_the_last_is_read(store: JournalStore) -> None:
    asked, go_on, seen = asyncio.Event(), asyncio.Event(), list[str]()

    async def model(request: ModelRequest) -> ModelMessage:
        seen.extend(one.content for one in request.messages if one.role == "user")
        asked.set()
        await go_on.wait()
        return ModelMessage("assistant", f"Answer {len(seen)}.")

    running = asyncio.create_task(clerk(store, FunctionModel(model)).run("sum up", run_id="r1"))
    await asyncio.wait_for(asked.wait(), 20)
    await speak(store, "r1", Note("Bob too.", "mika"), wait_s=0)
    go_on.set()
    await asyncio.wait_for(running, 20)
    assert "Bob too." in seen
    assert [one for one in await events_of(store, "r1") if isinstance(one, RunNoted)]


class Shaky(MemoryJournal):
    """A journal that cannot always be reached; one that is silent gives no answer, and cannot be cut off either."""

    troubles = 0
    is_silent = False

    async def claim(self, agents: Collection[str], limit: int, lease_s: float) -> Sequence[Claimed]:
        await self.check()
        return await super().claim(agents, limit, lease_s)

    async def renew(self, lease_s: float) -> Collection[str]:
        await self.check()
        return await super().renew(lease_s)

    async def check(self) -> None:
        if self.troubles:
            self.troubles -= 1
            while self.is_silent and self.troubles:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.01)
            raise JournalError("the disk is full")


@pytest.mark.parametrize("is_silent", [False, True])
async def test_a_worker_outlives_a_journal_that_is_away(*, is_silent: bool) -> None:
    store, begun = Shaky(), asyncio.Event()

    async def hold() -> str:
        """Hold on."""
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return "held"

    agent = clerk(store, once(HOLD, "Done."), tool(hold, effect="read"))
    await agent.start("do it", run_id="r1")
    store.troubles = 1
    worker = worker_of(store, agent, lease_s=0.1)
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(begun.wait(), 20)
    store.troubles, store.is_silent = 1_000_000, is_silent
    await until(lambda: not worker.driven)  # let go before the lease is over
    store.is_silent = False
    with pytest.raises(JournalError, match="disk is full"):
        await asyncio.wait_for(worker_of(store, agent, lease_s=0.1).run(once=True), 20)
    store.troubles = 0
    await stands(store, "r1", "completed")
    await worker.drain(1)
    await asyncio.wait_for(running, 20)


async def test_a_worker_that_is_cancelled_leaves_no_run_behind_that_goes_on(store: JournalStore) -> None:
    begun = asyncio.Event()
    agent = clerk(store, [HOLD], holding(begun))
    await agent.start("hold on", run_id="r1")
    worker = worker_of(store, agent)
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(begun.wait(), 20)
    running.cancel()
    await asyncio.wait((running,), timeout=20)
    assert not worker.driven
    assert (await store.summary("r1")).status == "queued"


async def test_an_agent_that_is_served_may_also_be_asked_by_another(store: JournalStore) -> None:
    own = clerk(store, once(calls(("ask_first", {"what": "mail"})), "Sent."), ask_first)
    asks = own.as_tool("clerk", "It mails.")
    chief = clerk(store, once(calls(("clerk", {"task": "mail it"})), "Done."), asks, name="chief")
    await chief.start("mail it", run_id="r1")
    await serve(store, own, chief)
    assert (await store.summary("r1")).status == "paused"
    (question,) = Run.of(await state_of(store, "r1")).waiting
    assert (await speak(store, "r1", Approve(((question.id, ""),), "mika"))).outcome == "applied"
    await serve(store, own, chief)
    assert ((await store.summary("r1")).status, (await store.summary("r1.1.0")).status) == ("completed", "completed")


async def test_a_doubt_that_is_settled_before_anybody_drives_on_replays(store: JournalStore) -> None:
    begun = asyncio.Event()
    agent = clerk(store, [HOLD, "Sent."], holding(begun, effect="write"))
    await agent.start("send it", run_id="r1")
    running = asyncio.create_task(worker_of(store, agent).run())
    await asyncio.wait_for(begun.wait(), 20)
    running.cancel()
    await asyncio.wait((running,), timeout=20)
    assert (await speak(store, "r1", Settle("1.0", "done", "mika", "sent"))).outcome == "applied"
    await serve(store, agent)
    assert (await store.summary("r1")).answer == "Sent."
    await events_of(store, "r1")
