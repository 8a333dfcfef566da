"""What all stores promise of words, lists and workers."""

from __future__ import annotations

import asyncio
import json
import time
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

from records import until
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.sqlite import SqliteJournal
from surefoot.types.errors import LeaseLost, RunBusy, RunExists, RunUnknown, UsageError
from surefoot.types.events import CallStarted, RunEnded
from surefoot.types.inner import Outer
from surefoot.types.outcomes import Cancelled
from surefoot.types.ports import Claimed, JournalStore, RunFilter, RunJournal, RunSummary, Standing
from surefoot.types.words import Approve, Note, Resume

pytestmark = pytest.mark.anyio

END = RunEnded(Cancelled("mika"))
LISTS = (Path(__file__).parents[1] / "data" / "journal_lists.jsonl").read_text("utf-8").splitlines()
Two = tuple[JournalStore, JournalStore]


# --- words


async def test_a_word_waits_until_it_is_heard_and_counts_once_or_says_why_not(store: JournalStore) -> None:
    await queue(store, "r1")
    posted, other = await store.say("r1", NO), await store.say("r1", Approve((("1.0", "ab"),), "mika"))
    assert (posted.word, posted.outcome) == (NO, "")
    run = await store.open("r1")
    assert await run.words() == [posted, other]
    heard = replace(posted, outcome="applied", seq=1)
    await run.append([END], "written", heard=[heard])
    assert await run.words() == [other]
    assert await store.posted("r1", posted.number) == heard
    await run.append((), "written", heard=[replace(other, outcome="changed", detail="look again")])
    assert (await store.posted("r1", other.number)).detail == "look again"


async def test_a_key_gives_the_first_word_again_and_no_other(store: JournalStore) -> None:
    await queue(store, "r1")
    await queue(store, "r2")
    first = await store.say("r1", NO, key="k")
    assert await store.say("r1", NO, key="k") == first
    assert (await store.say("r2", NO, key="k")).number != first.number
    with pytest.raises(UsageError, match="used for another word"):
        await store.say("r1", Note("more", "mika"), key="k")


async def test_words_to_runs_and_of_numbers_that_are_not_there_are_errors(store: JournalStore) -> None:
    await queue(store, "r1")
    with pytest.raises(RunUnknown):
        await store.say("r2", NO)
    with pytest.raises(UsageError, match="no word 7"):
        await store.posted("r1", 7)


async def test_whoever_drives_is_woken_by_a_word_and_by_one_that_waited(store: JournalStore) -> None:
    await queue(store, "r1")
    run, woken, again = await store.open("r1"), asyncio.Event(), asyncio.Event()
    run.listen(woken.set)
    await asyncio.sleep(0)
    assert not woken.is_set()
    await store.say("r1", NO)
    await asyncio.wait_for(woken.wait(), 5)
    run.listen(again.set)
    await asyncio.wait_for(again.wait(), 5)
    run.listen(None)
    await run.release()


async def test_words_come_from_another_store_of_the_same_journal(two: Two) -> None:
    here, there = two
    await queue(here, "r1")
    run, woken = await here.open("r1"), asyncio.Event()
    run.listen(woken.set)
    with pytest.raises(RunBusy):
        await there.open("r1")
    await there.say("r1", NO)
    await asyncio.wait_for(woken.wait(), 5)
    assert [one.word for one in await run.words()] == [NO]


# --- the queue


async def test_a_run_is_claimed_once_by_whoever_serves_its_agent(store: JournalStore) -> None:
    await queue(store, "r1")
    assert await claimed(store, "other") == []
    assert await claimed(store) == [Claimed("r1", CLERK, 1)]
    assert await claimed(store) == []
    await (await store.open("r1", fence=1)).release()
    assert await claimed(store) == [Claimed("r1", CLERK, 2)]
    for _ in range(2):  # whoever takes it without a claim is another driver, too
        await (await store.open("r1")).release()
    assert [one.fence > 3 for one in await claimed(store)] == [True]


async def test_a_claim_that_is_not_opened_ends_with_its_lease(store: JournalStore) -> None:
    await queue(store, "r1")
    assert [one.fence for one in await store.claim((CLERK,), 1, 0.0)] == [1]
    await store.renew(30.0)  # that is for runs that are driven
    await asyncio.sleep(0.01)
    assert [one.fence for one in await claimed(store)] == [2]
    with pytest.raises(LeaseLost):
        await store.open("r1", fence=1)
    await (await store.open("r1", fence=2)).release()


