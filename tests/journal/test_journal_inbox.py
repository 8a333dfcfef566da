"""What both stores promise of words, lists and workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from journal_cases import started, story, write

from records import until
from surefoot.types.errors import LeaseLost, RunBusy, RunExists, RunUnknown, UsageError
from surefoot.types.events import CallStarted, RunEnded, RunStarted
from surefoot.types.outcomes import Cancelled
from surefoot.types.ports import Claimed, JournalStore, RunFilter, RunSummary
from surefoot.types.task import Task
from surefoot.types.words import Approve, Cancel, Note, Posted

pytestmark = pytest.mark.anyio

CLERK = "clerk"
NO = Cancel("mika")


def begun(run_id: str, text: str = "sum up", **labels: str) -> RunStarted:
    return replace(started(run_id), task=Task(text), agent=CLERK, labels=labels)


async def queue(store: JournalStore, run_id: str, text: str = "sum up", **labels: str) -> None:
    """A run as a server puts it on record for a worker."""
    run = await store.open(run_id, create=True)
    await run.append([begun(run_id, text, **labels)], "synced")
    await run.release()


# --- words


async def test_a_word_waits_until_it_is_heard_and_counts_once(store: JournalStore) -> None:
    await queue(store, "r1")
    posted = await store.say("r1", NO)
    assert (posted.word, posted.outcome) == (NO, "")
    run = await store.open("r1")
    assert await run.words() == [posted]
    heard = replace(posted, outcome="applied", seq=1)
    await run.append([RunEnded(Cancelled("mika"))], "written", heard=[heard])
    assert await run.words() == []
    assert await store.posted("r1", posted.number) == heard


async def test_a_word_that_does_not_count_says_why(store: JournalStore) -> None:
    await queue(store, "r1")
    posted = await store.say("r1", Approve((("1.0", "ab"),), "mika"))
    run = await store.open("r1")
    await run.append((), "written", heard=[replace(posted, outcome="changed", detail="look again")])
    assert (await store.posted("r1", posted.number)).detail == "look again"


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
    run, woken = await store.open("r1"), asyncio.Event()
    run.listen(woken.set)
    await asyncio.sleep(0)
    assert not woken.is_set()
    await store.say("r1", NO)
    await asyncio.wait_for(woken.wait(), 5)
    again = asyncio.Event()
    run.listen(again.set)
    await asyncio.wait_for(again.wait(), 5)
    run.listen(None)
    await run.release()


async def test_words_come_from_another_store_of_the_same_journal(another: Callable[[], JournalStore]) -> None:
    here, there = another(), another()
    await queue(here, "r1")
    run, woken = await here.open("r1"), asyncio.Event()
    run.listen(woken.set)
    with pytest.raises(RunBusy):
        await there.open("r1")
    await there.say("r1", NO)
    await asyncio.wait_for(woken.wait(), 5)
    assert [one.word for one in await run.words()] == [NO]
    await here.aclose()
    await there.aclose()


# --- the queue


async def claimed(store: JournalStore, *agents: str, limit: int = 9) -> list[Claimed]:
    return list(await store.claim(agents or (CLERK,), limit, 30.0))


async def test_a_run_is_claimed_once_by_whoever_serves_its_agent(store: JournalStore) -> None:
    await queue(store, "r1")
    assert await claimed(store, "other") == []
    assert await claimed(store) == [Claimed("r1", CLERK, 1)]
    assert await claimed(store) == []
    run = await store.open("r1", fence=1)
    await run.release()
    assert await claimed(store) == [Claimed("r1", CLERK, 2)]
    run = await store.open("r1")
    await run.release()
    run = await store.open("r1")  # whoever takes it without a claim is another driver, too
    await run.release()
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
    await run.append([RunEnded(Cancelled("mika"))], "written")
    await run.release()


async def test_claims_come_in_the_order_in_which_runs_were_ready_up_to_a_limit(store: JournalStore) -> None:
    for name in ("r1", "r2", "r3"):
        await queue(store, name)
    assert [one.run_id for one in await claimed(store, limit=2)] == ["r1", "r2"]


async def test_a_run_whose_time_comes_is_claimed_before_those_that_were_ready_later(store: JournalStore) -> None:
    await queue(store, "r1")
    await queue(store, "r2")
    due = time.time() + 0.05
    await (await store.open("r2")).release("approval", wake_at=due)
    await until(lambda: time.time() > due)
    await queue(store, "r3")
    await store.say("r1", NO)  # it was ready before
    assert [one.run_id for one in await claimed(store)] == ["r1", "r2", "r3"]


async def test_runs_of_a_driver_that_is_gone_are_claimed_before_all_that_wait(
    another: Callable[[], JournalStore],
) -> None:
    here, there = another(), another()
    for name in ("r1", "r2", "r3"):
        await queue(here, name)
    assert [one.run_id for one in await claimed(here, limit=2)] == ["r1", "r2"]
    for name in ("r1", "r2"):
        await here.open(name, fence=1)
    await here.renew(0.0)
    assert [(one.run_id, one.is_takeover) for one in await claimed(there)] == [
        ("r1", True),
        ("r2", True),
        ("r3", False),
    ]
    await here.aclose()
    await there.aclose()


@pytest.mark.parametrize("standing", ["approval", "in_doubt", "set_aside"])
async def test_a_run_that_stands_still_is_ready_again_when_a_word_comes(store: JournalStore, standing: str) -> None:
    await queue(store, "r1")
    run = await store.open("r1")
    await run.release(standing)  # type: ignore[arg-type]  # one of these
    assert await claimed(store) == []
    await store.say("r1", NO)
    assert [one.run_id for one in await claimed(store)] == ["r1"]


async def test_a_run_that_waits_until_a_time_is_ready_then(store: JournalStore) -> None:
    await queue(store, "r1")
    await (await store.open("r1")).release("approval", wake_at=1.0)
    await queue(store, "r2")
    await (await store.open("r2")).release("approval", wake_at=9e9)
    assert [one.run_id for one in await claimed(store)] == ["r1"]


async def test_a_word_that_comes_while_a_run_is_let_go_makes_it_ready(store: JournalStore) -> None:
    await queue(store, "r1")
    run = await store.open("r1")
    await store.say("r1", NO)
    await run.release("approval")
    assert [one.run_id for one in await claimed(store)] == ["r1"]


async def test_a_run_that_has_ended_or_is_of_no_agent_is_never_claimed(store: JournalStore) -> None:
    await write(store, "r1", story())
    run = await store.open("r2", create=True)
    await run.append([begun("r2"), RunEnded(Cancelled("mika"))])
    await run.release()
    assert await claimed(store, CLERK, "") == []


async def test_a_lease_that_is_over_lets_another_store_take_the_run(another: Callable[[], JournalStore]) -> None:
    here, there = another(), another()
    await queue(here, "r1")
    assert await here.claim((CLERK,), 1, 30.0)
    zombie = await here.open("r1", fence=1)
    assert await there.claim((CLERK,), 1, 30.0) == []  # its owner lives
    await here.renew(0.0)  # as if it had not for a long time
    (taken,) = await there.claim((CLERK,), 1, 30.0)
    assert (taken.run_id, taken.is_takeover, taken.fence) == ("r1", True, 2)
    with pytest.raises(LeaseLost, match="gone on without this process"):
        await there.open("r1", fence=1)
    run = await there.open("r1", fence=2)
    await run.append([CallStarted("1.0")], "written")
    assert await here.renew(30.0) == ["r1"]
    with pytest.raises(RunBusy, match="somebody else drives"):
        await zombie.append([CallStarted("1.0")], "written")
    assert len(await run.read()) == 2
    await there.aclose()
    with pytest.raises(RunBusy):
        await here.aclose()


# --- lists


async def listed(store: JournalStore, wanted: RunFilter, limit: int = 50) -> list[str]:
    return [one.run_id for one in (await store.list(wanted, limit=limit)).runs]


async def test_a_list_shows_what_is_wanted_newest_first(store: JournalStore) -> None:
    await queue(store, "r1", "sum up the 红色 report", team="red")
    await queue(store, "r2", "write to Bob", team="blue")
    run = await store.open("r3", create=True)
    await run.append([begun("r3", "sum up", team="red"), RunEnded(Cancelled("mika"))])
    await run.release()
    await queue(store, "q4")
    await (await store.open("q4")).release("approval")
    await queue(store, "s5")
    await (await store.open("s5")).release("set_aside", why="it fails")
    await queue(store, "w6")
    await (await store.open("w6")).release("ready")
    await write(store, "own", story("own"))
    await write(store, "old", story("old")[:1])
    driven = await store.open("at-work", create=True)
    await driven.append([begun("at-work", "sum up")], "written")
    for wanted, found in (
        (RunFilter(), ["at-work", "old", "own", "w6", "s5", "q4", "r3", "r2", "r1"]),
        (RunFilter(agent=CLERK), ["at-work", "w6", "s5", "q4", "r3", "r2", "r1"]),
        (RunFilter(agents=("other",)), []),
        (RunFilter(agent=CLERK, agents=("other",)), []),
        (RunFilter(agent=CLERK, agents=("other", CLERK), status="paused"), ["q4"]),
        (RunFilter(status="running"), ["at-work"]),
        (RunFilter(status="interrupted"), ["old"]),
        (RunFilter(status="set_aside"), ["s5"]),
        (RunFilter(status="ready"), ["w6"]),
        (RunFilter(labels=("team=red",)), ["r3", "r1"]),
        (RunFilter(labels=("team=red",), status="queued"), ["r1"]),
        (RunFilter(status="cancelled"), ["r3"]),
        (RunFilter(status="queued"), ["r2", "r1"]),
        (RunFilter(status="paused"), ["q4"]),
        (RunFilter(waiting=True), ["q4"]),
        (RunFilter(prefix="r"), ["r3", "r2", "r1"]),
        (RunFilter(q="红色 r"), ["r1"]),
        (RunFilter(q="to bob"), ["r2"]),
        (RunFilter(q="blue"), ["r2"]),
        (RunFilter(q="nowhere"), []),
        (RunFilter(until=1.0), []),
        (RunFilter(since=1.0, status="queued"), ["r2", "r1"]),
    ):
        assert await listed(store, wanted) == found, wanted
        assert await store.count(wanted) == len(found), wanted
    assert await store.count(RunFilter(agent=CLERK), most=2) == 2
    await driven.release()


async def test_pages_join_without_gaps_whatever_comes_meanwhile(store: JournalStore) -> None:
    for number in range(7):
        await queue(store, f"r{number}")
    page = await store.list(limit=3)
    seen = [one.run_id for one in page.runs]
    while page.next:
        await queue(store, f"late{len(seen)}")
        page = await store.list(after=page.next, limit=3)
        seen += [one.run_id for one in page.runs]
    assert seen == [f"r{number}" for number in reversed(range(7))]
    with pytest.raises(UsageError, match="not where a page begins"):
        await store.list(after="x")


async def test_a_summary_says_how_a_run_stands(store: JournalStore) -> None:
    await queue(store, "r1", team="red")
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
    async with asyncio.timeout(5):
        while len({one.run_id for one in seen}) < 2:  # noqa: ASYNC110  # other processes may write, too
            await asyncio.sleep(0.01)
    await (await store.open("r1")).release("approval")
    async with asyncio.timeout(5):
        while seen[-1].status != "paused":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
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
    assert await listed(store, RunFilter()) == []
    assert await store.runs() == []
    with pytest.raises(RunUnknown):
        await store.summary("r1")
    await write(store, "r1", story())  # the id is free again
    with pytest.raises(RunExists):
        await store.open("r1", create=True)
    assert Posted(1, NO) != Posted(2, NO)


async def test_a_claim_goes_from_process_to_process_and_ends_when_others_take_the_run(
    another: Callable[[], JournalStore],
) -> None:
    here, there = another(), another()
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
    assert await there.claim((CLERK,), 1, 30.0) == []  # its lease goes on
    await second.release("approval")
    mended = await there.open("r1", fence=mine.fence)  # nobody else has had it
    await mended.release("approval")
    other = await there.open("r1")  # whoever takes it up otherwise
    await other.release("approval")
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
