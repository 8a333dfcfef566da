"""Whoever has lost a run to another can change nothing of it any more; and what lists say when runs come and go."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from journal_cases import (
    CLERK,
    NO,
    add,
    alter,
    begun,
    claimed,
    downgrade,
    listed,
    queue,
    started,
    stored,
    story,
    taken,
    write,
)

from surefoot.journal.memory import MemoryJournal
from surefoot.journal.sqlite import SqliteJournal
from surefoot.types.errors import RunBusy, RunExists, UsageError
from surefoot.types.events import CallStarted, RunEnded
from surefoot.types.inner import Outer
from surefoot.types.outcomes import Cancelled
from surefoot.types.ports import Claimed, JournalStore, RunFilter, RunJournal
from surefoot.types.words import Note, Resume

pytestmark = pytest.mark.anyio

END = RunEnded(Cancelled("mika"))
Files = tuple[SqliteJournal, SqliteJournal]
OUTER = Outer("r0", "1.0", "sum up")


async def taken_over(here: JournalStore, there: JournalStore) -> None:
    """What one store drives, the other takes over, as if the first had slept for long."""
    found = list[Claimed]()
    while not found:  # what it said of itself before may still be on its way
        await here.renew(-1.0)
        found += await there.claim((CLERK,), 1, 30.0)
    assert [one.is_takeover for one in found] == [True]


Lost = tuple[JournalStore, JournalStore, RunJournal]


@pytest.fixture
async def lost(two: tuple[JournalStore, JournalStore]) -> Lost:
    """Two stores, and run r1 as the first of them has claimed it; the other takes it over with `taken_over`."""
    here, there = two
    await queue(here, "r1")
    await here.claim((CLERK,), 1, 30.0)
    return here, there, await here.open("r1", fence=1)


async def test_a_word_is_not_heard_by_whoever_lost_the_run(lost: Lost) -> None:
    here, there, zombie = lost
    posted = await there.say("r1", NO)
    await taken_over(here, there)
    with pytest.raises(RunBusy):
        await zombie.append([], "written", heard=[replace(posted, outcome="not_waiting")])
    assert await (await there.open("r1")).words() == [posted]


async def test_whoever_lost_the_run_does_not_change_what_lists_show(lost: Lost) -> None:
    here, there, zombie = lost
    await taken_over(here, there)
    await add(there, "r1", END)
    await zombie.release()
    (line,) = (await there.list()).runs
    assert (line.status, line.events) == ("cancelled", 2)


async def test_runs_that_are_let_go_with_one_that_was_lost_are_shown_as_they_stand(lost: Lost) -> None:
    here, there, zombie = lost
    await queue(here, "r2")
    other = await here.open("r2")
    await taken_over(here, there)
    told, kept = await asyncio.gather(
        zombie.append([CallStarted("1.0")], "written"), other.release("approval"), return_exceptions=True
    )
    assert isinstance(told, RunBusy)
    assert kept is None
    assert (await here.summary("r2")).standing == "approval"


async def test_the_run_of_an_agent_is_claimed_by_nobody(store: JournalStore) -> None:
    await queue(store, "r0.1.0", outer=OUTER)
    await store.say("r0.1.0", NO)
    assert await claimed(store) == []


@pytest.fixture
def several(path: Path, journal: SqliteJournal) -> Files:
    """Two stores of one file."""
    return journal, SqliteJournal(path)


FORGET_OWNER = "UPDATE run SET owner='0' WHERE owner<>''"
"""As if whoever drives its runs had died."""


async def test_the_run_of_an_agent_whose_driver_died_is_claimed_by_nobody(several: Files, path: Path) -> None:
    here, there = several
    run = await here.open("r0.1.0", create=True)
    await run.append([begun("r0.1.0", outer=OUTER)], "synced")
    alter(path, FORGET_OWNER)
    assert await claimed(there) == []
    await there.aclose()


async def test_a_word_to_a_run_that_ended_with_its_driver_is_heard(several: Files, path: Path) -> None:
    here, there = several
    run = await here.open("r1", create=True)
    await run.append([begun("r1"), END], "synced")
    alter(path, FORGET_OWNER)
    assert await claimed(there) == []
    await there.say("r1", Resume("mika"))
    assert await taken(there) == ["r1"]
    await there.aclose()


async def test_a_run_that_is_set_aside_is_left_alone_whatever_waits_there(store: JournalStore) -> None:
    await queue(store, "r1")
    run = await store.open("r1")
    await store.say("r1", Note("more", "mika"))
    await run.release("set_aside", why="it fails")
    assert await claimed(store) == []
    await store.say("r1", Resume("mika"))
    assert await taken(store) == ["r1"]


def test_words_from_another_process_are_heard_on_the_next_event_loop_too(path: Path) -> None:
    journal = SqliteJournal(path)

    async def hear(run_id: str) -> None:
        run, woken, there = await journal.open(run_id, create=True), asyncio.Event(), SqliteJournal(path)
        await run.append([started(run_id)], "written")
        run.listen(woken.set)
        await there.say(run_id, NO)
        await there.aclose()
        await asyncio.wait_for(woken.wait(), 5)
        await run.release()

    for run_id in ("r1", "r2"):
        asyncio.run(hear(run_id))
    asyncio.run(journal.aclose())


async def test_a_word_to_a_new_run_is_heard_by_whoever_listens_to_it_only_afterwards(several: Files) -> None:
    here, there = several
    for run_id, speaker in (("r1", here), ("r2", there)):
        run, woken = await here.open(run_id, create=True), asyncio.Event()
        await run.append([started(run_id)], "written")
        await speaker.say(run_id, NO)
        run.listen(woken.set)
        assert woken.is_set() or speaker is there  # another process is heard a moment later
        await asyncio.wait_for(woken.wait(), 5)
        await run.release()
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
    wanted = RunFilter(q="sum up")
    await queue(store, "r1")
    await queue(store, "r2")
    assert await listed(store, wanted) == ["r2", "r1"]
    newest = (await store.summary("r2")).change
    await store.delete("r2")
    await queue(store, "r3")
    assert (await store.summary("r3")).change > newest
    assert await listed(store, wanted) == ["r3", "r1"]
    await store.delete("r1")
    await store.delete("r3")
    await queue(store, "r4")
    assert await listed(store, wanted) == ["r4"]


async def test_what_was_deleted_is_not_left_where_text_is_looked_for(journal: SqliteJournal, path: Path) -> None:
    await queue(journal, "r1", "xylophone")
    assert await listed(journal, RunFilter(q="xylo")) == ["r1"]
    await journal.delete("r1")
    await journal.aclose()
    assert alter(path, "UPDATE search SET text='' WHERE text LIKE '%xylo%'") == 0


ODD = "a\ud800b"


async def test_texts_that_are_no_unicode_are_kept_and_looked_for(store: JournalStore) -> None:
    run = await store.open("r1", create=True)
    await run.append([begun("r1", f"sum {ODD} up", labels={"team": ODD})], "synced")
    posted = await store.say("r1", NO, key="k")
    await asyncio.wait_for(run.append([], "written", heard=[replace(posted, outcome="changed", detail=ODD)]), 20)
    await asyncio.wait_for(run.release(), 20)
    assert await listed(store, RunFilter(q="sum")) == ["r1"]
    for q in (ODD + "cd", "a\0b"):
        assert await listed(store, RunFilter(q=q)) == []
    for wanted in (RunFilter(labels=(f"x={ODD}",)), RunFilter(prefix=ODD)):
        assert await listed(store, wanted) == []


async def test_a_short_text_is_how_the_id_or_a_label_begins(store: JournalStore) -> None:
    await queue(store, "r1", labels={"team": "红"})
    await queue(store, "s2")
    for q, found in (("s", ["s2"]), ("su", []), ("te", ["r1"]), ("1", [])):
        assert await listed(store, RunFilter(q=q)) == found, q


async def test_the_changes_of_an_empty_store_end_when_it_is_closed() -> None:
    store = MemoryJournal()
    following = asyncio.ensure_future(anext(store.changes(), None))
    await asyncio.sleep(0)
    await store.aclose()
    assert await asyncio.wait_for(following, 5) is None


def _locked(path: Path, mode: int) -> None:
    path.chmod(mode & 0o600)
    path.parent.chmod(mode)


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


@pytest.mark.parametrize("may_write", [True, False])
async def test_whoever_only_reads_lists_and_looks_for_text_and_writes_nothing(path: Path, may_write: bool) -> None:
    here, reader = SqliteJournal(path), SqliteJournal(path, read_only=True)
    await queue(here, "r1")
    await write(here, "r2", story("r2"))
    await here.aclose()
    if not may_write:
        _locked(path, 0o500)
    before = _bytes(path)
    try:
        assert await listed(reader, RunFilter(q="sum")) == ["r1"]
        assert await listed(reader, RunFilter(status="completed")) == ["r2"]
        await reader.aclose()
        assert _bytes(path) == before
    finally:
        _locked(path, 0o700)


@pytest.mark.parametrize("form", [1, 2])
async def test_a_file_of_an_earlier_form_is_listed_by_whoever_only_reads(path: Path, form: int) -> None:
    await stored(path, "r0", "r1", "r2")
    downgrade(path, form)
    reader = SqliteJournal(path, read_only=True)
    page = await reader.list(limit=2)
    assert [one.run_id for one in page.runs] == ["r2", "r1"]
    assert await listed(reader, after=page.next, limit=2) == ["r0"]
    assert await reader.count(RunFilter(status="completed")) == 3
    assert await listed(reader, RunFilter(q="score", agent=CLERK)) == []
    with pytest.raises(UsageError, match="no word 1"):
        await reader.posted("r1", 1)
    assert (await reader.summary("r1")).change == 0
    waiting = asyncio.ensure_future(anext(reader.changes(), None))
    await asyncio.sleep(0)
    await reader.aclose()
    assert await asyncio.wait_for(waiting, 5) is None