async def test_a_run_that_is_being_opened_is_neither_claimed_nor_opened_again(store: JournalStore) -> None:
    await queue(store, "r1")
    (one,) = await claimed(store)
    run, again, others = await asyncio.gather(
        store.open("r1", fence=one.fence), store.open("r1"), claimed(store), return_exceptions=True
    )
    assert isinstance(again, RunBusy)
    assert others == []
    assert not isinstance(run, BaseException)
    await run.append([END], "written")
    await run.release()


async def test_claims_come_in_the_order_in_which_runs_were_ready_up_to_a_limit(store: JournalStore) -> None:
    for name in ("r0", "r1", "r2"):
        await queue(store, name)
    assert [one.run_id for one in await claimed(store, limit=1)] == ["r0"]
    due = time.time() + 0.05
    await (await store.open("r2")).release("approval", wake_at=due)
    await until(lambda: time.time() > due)
    await queue(store, "r3")
    await store.say("r1", NO)  # it was ready before
    assert await taken(store) == ["r1", "r2", "r3"]


async def test_runs_of_a_driver_that_is_gone_are_claimed_before_all_that_wait(two: Two) -> None:
    here, there = two
    for name in ("r1", "r2", "r3"):
        await queue(here, name)
    for one in await claimed(here, limit=2):
        await here.open(one.run_id, fence=1)
    await here.renew(0.0)
    found = [(one.run_id, one.is_takeover) for one in await claimed(there)]
    assert found == [("r1", True), ("r2", True), ("r3", False)]


@pytest.mark.parametrize("standing", ["approval", "in_doubt", "set_aside"])
async def test_a_run_that_stands_still_is_ready_when_a_word_comes(store: JournalStore, standing: Standing) -> None:
    await queue(store, "r1", standing=standing)
    assert await claimed(store) == []
    await store.say("r1", NO)
    assert await taken(store) == ["r1"]


async def test_a_run_that_waits_until_a_time_is_ready_then(store: JournalStore) -> None:
    for name, wake_at in (("r1", 1.0), ("r2", 9e9)):
        await queue(store, name)
        await (await store.open(name)).release("approval", wake_at=wake_at)
    assert await taken(store) == ["r1"]


async def test_a_word_that_comes_while_a_run_is_let_go_makes_it_ready(store: JournalStore) -> None:
    await queue(store, "r1")
    run = await store.open("r1")
    await store.say("r1", NO)
    await run.release("approval")
    assert await taken(store) == ["r1"]


async def test_a_run_that_has_ended_or_is_of_no_agent_is_never_claimed(store: JournalStore) -> None:
    await write(store, "r1", story())
    await write(store, "r2", [begun("r2"), END])
    assert await claimed(store, CLERK, "") == []


async def test_a_lease_that_is_over_lets_another_store_take_the_run(two: Two) -> None:
    here, there = two
    await queue(here, "r1")
    assert await here.claim((CLERK,), 1, 30.0)
    zombie = await here.open("r1", fence=1)
    assert await claimed(there) == []  # its owner lives
    await here.renew(0.0)  # as if it had not for a long time
    (found,) = await claimed(there)
    assert (found.run_id, found.is_takeover, found.fence) == ("r1", True, 2)
    with pytest.raises(LeaseLost, match="gone on without this process"):
        await there.open("r1", fence=1)
    with pytest.raises(RunBusy, match="somebody else drives"):  # before the next has written
        await zombie.append([CallStarted("1.0")], "written")
    run = await there.open("r1", fence=2)
    await run.append([CallStarted("1.0")], "written")
    assert await here.renew(30.0) == ["r1"]
    assert len(await run.read()) == 2
    await there.aclose()
    with pytest.raises(RunBusy):
        await here.aclose()


# --- lists


async def test_a_list_shows_what_is_wanted_newest_first(store: JournalStore) -> None:
    await queue(store, "r1", "sum up the 红色 report", labels={"team": "red"})
    await queue(store, "r2", "write to Bob", labels={"team": "blue"})
    await write(store, "r3", [begun("r3", labels={"team": "red"}), END])
    await queue(store, "q4", standing="approval")
    await queue(store, "s5", standing="set_aside")
    await queue(store, "w6", standing="ready")
    await write(store, "own", story("own"))
    await write(store, "old", story("old")[:1])
    driven = await store.open("at-work", create=True)
    await driven.append([begun("at-work")], "written")
    for row in map(json.loads, LISTS):
        found, wanted = row["found"].split(), RunFilter(**row["wanted"])
        assert await listed(store, wanted) == found, wanted
        assert await store.count(wanted) == len(found), wanted
    assert await store.count(RunFilter(agent=CLERK), most=2) == 2
    await driven.release()


