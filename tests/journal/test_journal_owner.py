"""Whoever has lost a run to another can change nothing of it any more; and what lists say when runs come and go."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from journal_cases import downgrade, started, story, write

from surefoot.journal.memory import MemoryJournal
from surefoot.journal.sqlite import SqliteJournal
from surefoot.types.errors import RunBusy, RunExists, UsageError
from surefoot.types.events import CallStarted, RunEnded
from surefoot.types.inner import Outer
from surefoot.types.outcomes import Cancelled
from surefoot.types.ports import Claimed, JournalStore, RunFilter
from surefoot.types.task import Task
from surefoot.types.words import Cancel, Note, Resume

pytestmark = pytest.mark.anyio

CLERK = "clerk"
NO = Cancel("mika")
END = RunEnded(Cancelled("mika"))


async def queue(store: JournalStore, run_id: str, **changes: object) -> None:
    run = await store.open(run_id, create=True)
    await run.append([replace(started(run_id), task=Task("sum up"), agent=CLERK, **changes)], "synced")
    await run.release()


async def taken(here: JournalStore, there: JournalStore) -> None:
    """What one store drives, the other takes over, as if the first had slept for long."""
    claimed = list[Claimed]()
    while not claimed:  # what it said of itself before may still be on its way
        await here.renew(-1.0)
        claimed += await there.claim((CLERK,), 1, 30.0)
    assert [one.is_takeover for one in claimed] == [True]


@pytest.fixture
async def two(another: Callable[[], JournalStore]) -> AsyncIterator[tuple[JournalStore, JournalStore]]:
    here, there = another(), another()
    await queue(here, "r1")
    await here.claim((CLERK,), 1, 30.0)
    yield here, there
    await there.aclose()
    with suppress(RunBusy):
        await here.aclose()


async def test_nothing_is_added_by_whoever_lost_the_run_before_the_next_has_written(
    two: tuple[JournalStore, JournalStore],
) -> None:
    here, there = two
    zombie = await here.open("r1", fence=1)
    await taken(here, there)
    with pytest.raises(RunBusy, match="somebody else drives"):
        await zombie.append([CallStarted("1.0")], "written")
    run = await there.open("r1")
    await run.append([CallStarted("1.0")], "written")
    assert len(await run.read()) == 2


async def test_a_word_is_not_heard_by_whoever_lost_the_run(two: tuple[JournalStore, JournalStore]) -> None:
    here, there = two
    zombie = await here.open("r1", fence=1)
    posted = await there.say("r1", NO)
    await taken(here, there)
    with pytest.raises(RunBusy):
        await zombie.append([], "written", heard=[replace(posted, outcome="not_waiting")])
    run = await there.open("r1")
    assert await run.words() == [posted]


async def test_whoever_lost_the_run_does_not_change_what_lists_show(two: tuple[JournalStore, JournalStore]) -> None:
    here, there = two
    zombie = await here.open("r1", fence=1)
    await taken(here, there)
    run = await there.open("r1")
    await run.append([END], "written")
    await run.release()
    await zombie.release()
    (line,) = (await there.list()).runs
    assert (line.status, line.events) == ("cancelled", 2)


async def test_runs_that_are_let_go_with_one_that_was_lost_are_shown_as_they_stand(
    two: tuple[JournalStore, JournalStore],
) -> None:
    here, there = two
    zombie = await here.open("r1", fence=1)
    await queue(here, "r2")
    other = await here.open("r2")
    await taken(here, there)
    lost, kept = await asyncio.gather(
        zombie.append([CallStarted("1.0")], "written"), other.release("approval"), return_exceptions=True
    )
    assert isinstance(lost, RunBusy)
    assert kept is None
    assert (await here.summary("r2")).standing == "approval"


async def test_the_run_of_an_agent_is_claimed_by_nobody(store: JournalStore) -> None:
    await queue(store, "r0.1.0", outer=Outer("r0", "1.0", "sum up"))
    await store.say("r0.1.0", NO)
    assert await store.claim((CLERK,), 9, 30.0) == []


async def test_the_run_of_an_agent_whose_driver_died_is_claimed_by_nobody(tmp_path: Path) -> None:
    here, there = SqliteJournal(tmp_path / "runs.db"), SqliteJournal(tmp_path / "runs.db")
    run = await here.open("r0.1.0", create=True)
    await run.append([replace(started("r0.1.0"), agent=CLERK, outer=Outer("r0", "1.0", "sum up"))], "synced")
    _forget_owner(tmp_path / "runs.db")
    assert await there.claim((CLERK,), 9, 30.0) == []
    await there.aclose()
    await here.aclose()


def _forget_owner(path: Path) -> None:
    """As if whoever drives its runs had died."""
    with sqlite3.connect(path) as db:
        db.execute("UPDATE run SET owner='0' WHERE owner<>''")
    db.close()


async def test_a_word_to_a_run_that_ended_with_its_driver_is_heard(tmp_path: Path) -> None:
    here, there = SqliteJournal(tmp_path / "runs.db"), SqliteJournal(tmp_path / "runs.db")
    await queue(here, "r1")
    run = await here.open("r1")
    await run.append([END], "synced")
    _forget_owner(tmp_path / "runs.db")
    assert await there.claim((CLERK,), 9, 30.0) == []
    await there.say("r1", Resume("mika"))
    assert [one.run_id for one in await there.claim((CLERK,), 9, 30.0)] == ["r1"]
    await there.aclose()
    await here.aclose()


async def test_a_run_that_is_set_aside_is_left_alone_whatever_waits_there(store: JournalStore) -> None:
    await queue(store, "r1")
    run = await store.open("r1")
    await store.say("r1", Note("more", "mika"))
    await run.release("set_aside", why="it fails")
    assert await store.claim((CLERK,), 9, 30.0) == []
    await store.say("r1", Resume("mika"))
    assert [one.run_id for one in await store.claim((CLERK,), 9, 30.0)] == ["r1"]


async def test_words_from_another_process_are_heard_on_the_next_event_loop_too(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    def on_a_loop_of_its_own(journal: SqliteJournal, run_id: str) -> bool:
        async def heard() -> bool:
            run, woken = await journal.open(run_id, create=True), asyncio.Event()
            await run.append([started(run_id)], "written")
            run.listen(woken.set)
            there = SqliteJournal(path)
            await there.say(run_id, NO)
            await there.aclose()
            await asyncio.wait_for(woken.wait(), 5)
            await run.release()
            return True

        return asyncio.run(heard())

    journal = SqliteJournal(path)
    assert await asyncio.to_thread(on_a_loop_of_its_own, journal, "r1")
    assert await asyncio.to_thread(on_a_loop_of_its_own, journal, "r2")
    await journal.aclose()


async def test_a_word_to_a_new_run_is_heard_by_whoever_listens_to_it_only_afterwards(tmp_path: Path) -> None:
    here, there = SqliteJournal(tmp_path / "runs.db"), SqliteJournal(tmp_path / "runs.db")
    for run_id, speaker in (("r1", here), ("r2", there)):
        run, woken = await here.open(run_id, create=True), asyncio.Event()
        await run.append([started(run_id)], "written")
        await speaker.say(run_id, NO)
        run.listen(woken.set)
        assert woken.is_set() or speaker is there  # another process is heard a moment later
        await asyncio.wait_for(woken.wait(), 5)
        await run.release()
    await here.aclose()
    await there.aclose()


async def test_an_id_is_used_while_its_run_is_only_about_to_be_written(store: JournalStore) -> None:
    run, *others = [await store.open(f"r{number}", create=True) for number in (1, 2, 3)]
    await run.append([started("r1")])
    leaving = asyncio.ensure_future(run.release())
    await asyncio.sleep(0)  # it has begun
    with pytest.raises((RunExists, RunBusy)):
        await store.open("r1", create=True)
    await leaving
    for other in others:
        await other.release()


# --- lists


async def test_a_change_after_a_deletion_is_a_later_one_and_is_found(store: JournalStore) -> None:
    await queue(store, "r1")
    await queue(store, "r2")
    wanted = RunFilter(q="sum up")
    assert [one.run_id for one in (await store.list(wanted)).runs] == ["r2", "r1"]
    newest = (await store.summary("r2")).change
    await store.delete("r2")
    await queue(store, "r3")
    assert (await store.summary("r3")).change > newest
    assert [one.run_id for one in (await store.list(wanted)).runs] == ["r3", "r1"]
    await store.delete("r1")
    await store.delete("r3")
    await queue(store, "r4")
    assert [one.run_id for one in (await store.list(wanted)).runs] == ["r4"]


async def test_what_was_deleted_is_not_left_where_text_is_looked_for(tmp_path: Path) -> None:
    store = SqliteJournal(tmp_path / "runs.db")
    run = await store.open("r1", create=True)
    await run.append([replace(started("r1"), task=Task("xylophone"))], "synced")
    await run.release()
    assert (await store.list(RunFilter(q="xylo"))).runs
    await store.delete("r1")
    await store.aclose()
    db = sqlite3.connect(tmp_path / "runs.db")
    assert not db.execute("SELECT * FROM search WHERE text LIKE '%xylo%'").fetchall()
    db.close()


ODD = "a\ud800b"


async def test_texts_that_are_no_unicode_are_kept_and_looked_for(store: JournalStore) -> None:
    run = await store.open("r1", create=True)
    await run.append([replace(started("r1"), task=Task(f"sum {ODD} up"), labels={"team": ODD})], "synced")
    posted = await store.say("r1", NO, key="k")
    await asyncio.wait_for(run.append([], "written", heard=[replace(posted, outcome="changed", detail=ODD)]), 20)
    await asyncio.wait_for(run.release(), 20)
    assert [one.run_id for one in (await store.list(RunFilter(q="sum"))).runs] == ["r1"]
    for wanted in (
        RunFilter(q=ODD + "cd"),
        RunFilter(labels=(f"x={ODD}",)),
        RunFilter(q="a\0b"),
        RunFilter(prefix=ODD),
    ):
        assert (await store.list(wanted)).runs == (), wanted


async def test_a_short_text_is_how_the_id_or_a_label_begins(store: JournalStore) -> None:
    await queue(store, "r1", labels={"team": "红"})
    await queue(store, "s2")
    for q, found in (("s", ["s2"]), ("su", []), ("te", ["r1"]), ("1", [])):
        assert [one.run_id for one in (await store.list(RunFilter(q=q))).runs] == found, q


async def test_pages_join_also_when_a_run_is_deleted_or_begins_meanwhile(store: JournalStore) -> None:
    early = await store.open("early", create=True)
    for number in range(6):
        await queue(store, f"r{number}")
    page = await store.list(limit=3)
    assert [one.run_id for one in page.runs] == ["r5", "r4", "r3"]
    await early.append([started("early")], "written")
    assert [one.run_id for one in (await store.list(after=page.next, limit=3)).runs][:3] == ["r2", "r1", "r0"]
    await store.delete("r0")
    await store.delete("r1")
    assert [one.run_id for one in (await store.list(after=page.next, limit=1)).runs] == ["r2"]


async def test_the_changes_of_an_empty_store_end_when_it_is_closed() -> None:
    store = MemoryJournal()

    async def follow() -> None:
        async for _ in store.changes():
            pass

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    await store.aclose()
    await asyncio.wait_for(following, 5)


@pytest.mark.parametrize("may_write", [True, False])
async def test_whoever_only_reads_lists_and_looks_for_text_and_writes_nothing(tmp_path: Path, may_write: bool) -> None:
    path = tmp_path / "runs.db"
    here = SqliteJournal(path)
    await queue(here, "r1")
    await write(here, "r2", story("r2"))
    await here.aclose()
    if not may_write:
        _locked(path, 0o500)
    before = _bytes(path)
    reader = SqliteJournal(path, read_only=True)
    try:
        assert [one.run_id for one in (await reader.list(RunFilter(q="sum"))).runs] == ["r1"]
        assert [one.run_id for one in (await reader.list(RunFilter(status="completed"))).runs] == ["r2"]
        await reader.aclose()
        assert _bytes(path) == before
    finally:
        _locked(path, 0o700)


def _locked(path: Path, mode: int) -> None:
    path.chmod(mode & 0o600)
    path.parent.chmod(mode)


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


@pytest.mark.parametrize("form", [1, 2])
async def test_a_file_of_an_earlier_form_is_listed_by_whoever_only_reads(tmp_path: Path, form: int) -> None:
    path = tmp_path / "runs.db"
    here = SqliteJournal(path)
    for number in range(3):
        await write(here, f"r{number}", story(f"r{number}"))
    await here.aclose()
    downgrade(path, form)
    reader = SqliteJournal(path, read_only=True)
    page = await reader.list(limit=2)
    assert [one.run_id for one in page.runs] == ["r2", "r1"]
    assert [one.run_id for one in (await reader.list(after=page.next, limit=2)).runs] == ["r0"]
    assert await reader.count(RunFilter(status="completed")) == 3
    assert (await reader.list(RunFilter(q="score", agent=CLERK))).runs == ()
    with pytest.raises(UsageError, match="no word 1"):
        await reader.posted("r1", 1)
    assert (await reader.summary("r1")).change == 0
    following = reader.changes()
    waiting = asyncio.ensure_future(anext(following))
    await asyncio.sleep(0)
    await reader.aclose()
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(waiting, 5)
