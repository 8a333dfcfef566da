"""What both stores promise."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_cases import EVERY_KIND, REPLY, connection_of, read_all, started, story, write

from surefoot.journal.codec import encode, genesis
from surefoot.journal.memory import MemoryJournal, store_of
from surefoot.journal.raw import chain
from surefoot.journal.sqlite import SqliteJournal
from surefoot.run import new_run_id
from surefoot.types.errors import JournalError, LeaseLost, RunBusy, UsageError
from surefoot.types.events import VERSION, CallEnded, CallStarted, Event, RunEnded, RunForked, RunResumed, Speaker
from surefoot.types.outcomes import Stopped
from surefoot.types.ports import JournalStore, Place, Recorded, RunJournal
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio


async def test_every_kind_of_event_comes_back_as_it_was(store: JournalStore) -> None:
    await write(store, "r1", EVERY_KIND)
    run = await store.open("r1")
    assert await run.read() == list(EVERY_KIND)
    assert await run.read(5) == list(EVERY_KIND[5:])
    assert await run.read(len(EVERY_KIND)) == []
    assert await run.read(len(EVERY_KIND) + 7) == []


async def test_many_runs_at_once_keep_their_own_order(store: JournalStore) -> None:
    async def drive(name: str) -> None:
        run = await store.open(name, create=True)
        for step in range(20):
            await run.append([CallStarted(name, step)], ("soon", "written", "synced")[step % 3])
        assert await run.read() == [CallStarted(name, step) for step in range(20)]
        await run.release()

    await asyncio.gather(*(drive(f"r{i}") for i in range(25)))


async def test_one_driver_at_a_time(store: JournalStore) -> None:
    run = await store.open("r1", create=True)
    with pytest.raises(RunBusy, match="r1"):
        await store.open("r1")
    await run.release()
    await run.release()
    with pytest.raises(UsageError, match="released"):
        await run.append([REPLY])
    again = await store.open("r1")
    await again.append([REPLY])
    assert await again.read() == [REPLY]


async def test_unknown_and_known_ids(store: JournalStore) -> None:
    await write(store, "r1", story())
    for wrong in ("r9", "", "\ud800", "a\0b"):
        with pytest.raises(UsageError):
            await store.open(wrong)
        with pytest.raises(UsageError):
            await store.read_recorded(wrong)
        with pytest.raises(UsageError):
            await anext(aiter(store.subscribe(wrong)))
    with pytest.raises(UsageError, match="r1"):
        await store.open("r1", create=True)
    with pytest.raises(UsageError, match="printable"):
        await store.open("a\nb", create=True)


async def test_a_fork_shares_the_prefix_and_goes_its_own_way(store: JournalStore) -> None:
    events = story()
    await write(store, "r1", events)
    await store.fork("r1", 3, "r2")
    forked = RunForked("r2", "r1", 3, {"solo": Speaker("test:two")})
    run = await store.open("r2")
    assert await run.read() == events[:3]
    await run.append([forked, REPLY], "written")
    await run.release()
    await store.fork("r2", 2, "r3")  # within what r2 shares
    await store.fork("r2", 5, "r4")
    assert await read_all(store, "r1") == (events, "")
    assert await read_all(store, "r2") == ([*events[:3], forked, REPLY], "")
    assert await read_all(store, "r3") == (events[:2], "")
    assert await read_all(store, "r4") == ([*events[:3], forked, REPLY], "")
    await write_more(await store.open("r3"))
    await write_more(await store.open("r4"))
    assert (await read_all(store, "r3"))[0][2:] == [CallStarted("late")]
    assert [record.seq for record in (await store.read_recorded("r4", 2))[0]] == [2, 3, 4, 5]
    parent, child = (await store.read_recorded("r1"))[0], (await store.read_recorded("r2"))[0]
    assert child[:3] == parent[:3]
    assert child[3].hash == chain(bytes.fromhex(parent[2].hash), VERSION, child[3].at, encode(forked)[0]).hex()


async def write_more(run: RunJournal) -> None:
    await run.append([CallStarted("late")], "written")
    await run.release()


async def test_a_fork_needs_a_parent_a_place_and_a_new_id(store: JournalStore) -> None:
    await write(store, "r1", story())
    for parent, at, run_id in (("r9", 1, "r2"), ("r1", 1, "r1"), ("r1", 1, "")):
        with pytest.raises(UsageError):
            await store.fork(parent, at, run_id)
    for at in (-1, 0, 7):
        with pytest.raises(UsageError, match=f"run r1 has 6 records; fork it at 1 to 6, not at {at}"):
            await store.fork("r1", at, "r2")
    await store.open("empty", create=True)
    for at in (0, 1):
        with pytest.raises(UsageError, match="run empty has 0 records"):
            await store.fork("empty", at, "r2")
    await store.fork("r1", 6, "r2")
    assert await read_all(store, "r2") == (story(), "")


@pytest.mark.slow
async def test_a_long_line_of_forks_is_read(store: JournalStore) -> None:
    depth = 1_100 if isinstance(store, MemoryJournal) else 60  # each fork of a file reads the list of its ancestors
    await write(store, "f0", [started("f0")])
    for i in range(1, depth):
        await store.fork(f"f{i - 1}", i, f"f{i}")
        run = await store.open(f"f{i}")
        await run.append([CallStarted("c", i)], "soon")
        await run.release()
    last = await store.open(f"f{depth - 1}")
    events = [started("f0"), *[CallStarted("c", i) for i in range(1, depth)]]
    assert await last.read() == events
    assert await last.read(depth - 2) == events[-2:]
    records, wrong = await store.read_recorded(last.run_id)
    assert (wrong, [record.seq for record in records]) == ("", list(range(depth)))
    previous = genesis("f0")
    for record in records:
        previous = chain(previous, VERSION, record.at, encode(record.event)[0])
        assert record.hash == previous.hex()
    assert [info.events for info in await store.runs(1)] == [depth]
    await store.fork(last.run_id, 3, "early")
    assert (await read_all(store, "early"))[0] == events[:3]


async def test_a_run_without_records_can_be_taken_over_and_is_not_listed(store: JournalStore) -> None:
    await write(store, "r0", story("r0"))
    run = await store.open("r1", create=True)
    with pytest.raises(RunBusy, match="r1"):
        await store.open("r1", create=True)
    assert [info.run_id for info in await store.runs(1)] == ["r0"]
    await run.release()
    again = await store.open("r1", create=True)
    await again.append(story(), "written")
    assert [info.run_id for info in await store.runs()] == ["r1", "r0"]
    await again.release()
    with pytest.raises(UsageError, match="already"):
        await store.open("r1", create=True)
    await store.fork("r1", 2, "r2")
    with pytest.raises(UsageError, match="already"):
        await store.open("r2", create=True)
    assert await read_all(store, "r1") == (story(), "")


async def test_what_cannot_be_recorded_is_refused_and_adds_nothing(store: JournalStore) -> None:
    run = await store.open("r1", create=True)
    bad = CallEnded("c1", ToolResult(object()))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - the mistake is the case
    with pytest.raises(JournalError, match="cannot be recorded"):
        await run.append([CallStarted("c1"), bad], "written")
    await run.append([CallStarted("c2")], "written")
    assert await run.read() == [CallStarted("c2")]


async def test_blobs(store: JournalStore) -> None:
    data = b"long result" * 1000
    run = await store.open("r1", create=True)
    digest = await run.put_blob(data)
    assert digest == sha256(data).hexdigest() == await run.put_blob(data)
    assert await run.get_blob(digest) == data
    await run.append([started()], "written")
    assert await run.get_blob(digest) == data
    assert await store.get_blob(digest) == data
    late = await run.put_blob(b"late")
    await run.release()
    assert await store.get_blob(late) == b"late"
    with pytest.raises(JournalError, match="0000"):
        await store.get_blob("0000")


async def test_runs_are_listed_newest_first(store: JournalStore) -> None:
    await write(store, "r1", story())
    await store.fork("r1", 2, "r2")
    await write_more(await store.open("r2"))
    await store.fork("r1", 2, "r3")
    run = await store.open("r3")
    await run.append([RunForked("r3", "r1", 2, {"solo": Speaker("test:two")})], "written")
    last = await store.open("r4", create=True)
    await last.append([CallStarted("c1")])
    infos = {info.run_id: info for info in await store.runs()}
    assert list(infos) == ["r4", "r3", "r2", "r1"]
    assert [info.status for info in infos.values()] == ["running", "running", "interrupted", "completed"]
    assert [info.events for info in infos.values()] == [1, 3, 3, 6]
    assert [info.parent for info in infos.values()] == ["", "r1", "r1", ""]
    assert [info.model for info in infos.values()] == ["", "test:two", "test:one", "test:one"]
    assert [info.task[:5] for info in infos.values()] == ["", "Whose", "Whose", "Whose"]
    assert infos["r1"].started_at <= infos["r1"].changed_at <= infos["r3"].changed_at
    assert [info.run_id for info in await store.runs(2)] == ["r4", "r3"]


async def test_a_subscriber_sees_what_was_and_what_comes_until_the_end(store: JournalStore) -> None:
    events = story()
    run = await store.open("r1", create=True)
    await run.append(events[:2], "written")
    seen: list[Recorded] = []

    async def follow() -> None:
        seen.extend([record async for record in store.subscribe("r1", 1)])

    follower = asyncio.ensure_future(follow())
    for event in events[2:]:
        await asyncio.sleep(0)
        await run.append([event], "soon")
    async with asyncio.timeout(5):
        await follower
    assert seen == list((await store.read_recorded("r1", 1))[0])


async def test_a_run_taken_up_again_is_not_over(store: JournalStore) -> None:
    await write(store, "r1", story())
    assert [record.seq async for record in store.subscribe("r1", 6)] == []
    run = await store.open("r1")
    await run.append([RunResumed("ann")], "written")
    records = aiter(store.subscribe("r1", 5))
    async with asyncio.timeout(5):
        assert [(await anext(records)).seq, (await anext(records)).seq] == [5, 6]
        waiting = asyncio.ensure_future(anext(records))
        await asyncio.sleep(0)
        await run.append([RunEnded(Stopped("enough"))])
        assert (await waiting).event == RunEnded(Stopped("enough"))
        assert [record async for record in records] == []


async def test_closing_ends_subscriptions_and_writes_what_is_queued(store: JournalStore) -> None:
    run = await store.open("r1", create=True)
    await run.append([started()], "written")
    records = aiter(store.subscribe("r1"))
    assert (await anext(records)).event == started()
    rest = asyncio.ensure_future(anext(records, None))
    await asyncio.sleep(0)
    await run.append([REPLY])
    await store.aclose()
    async with asyncio.timeout(5):
        await rest
    with pytest.raises(UsageError):
        await run.append([REPLY])
    assert await read_all(store, "r1") == ([started(), REPLY], "")


_APPENDS = st.lists(
    st.tuples(st.lists(st.sampled_from(EVERY_KIND), min_size=1, max_size=3), st.floats(1, 2e9), st.integers(0, 3)),
    min_size=1,
    max_size=8,
)


@given(appends=_APPENDS, other=st.sampled_from(EVERY_KIND))
async def test_an_append_that_is_made_again_adds_nothing(
    store: JournalStore, appends: list[tuple[list[Event], float, int]], other: Event
) -> None:
    run = await store.open(name := new_run_id(), create=True)
    made: list[tuple[list[Event], float, Place, Place]] = []
    for events, at, again in appends:
        before = run.place
        made.append((events, at, before, await run.append(events, at=at, place=before)))
        assert made[-1][3] == run.place
        for events_, at_, before_, after in made[-again:] if again else ():
            assert await run.append(events_, ("soon", "written", "synced")[again % 3], at=at_, place=before_) == after
    written = await run.read()
    assert written == [event for events, _, _, _ in made for event in events]
    for events, at, before, _ in made:
        for wrong in ([*events[:-1], replace(REPLY, step=99)], [*events, *written, other]):
            with pytest.raises(LeaseLost, match="somebody else drives it"):
                await run.append(wrong, at=at, place=before)
        with pytest.raises(LeaseLost):
            await run.append(events, at=at + 1, place=before)
        with pytest.raises(LeaseLost):
            await run.append(events, at=at, place=Place(before.seq, b"\0" * 32))
    await run.release()
    again = await store.open(name)
    assert again.place == made[-1][3]
    assert await again.append(made[-1][0], at=made[-1][1], place=made[-1][2]) == again.place
    records, wrong_ = await store.read_recorded(name)
    assert (wrong_, len(records)) == ("", len(written))
    assert [record.at for record in records] == [at for events, at, _, _ in made for _ in events]
    await again.release()


async def test_who_was_driven_out_does_not_get_back_in_by_a_place(path: Path) -> None:
    one, other = SqliteJournal(path), SqliteJournal(path)
    run = await one.open("r1", create=True)
    before, at = run.place, 7.5
    await run.append(story(), "written", at=at)
    connection_of(one).execute("UPDATE run SET lease_until=0")
    taken = await other.open("r1")
    await taken.append([CallStarted("c9")], "written")
    with pytest.raises(LeaseLost):
        await run.append([CallStarted("c8")], "written", place=run.place)
    await other.aclose()
    again = await one.open("r2", create=True)
    assert (await again.append(story(), "written", at=at)).seq == before.seq + len(story())
    with pytest.raises(LeaseLost):  # what it had for r1 is lost
        await one.aclose()


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_one_store_goes_on_over_event_loops_in_turn(kind: str, path: Path, request: pytest.FixtureRequest) -> None:
    """What is queued on a loop that ends is written on the next."""
    store = store_of(path if kind == "sqlite" else request.getfixturevalue("postgres_url"))

    async def go(step: int) -> list[Event]:
        run = await store.open("r1", create=step == 0)
        await run.append([CallStarted("c1", step)], "soon")
        await run.append([CallStarted("c2", step)], "synced")
        await run.append([CallStarted("c3", step)], "soon")
        await run.release()
        return (await read_all(store, "r1"))[0]

    async def queued() -> None:
        await (await store.open("r2", create=True)).append([started("r2")], "soon")

    for step in range(3):
        assert len(asyncio.run(go(step))) == 3 * (step + 1)
    asyncio.run(queued())
    assert asyncio.run(read_all(store, "r2")) == ([started("r2")], "")
    asyncio.run(store.aclose())
