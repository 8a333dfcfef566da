"""Runs that change hands: no word is lost, none that waits is woken in vain, and none stands still for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from clerks import LOOK, ask_first, claimed, clerk, holding, limited, once, serve, stands, store_of, worker_of
from records import events_of, until
from surefoot import GuardConfig, tool
from surefoot.journal.heads import heads_of
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.memory_log import MemoryRun
from surefoot.journal.sqlite import SqliteJournal
from surefoot.run import Run, state_of
from surefoot.runtime.under_way import Leave
from surefoot.speak import speak
from surefoot.testing.journals import Crash, CrashingStore
from surefoot.testing.models import FunctionModel, calls
from surefoot.types.errors import JournalError
from surefoot.types.events import CallEnded, CallStarted, RunNoted, RunResumed
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.ports import Claimed, JournalStore
from surefoot.types.words import Approve, Note, Posted, Resume, Settle

pytestmark = pytest.mark.anyio

HOLD = calls(("hold", {}))


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[JournalStore]:
    one = store_of(request.param, tmp_path)
    yield one
    await one.aclose()


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
