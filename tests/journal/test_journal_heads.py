"""What stands beside a journal: a run that is shorter than it was is never believed; others do not suffer for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import aclosing, closing, nullcontext
from pathlib import Path

import pytest
from journal_cases import REPLY, add, alter, connection_of, read_all, started, stored, story, write

from surefoot.journal.heads import SLOT_BYTES, DamagedHead, Heads, head_of, heads_of
from surefoot.journal.sqlite import SqliteJournal
from surefoot.journal.upkeep import Accepted, accept, verify
from surefoot.types.errors import JournalCorrupt, JournalError, RunBusy, UsageError
from surefoot.types.events import CallStarted, Event, RunForked, RunResumed

pytestmark = pytest.mark.anyio

OTHER_BOOT = b"another!"


def abandon(store: SqliteJournal) -> None:
    """Leave the file as a process does that is killed: nothing is released."""
    file, store._opened = store._opened, None  # pyright: ignore[reportPrivateUsage]
    assert file is not None
    assert file._owner is not None  # pyright: ignore[reportPrivateUsage]
    file._owner.give_up()  # pyright: ignore[reportPrivateUsage]
    file.heads.close()
    file.db.close()


async def kept(path: Path, *run_ids: str) -> None:
    """A journal with these runs of six records, as a process leaves it that is killed."""
    store = SqliteJournal(path)
    for run_id in run_ids:
        run = await store.open(run_id, create=True)
        await run.append(story(run_id)[:4], "synced")
        await run.append(story(run_id)[4:], "written")
    connection_of(store).execute("PRAGMA wal_checkpoint")
    abandon(store)
    for run_id in run_ids:
        alter(path, "UPDATE run SET owner='' WHERE run_id=?", run_id)


async def opened(path: Path, run_id: str) -> Sequence[Event]:
    async with aclosing(SqliteJournal(path)) as store:
        return await (await store.open(run_id)).read()


async def gone_on(path: Path, run_id: str, *events: Event) -> None:
    async with aclosing(SqliteJournal(path)) as store:
        await add(store, run_id, *events)


async def test_a_run_that_lost_its_end_is_named_and_the_others_go_on(path: Path) -> None:
    await kept(path, "r1", "r2")
    alter(path, "DELETE FROM event WHERE run=1 AND seq>=4")
    store, told = SqliteJournal(path), r"run r1, record 4: .* those up to 5; .*`surefoot journal accept r1 --by NAME "
    with pytest.raises(JournalCorrupt, match=rf"{told}--journal .*runs\.db`"):
        await store.open("r1")
    events, wrong = await read_all(store, "r1")
    assert (events, wrong[:16]) == (story("r1")[:4], "run r1, record 4")
    await add(store, "r2", REPLY)
    assert len((await read_all(store, "r2"))[0]) == 7
    await store.aclose()
    assert [fault.run_id for fault in verify(path)] == ["r1"]


async def test_a_run_that_is_gone_is_named_and_its_id_is_not_given_again(path: Path) -> None:
    await kept(path, "r1", "r2")
    alter(path, "DELETE FROM event WHERE run=2")
    alter(path, "DELETE FROM run WHERE number=2")
    store = SqliteJournal(path)
    for create in (False, True):
        with pytest.raises(JournalCorrupt, match="run r2, record 0: all of its 6 records are missing"):
            await store.open("r2", create=create)
    assert [(info.run_id, info.status) for info in await store.runs()] == [("r2", "damaged"), ("r1", "completed")]
    assert [info.run_id for info in await store.runs(1)] == ["r2"]
    await write(store, "r3", story("r3"))
    await store.aclose()
    assert [fault.run_id for fault in verify(path)] == ["r2"], "the new run did not take its place"
    assert (await accept(path, "r2", "Ada")).records == 0
    assert verify(path) == []
    await stored(path, "r2")
    assert verify(path) == []


async def test_without_heads_no_run_is_believed_and_new_ones_can_be_made(path: Path) -> None:
    await kept(path, "r1", "r2")
    heads_of(path).unlink()
    assert [fault.run_id for fault in verify(path)] == ["r1", "r2"]
    store = SqliteJournal(path)
    with pytest.raises(JournalCorrupt, match=r"runs\.db\.heads does not say how many records it had; .*accept r1 --by"):
        await store.open("r1")
    assert await read_all(store, "r1") == (story("r1"), "")
    await write(store, "r3", story("r3"))
    await store.aclose()
    assert await accept(path, "r1", "Ada") == Accepted(6, has_ended=True)
    assert [fault.run_id for fault in verify(path)] == ["r2"]
    assert await opened(path, "r1") == story("r1"), "what has ended stays as it ended"


@pytest.mark.parametrize(
    ("where", "told"), [(2 * SLOT_BYTES - 80, "its slot was altered"), (-1, "tells of another run, r1, in its place")]
)
async def test_a_head_that_is_damaged_or_anothers_is_named(path: Path, where: int, told: str) -> None:
    await kept(path, "r1", "r2")
    data = bytearray(heads_of(path).read_bytes())
    if where < 0:
        data[SLOT_BYTES:] = data[:SLOT_BYTES]
    else:
        data[where] ^= 1
    heads_of(path).write_bytes(data)
    with pytest.raises(JournalCorrupt, match=f"run r2, .*{told}"):
        await opened(path, "r2")
    async with aclosing(SqliteJournal(path)) as store:
        events, wrong = await read_all(store, "r2")
    assert events == story("r2")
    assert told in wrong
    assert await opened(path, "r1") == story("r1")
    assert await accept(path, "r2", "Ada") == Accepted(6, has_ended=True)
    assert verify(path) == []


async def test_other_records_in_their_place_are_named(path: Path, tmp_path: Path) -> None:
    await kept(path, "r1")
    other = tmp_path / "other.db"
    await kept(other, "r1")  # another time, so another chain
    heads_of(path).write_bytes(heads_of(other).read_bytes())
    with pytest.raises(JournalCorrupt, match="run r1, record 5: it is not the one that was written"):
        await opened(path, "r1")


@pytest.mark.parametrize(("records", "is_believed"), [(6, True), (4, True), (3, False)])
async def test_after_a_loss_of_power_only_what_was_synced_counts(path: Path, records: int, is_believed: bool) -> None:
    await kept(path, "r1")
    with closing(Heads(path, may_write=True, boot=OTHER_BOOT)) as heads:
        head = heads.get(1)
        assert head is not None
        assert (head.synced, head.seq) == (4, 6)
        heads.put(1, head)
    alter(path, "DELETE FROM event WHERE seq>=?", records)
    not_believed = pytest.raises(JournalCorrupt, match="run r1, record 3: the record is missing")
    with nullcontext() if is_believed else not_believed:
        assert await opened(path, "r1") == story("r1")[:records]


async def test_a_journal_may_be_ahead_of_its_heads(path: Path) -> None:
    await kept(path, "r1")
    before = heads_of(path).read_bytes()
    await gone_on(path, "r1", CallStarted("c9"))
    heads_of(path).write_bytes(before)  # the process died between the commit and this
    assert len(await opened(path, "r1")) == 7


async def test_a_fork_has_a_head_before_it_has_records(path: Path) -> None:
    store = SqliteJournal(path)
    await write(store, "r1", story())
    await store.fork("r1", 3, "r2")
    await store.aclose()
    assert verify(path) == []
    await gone_on(path, "r2", RunForked("r2", "r1", 3))
    alter(path, "DELETE FROM event WHERE run=2")
    with pytest.raises(JournalCorrupt, match="run r2, record 3: the record is missing"):
        await opened(path, "r2")
    assert await accept(path, "r2", "Ada") == Accepted(3, has_ended=False)
    assert (await opened(path, "r2"))[3:] == [RunResumed("Ada")]


async def test_what_lost_nothing_is_not_accepted(path: Path) -> None:
    await kept(path, "r1")
    await stored(path, "r2", events=[started("r2")])
    for run_id in ("r1", "r2"):
        with pytest.raises(UsageError, match=f"run {run_id} has lost nothing"):
            await accept(path, run_id, "Ada")
    assert await opened(path, "r2") == [started("r2")]


async def test_forks_share_no_more_than_their_parent_has_left(path: Path) -> None:
    store = SqliteJournal(path)
    await write(store, "r1", story())
    for run_id in ("r2", "r3"):
        await store.fork("r1", 5, run_id)
    await add(store, "r3", RunForked("r3", "r1", 5))
    await store.fork("r2", 5, "r4")
    await store.aclose()
    alter(path, "DELETE FROM event WHERE run=1 AND seq>=3")
    assert [(fault.run_id, fault.is_lost) for fault in verify(path)] == [(f"r{n}", True) for n in (1, 2, 3, 4)]
    assert await accept(path, "r4", "Ada") == Accepted(3, has_ended=False)
    assert await accept(path, "r1", "Ada") == Accepted(3, has_ended=False)
    await gone_on(path, "r1", REPLY, REPLY, REPLY)
    with pytest.raises(JournalCorrupt, match="run r2, record 3: the record is missing"):  # not its parent's new one
        await opened(path, "r2")
    assert await accept(path, "r2", "Ada") == Accepted(3, has_ended=False)
    for run_id in ("r2", "r4"):
        assert await opened(path, run_id) == [*story()[:3], RunResumed("Ada")]
    with pytest.raises(JournalError, match=r"shares with r1 only 3 are left, .* fork r1 again"):
        await accept(path, "r3", "Ada")
    assert [fault.run_id for fault in verify(path)] == ["r3"]


async def test_accepting_is_a_persons_word_about_a_run_that_nobody_drives(path: Path) -> None:
    await kept(path, "r1")
    store = SqliteJournal(path)
    await store.open("r1")
    with pytest.raises(RunBusy):
        await accept(path, "r1", "Ada")
    await store.aclose()
    with pytest.raises(UsageError, match="say whose decision"):
        await accept(path, "r1", " ")
    with pytest.raises(UsageError, match="none of that id is lost"):
        await accept(path, "r9", "Ada")


async def test_what_is_altered_in_its_middle_cannot_be_accepted(path: Path) -> None:
    await kept(path, "r1")
    alter(path, "UPDATE event SET at=at-60 WHERE seq=2")
    with pytest.raises(JournalCorrupt, match="record 2: its hash"):
        await accept(path, "r1", "Ada")
    assert [fault.run_id for fault in verify(path)] == ["r1"]


async def test_a_deleted_journal_leaves_nothing_behind_for_the_next(path: Path) -> None:
    await kept(path, "r1")
    path.unlink()  # noqa: ASYNC240 - nothing else goes on here
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    await stored(path, "r1")
    assert verify(path) == []


async def test_a_head_that_cannot_be_written_stops_the_run(path: Path) -> None:
    store = SqliteJournal(path)
    run = await store.open("r1", create=True)
    await run.append([started()], "written")
    connection_of(store)  # it is open
    store._opened.heads.close()  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    with pytest.raises(JournalError, match=r"cannot write .*runs\.db\.heads"):
        await run.append([CallStarted("c1")], "synced")
    abandon(store)


def test_a_head_comes_back_as_it_was(path: Path) -> None:
    long = "ü" * 80
    with closing(Heads(path, may_write=True)) as heads:
        assert (len(heads), heads.get(1)) == (0, None)
        head = head_of(long, 7, b"h" * 32, 5)
        heads.put(3, head)
        assert heads.get(2) is None
        got = heads.get(3)
        assert got is not None
        assert (got.key, got.seq, got.hash, got.synced, got.name) == (head.key, 7, b"h" * 32, 5, "ü" * 26)
        assert [number for number, _ in heads.all()] == [3]
        assert heads.claim("new", 1) == 4
        assert heads.claim("newer", 1) == 4, "nothing became of the run before"
        for number in (0, 2**40):
            with pytest.raises(OSError, match="there can be no slot"):
                heads.put(number, head)
    heads_of(path).write_bytes(heads_of(path).read_bytes()[:-1])
    with closing(Heads(path, may_write=False)) as heads, pytest.raises(DamagedHead):
        heads.get(4)
    with closing(Heads(path.with_name("none.db"), may_write=False)) as heads:
        assert (len(heads), heads.get(1), list(heads.all())) == (0, None, [])


async def test_heads_that_cannot_be_read_keep_nobody_from_reading(path: Path) -> None:
    await kept(path, "r1")
    heads_of(path).unlink()
    heads_of(path).symlink_to(heads_of(path).name)  # a circle, which nobody can open
    store = SqliteJournal(path, read_only=True)
    assert await read_all(store, "r1") == (story("r1"), "")
    await store.aclose()
    (fault,) = verify(path)
    assert "the length of the runs could not be checked" in fault.message
    with pytest.raises(JournalError, match=r"runs\.db\.heads: .*; check the file, its folder and the disk"):
        await accept(path, "r1", "Ada")


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="modes are of POSIX")
def test_heads_have_the_mode_of_their_journal(path: Path) -> None:
    path.touch()
    path.chmod(0o644)
    with closing(Heads(path, may_write=True)):
        assert heads_of(path).stat().st_mode & 0o777 == 0o644