async def test_pages_join_without_gaps_whatever_comes_meanwhile(store: JournalStore) -> None:
    early = await store.open("early", create=True)
    for number in range(7):
        await queue(store, f"r{number}")
    page = await store.list(limit=3)
    seen, second = [one.run_id for one in page.runs], page.next
    while page.next:
        await queue(store, f"late{len(seen)}")
        page = await store.list(after=page.next, limit=3)
        seen += [one.run_id for one in page.runs]
    assert seen == [f"r{number}" for number in reversed(range(7))]
    await early.append([begun("early")], "written")
    assert await listed(store, after=second) == ["r3", "r2", "r1", "r0", "early"]
    for run_id in ("r1", "r2"):
        await store.delete(run_id)
    assert await listed(store, after=second, limit=2) == ["r3", "r0"]
    with pytest.raises(UsageError, match="not where a page begins"):
        await store.list(after="x")


async def test_a_summary_says_how_a_run_stands(store: JournalStore) -> None:
    await queue(store, "r1", labels={"team": "red"})
    one = await store.summary("r1")
    assert (one.status, one.agent, dict(one.labels), one.events) == ("queued", CLERK, {"team": "red"}, 1)
    run = await store.open("r1")
    assert (await store.summary("r1")).status == "running"
    await run.release("approval")
    assert (await store.summary("r1")).status == "paused"
    with pytest.raises(RunUnknown):
        await store.summary("r9")


async def test_changes_are_told_in_their_order_and_from_where_one_left_off(store: JournalStore) -> None:
    await queue(store, "r1")
    await queue(store, "r2")
    seen: list[RunSummary] = []

    async def follow(since: int | None) -> None:
        async for one in store.changes(since):
            seen.append(one)  # noqa: PERF401  # as they come

    following = asyncio.create_task(follow(0))
    await until(lambda: len({one.run_id for one in seen}) == 2)
    await (await store.open("r1")).release("approval")
    await until(lambda: seen[-1].status == "paused")
    following.cancel()
    await asyncio.wait((following,))
    numbers = [one.change for one in seen]
    assert numbers == sorted(numbers)
    last, seen[:] = numbers[-1], []
    following = asyncio.create_task(follow(last))
    await asyncio.sleep(0.05)
    assert seen == []
    await store.aclose()  # ends it
    await asyncio.wait_for(following, 5)


async def test_a_deleted_run_is_gone_unless_it_is_driven_or_shared(store: JournalStore) -> None:
    await write(store, "r1", story())
    await store.fork("r1", 2, "r2")
    with pytest.raises(UsageError, match="shares its records"):
        await store.delete("r1")
    await store.delete("r2")
    run = await store.open("r1")
    with pytest.raises(RunBusy):
        await store.delete("r1")
    await run.release()
    await store.delete("r1")
    assert await listed(store) == await store.runs() == []
    with pytest.raises(RunUnknown):
        await store.summary("r1")
    await write(store, "r1", story())  # the id is free again
    with pytest.raises(RunExists):
        await store.open("r1", create=True)


async def test_a_claim_goes_from_process_to_process_and_ends_when_others_take_the_run(two: Two) -> None:
    here, there = two
    await queue(here, "r1")
    (mine,) = await here.claim((CLERK,), 1, 30.0)
    first = await here.open("r1", fence=mine.fence)
    await first.append([CallStarted("1.0")], "written")
    with pytest.raises(RunBusy, match="another process"):
        await there.open("r1")
    second = await there.open("r1", fence=mine.fence)  # the same claim
    await second.append([CallStarted("1.1")], "written", place=first.place)
    with pytest.raises(LeaseLost):
        await first.append([CallStarted("1.2")], "written")
    assert await claimed(there) == []  # its lease goes on
    await second.release("approval")
    mended = await there.open("r1", fence=mine.fence)  # nobody else has had it
    await mended.release("approval")
    await add(there, "r1", standing="approval")  # whoever takes it up otherwise
    with pytest.raises(LeaseLost):
        await there.open("r1", fence=mine.fence)
    await there.aclose()
    with pytest.raises(RunBusy):
        await here.aclose()


async def test_bytes_are_kept_for_a_run_without_the_right_to_drive_it(store: JournalStore) -> None:
    await queue(store, "r1")
    run = await store.open("r1")
    digest = await store.put_blob("r1", b"long")
    assert await store.get_blob(digest) == await run.get_blob(digest) == b"long"
    with pytest.raises(RunUnknown):
        await store.put_blob("r2", b"long")


# --- runs that were lost to another


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


# --- lists while runs come and go


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
