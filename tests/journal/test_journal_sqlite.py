"""What the SQLite journal promises beyond the other: damage is found, lost writes are told, files are checked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from journal_cases import REPLY, add, alter, connection_of, fit_heads, read_all, started, story, write

from cases import cases
from records import until
from surefoot.journal.codec import genesis
from surefoot.journal.heads import heads_of
from surefoot.journal.raw import chain
from surefoot.journal.sqlite import SqliteJournal
from surefoot.journal.sqlite_file import FORMAT
from surefoot.journal.sqlite_write import SharedSync, checkpoint
from surefoot.types.errors import (
    JournalCorrupt,
    JournalError,
    JournalTooNew,
    JournalUnavailable,
    LeaseLost,
    RunBusy,
    UsageError,
)
from surefoot.types.events import VERSION, CallEnded, CallStarted, Event, RunForked
from surefoot.types.ports import Place
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio

RUNS = ("r1", "r2", "r3")
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - hundreds of files, none about the disk


# --- damage


async def make(path: Path, look: Callable[[], object] = lambda: None) -> dict[str, list[Event]]:
    """A journal of three runs, one of them a fork; what is in each. `look` is called before it is closed."""
    journal = SqliteJournal(path)
    first = story("r1")
    third: list[Event] = [started("r3"), *[CallEnded(f"c{i}", ToolResult("x" * i * 300)) for i in range(30)]]
    own: list[Event] = [RunForked("r2", "r1", 3), REPLY]
    await write(journal, "r1", first)
    await journal.fork("r1", 3, "r2")
    run = await journal.open("r2")
    await run.put_blob(b"kept")
    await run.append(own)
    await write(journal, "r3", third)
    look()
    await journal.aclose()
    return {"r1": first, "r2": first[:3] + own, "r3": third}


@cache
def sound() -> tuple[bytes, bytes, bytes, bytes, dict[str, list[Event]]]:
    """A sound journal as bytes: the file when closed, the file and its log while open, its heads; and what is in it."""
    with tempfile.TemporaryDirectory() as folder:
        path, opened = Path(folder) / "runs.db", list[bytes]()
        files = (path, path.with_name("runs.db-wal"))
        truth = asyncio.run(make(path, lambda: opened.extend(one.read_bytes() for one in files)))
        return path.read_bytes(), opened[0], opened[1], heads_of(path).read_bytes(), truth


async def examine(path: Path, truth: dict[str, list[Event]], *, go_on: bool = True) -> dict[str, str]:
    """What is wrong with each run. What can be read is what was written, all of it unless that is told.

    `go_on` appends to what is sound.
    """
    journal, told = SqliteJournal(path), dict[str, str]()
    try:
        for run_id in RUNS:
            try:
                events, told[run_id] = await read_all(journal, run_id)
                assert events == truth[run_id][: len(events)]
                if told[run_id]:
                    assert f"record {len(events)}" in told[run_id]
                    with pytest.raises(JournalError):
                        await (await journal.open(run_id)).read()
                else:
                    assert events == truth[run_id], "a loss is told"
                if not told[run_id] and go_on:
                    await (await journal.open(run_id)).append([CallStarted("more")], "written")
            except (JournalError, UsageError) as error:  # UsageError: the run's id is gone
                told[run_id] = str(error)
            with contextlib.suppress(JournalError):
                await journal.runs()
                await journal.get_blob("0" * 64)
    finally:
        with contextlib.suppress(JournalError):
            await journal.aclose()
    return told


def mutated(data: bytes, cuts: list[tuple[float, str, int]]) -> bytes:
    """The bytes with each cut made: at a place (0 to 1), of a kind, with a number that the kind needs."""
    for place, kind, number in cuts:
        at = int(place * len(data))
        match kind:
            case "flip":
                data = data[:at] + bytes([data[at] ^ (number % 255 + 1)]) + data[at + 1 :] if at < len(data) else data
            case "zero":
                data = data[:at] + bytes(len(data[at : at + number])) + data[at + number :]
            case "tear":
                data = data[:at]
            case "drop":
                data = data[:at] + data[at + number :]
            case _:
                data = data[:at] + data[:number] + data[at:]
    return data


CHANGES = st.sampled_from(["flip", "flip", "flip", "zero", "tear", "drop", "copy"])
CUTS = st.lists(st.tuples(st.floats(0, 1), CHANGES, st.integers(1, 9000)), min_size=1, max_size=4)


@pytest.mark.slow
@given(CUTS, st.sampled_from(["closed", "open", "log"]))
@example([(0.0, "tear", 1)], "closed")
@example([(0.0, "tear", 1)], "log")
@example([(0.99, "tear", 1)], "log")
@example([(0.9, "flip", 1)], "log")
@example([(0.025123918830675114, "flip", 3)], "closed")
@example([(18 / 40_000, "flip", 2)], "closed")
@example([(0.1015625, "zero", 781)], "closed")
def test_damaged_files_are_read_up_to_the_damage_or_refused(cuts: list[tuple[float, str, int]], which: str) -> None:
    closed, opened, log, heads, truth = sound()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "runs.db"
        heads_of(path).write_bytes(heads)
        path.write_bytes({"closed": mutated(closed, cuts), "open": mutated(opened, cuts), "log": opened}[which])
        if which != "closed":
            path.with_name("runs.db-wal").write_bytes(mutated(log, cuts) if which == "log" else log)
        asyncio.run(examine(path, truth))


VALUES = st.integers(-5, 2**62) | st.floats(allow_nan=False) | st.text(max_size=5) | st.binary(max_size=40)


@pytest.mark.slow
@given(st.sampled_from(["seq", "at", "version", "body", "hash", "run"]), st.integers(0, 5), VALUES)
def test_an_altered_record_is_named(column: str, seq: int, value: object) -> None:
    # moved to where the fork began, a record goes on from the same ones; the next one tells
    assume((column, seq, value) != ("run", 3, 2))
    closed, _, _, heads, truth = sound()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "runs.db"
        heads_of(path).write_bytes(heads)
        path.write_bytes(closed)
        db = sqlite3.connect(path, isolation_level=None)
        rows = "SELECT * FROM event WHERE run=1 AND seq>=0 ORDER BY seq"
        before = db.execute(rows).fetchall()
        db.execute(f"UPDATE OR REPLACE event SET {column}=? WHERE run=1 AND seq=?", (value, seq))  # noqa: S608 - a name of ours
        after = db.execute(rows).fetchall()
        db.close()
        told = asyncio.run(examine(path, truth))
    assert ("run r1, record" in told["r1"]) == (after != before)
    if after[:3] != before[:3]:
        assert told["r2"], "the fork shares it"


@cases("journal_damage")
async def test_what_is_wrong_is_said_by_record_number(path: Path, statement: str, told: str) -> None:
    truth = await make(path)
    assert alter(path, statement)
    wrong = (await examine(path, truth))["r1"]
    assert told in wrong
    assert bool(wrong) == bool(told)


async def test_a_fork_whose_parent_is_damaged_or_gone_says_so(path: Path) -> None:
    truth = await make(path)
    alter(path, "DELETE FROM event WHERE run=1 AND seq>=2")
    journal = SqliteJournal(path)
    events, wrong = await read_all(journal, "r2")
    assert events == truth["r2"][:2]
    assert "run r2, record 2: the record is missing" in wrong
    await journal.aclose()
    alter(path, "DELETE FROM run WHERE run_id='r1'")
    assert "the run that it was forked from is gone" in (await examine(path, truth, go_on=False))["r2"]
    alter(path, "UPDATE run SET parent=number WHERE run_id='r2'")
    assert "the run that it was forked from is gone" in (await examine(path, truth, go_on=False))["r2"]


async def test_an_altered_blob_is_never_given(journal: SqliteJournal, path: Path) -> None:
    run = await journal.open("r1", create=True)
    await run.append([CallStarted("c1")])
    digest = await run.put_blob(b"kept")
    await run.append([CallStarted("c2")], "written")
    alter(path, "UPDATE blob SET data=x'00'")
    with pytest.raises(JournalCorrupt, match="run r1, record 1: the bytes of digest"):
        await journal.get_blob(digest)
    alter(path, "UPDATE blob SET run=77")
    with pytest.raises(JournalError, match="were altered"):
        await run.get_blob(digest)


# --- forms


async def test_a_record_of_a_later_form_is_too_new(journal: SqliteJournal, path: Path) -> None:
    await write(journal, "r1", [CallStarted("c1"), CallStarted("c2")])
    first = bytes.fromhex((await journal.read_recorded("r1"))[0][0].hash)
    body = b'{"type": "CallStarted", "call_id": "c2"}'
    for form, kind in ((VERSION + 1, JournalTooNew), (0, JournalCorrupt)):
        hash_ = chain(first, form, 1.5, body)
        alter(path, "UPDATE event SET version=?, at=1.5, body=?, hash=? WHERE seq=1", form, body, hash_)
        fit_heads(path)
        events, wrong = await read_all(journal, "r1")
        assert events == [CallStarted("c1")]
        assert "run r1, record 1" in wrong
        run = await journal.open("r1")
        with pytest.raises(kind):
            await run.read()
        await run.release()
        assert len(await journal.runs()) == 1


async def test_files_that_are_no_journal_of_ours(path: Path) -> None:
    await make(path)
    for change, kind, told in (
        (f"user_version={FORMAT + 1}", JournalTooNew, r"runs\.db"),
        ("user_version=-3", JournalError, r"runs\.db"),
        ("application_id=7", JournalError, "belongs to another program"),
    ):
        alter(path, f"PRAGMA {change}")
        with pytest.raises(kind, match=told):
            await SqliteJournal(path).runs()
    path.with_name("text.db").write_text("This is no database, but a text of some length. " * 99)
    for other, told in (
        (path.with_name("text.db"), r"text\.db: .*not a SQLite file"),
        (path.parent / "none" / "runs.db", "its folder must exist"),
        (path.parent, "it is a folder; name a file"),
    ):
        with pytest.raises(JournalError, match=told):
            await SqliteJournal(other).open("r1", create=True)
    for name, told in ((":memory:", "MemoryJournal"), ("", "names no file")):
        with pytest.raises(UsageError, match=told):
            SqliteJournal(name)


def test_making_a_store_touches_nothing(path: Path) -> None:
    SqliteJournal(path)
    SqliteJournal(str(path))
    assert list(path.parent.iterdir()) == []


# --- writing


async def test_runs_at_once_share_transactions(journal: SqliteJournal) -> None:
    runs = [await journal.open(f"r{i}", create=True) for i in range(200)]
    commits: list[str] = []
    connection_of(journal).set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)
    await asyncio.gather(*(run.append([CallStarted("c1"), CallStarted("c2")], "written") for run in runs))
    await asyncio.gather(*(run.append([CallStarted("c3")], "soon") for run in runs))
    await asyncio.gather(*(run.append([CallStarted("c4")], "synced") for run in runs))
    assert len(commits) in (2, 3), "what nobody waits for goes with what somebody waits for, if that comes in 2 ms"
    connection_of(journal).set_trace_callback(None)
    for run in runs:
        assert len(await run.read()) == 4


async def test_a_written_append_is_in_the_file(journal: SqliteJournal, path: Path) -> None:
    run = await journal.open("r1", create=True)
    await run.append([CallStarted("c1")], "soon")
    assert count(path) == 0
    await run.append([CallStarted("c2")], "written")
    assert count(path) == 2
    await run.append([CallStarted("c3")], "soon")
    await until(lambda: count(path) == 3)


async def test_a_step_takes_few_bytes_of_the_log(journal: SqliteJournal, path: Path) -> None:
    run, log = await journal.open("r", create=True), path.with_name(f"{path.name}-wal")
    await run.append([started("r")], "written")
    before, steps = log.stat().st_size, 50
    for step in range(steps):
        await run.append([REPLY, CallStarted(f"{step}.0")], "written")
        await run.append([CallEnded(f"{step}.0", ToolResult("found " * 10))], "written")
    assert (log.stat().st_size - before) / steps < 12_000


def count(path: Path) -> int:
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT count(*) FROM event").fetchone()[0]
    finally:
        db.close()


async def test_a_store_belongs_to_one_running_event_loop(journal: SqliteJournal) -> None:
    await journal.runs()
    with pytest.raises(UsageError, match="another event loop"):
        await asyncio.to_thread(asyncio.run, read_all(journal, "r1"))


async def test_a_cancelled_wait_still_writes(journal: SqliteJournal) -> None:
    runs = [await journal.open(name, create=True) for name in ("r1", "r2")]
    tasks = [asyncio.ensure_future(run.append([CallStarted("c1")], "written")) for run in runs]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert tasks[0].cancelled()
    assert not tasks[1].cancelled()
    assert await runs[0].read() == await runs[1].read() == [CallStarted("c1")]


async def test_a_full_disk_is_told_and_nothing_is_lost_silently(journal: SqliteJournal, path: Path) -> None:
    runs = [await journal.open(name, create=True) for name in ("r1", "r2")]
    for run in runs:
        await run.append([started(run.run_id)], "written")
    db = connection_of(journal)
    fill(db, is_full=True)
    long = CallEnded("c1", ToolResult("x" * 500_000))
    await runs[0].append([long], "soon")
    await until(lambda: runs[0].failure)
    for _ in range(2):
        with pytest.raises(JournalUnavailable, match=rf"{path.name}: .*the disk is full; free some space"):
            await runs[0].append([CallStarted("c2")], "soon")
        with pytest.raises(JournalError, match="full"):
            await runs[0].read()
    with pytest.raises(JournalError, match="full"):
        await runs[1].append([long], "written")
    fill(db, is_full=False)
    with pytest.raises(JournalError, match="full"):  # it stays: the run must not go on with a hole
        await runs[0].append([CallStarted("c2")], "synced")
    for run in runs:
        with pytest.raises(JournalError, match="full"):
            await run.release()
        again = await journal.open(run.run_id)
        await again.append([CallStarted("c3")], "written")
        assert await again.read() == [started(run.run_id), CallStarted("c3")]


def fill(db: sqlite3.Connection, *, is_full: bool) -> None:
    """Let SQLite itself refuse to let the file grow, as it does when the disk is full."""
    pages = db.execute("PRAGMA page_count").fetchone()[0] if is_full else 2**30
    db.execute(f"PRAGMA max_page_count={pages}")


async def test_a_run_whose_records_were_deleted_is_not_taken_for_an_empty_one(path: Path) -> None:
    await make(path)
    alter(path, "DELETE FROM event WHERE run=1")
    journal = SqliteJournal(path)
    assert [info.run_id for info in await journal.runs()] == ["r3", "r2", "r1"]
    with pytest.raises(UsageError, match="already"):
        await journal.open("r1", create=True)
    await journal.aclose()


async def test_a_long_line_of_forks_is_read(journal: SqliteJournal, path: Path) -> None:
    await write(journal, "f1", [CallStarted("c1")])
    numbers = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n WHERE i<1100) SELECT i"
    columns = "number, run_id, started_at, parent, at, owner, events"
    assert alter(path, f"INSERT INTO run ({columns}) {numbers}, 'f'||i, 0, i-1, 1, '', 1 FROM n")
    await journal.fork("f1100", 1, "last")
    await add(journal, "last", CallStarted("c2"))
    assert await read_all(journal, "last") == ([CallStarted("c1"), CallStarted("c2")], "")
    assert [(info.events, info.parent) for info in await journal.runs(1)] == [(2, "f1100")]


async def test_closing_tells_of_a_lost_write(path: Path) -> None:
    journal = SqliteJournal(path)
    run = await journal.open("r1", create=True)
    fill(connection_of(journal), is_full=True)
    await run.append([CallEnded("c1", ToolResult("x" * 500_000))], "soon")
    with pytest.raises(JournalError, match="full"):
        await journal.aclose()
    assert await read_all(journal, "r1") == ([], "")
    await journal.aclose()


async def test_a_second_writer_fails_before_it_can_act(journal: SqliteJournal, path: Path) -> None:
    runs = [await journal.open(name, create=True) for name in ("r1", "r2", "r3")]
    body = b'{"type": "CallStarted", "call_id": "other"}'
    values = (1.5, body, chain(genesis("r2"), 1, 1.5, body))
    alter(path, "INSERT INTO event SELECT number, 0, ?, 1, ?, ? FROM run WHERE run_id='r2'", *values)
    appends = (run.append([CallStarted("c1")], "written") for run in runs)
    kinds = [type(one) for one in await asyncio.gather(*appends, return_exceptions=True)]
    assert kinds == [Place, LeaseLost, Place]
    for again in (runs[1].append([CallStarted("c2")]), runs[1].release()):
        with pytest.raises(RunBusy, match="somebody else"):
            await again
    assert (await read_all(journal, "r2"))[0] == [CallStarted("other")]
    assert (await read_all(journal, "r3"))[0] == [CallStarted("c1")]


async def test_a_release_outlives_the_trouble_of_another_run(journal: SqliteJournal, path: Path) -> None:
    done, torn, late = [await journal.open(name, create=True) for name in ("done", "torn", "late")]
    await done.append([CallStarted("c1")], "written")
    alter(path, "INSERT INTO event SELECT number, 0, 1.5, 1, x'00', x'00' FROM run WHERE run_id='torn'")
    digest = await done.put_blob(b"kept")
    await torn.append([CallStarted("c1")], "soon")
    await done.release()  # in one transaction with the record that cannot be written
    with pytest.raises(RunBusy, match="somebody else"):
        await torn.release()
    await late.release()
    other = SqliteJournal(path)
    assert await other.get_blob(digest) == b"kept"
    for run_id in ("done", "late"):
        await other.open(run_id)  # RunBusy, had this store kept it
    with pytest.raises(JournalCorrupt, match="run torn, record 0"):
        await other.open("torn")
    await other.aclose()


async def test_a_release_that_could_not_be_written_is_told(journal: SqliteJournal, path: Path) -> None:
    run = await journal.open("r1", create=True)
    await run.append([CallStarted("c1")], "written")
    connection_of(journal).execute("PRAGMA query_only=ON")
    with pytest.raises(JournalError, match=rf"{path.name}: .*readonly"):
        await run.release()
    connection_of(journal).execute("PRAGMA query_only=OFF")
    other = SqliteJournal(path)
    with pytest.raises(RunBusy):
        await other.open("r1")
    await (await journal.open("r1")).release()
    await other.open("r1")
    await other.aclose()


async def test_a_release_leaves_a_run_that_is_another_ones_by_then(journal: SqliteJournal, path: Path) -> None:
    run = await journal.open("r1", create=True)
    alter(path, "UPDATE run SET owner='another'")
    await run.release()
    assert alter(path, "UPDATE run SET owner='' WHERE owner='another'") == 1


async def test_a_sync_that_fails_stops_every_run(journal: SqliteJournal, path: Path) -> None:
    runs = [await journal.open(name, create=True) for name in ("r1", "r2")]
    log = path.with_name("runs.db-wal")
    log.rename(log.with_suffix(".gone"))
    with pytest.raises(JournalError, match="cannot sync"):
        await runs[0].append([CallStarted("c1")], "synced")
    log.with_suffix(".gone").rename(log)
    with pytest.raises(JournalError, match="cannot sync"):
        await journal.open("r3", create=True)
    for again in (use for run in runs for use in (run.append([CallStarted("c2")], "soon"), run.release())):
        with pytest.raises(JournalError, match="cannot sync"):
            await again


async def test_the_log_is_kept_short(journal: SqliteJournal, path: Path) -> None:
    run = await journal.open("r1", create=True)
    event = CallEnded("c1", ToolResult("x" * 100_000))
    for _ in range(300):
        await run.append([event], "written")
        await asyncio.sleep(0)
    await until(lambda: path.stat().st_size >= 5_000_000)  # a thread of the store makes it grow, while the run goes on
    await run.release()
    await journal.aclose()
    assert {child.name for child in path.parent.iterdir()} == {"runs.db", "runs.db.heads", "runs.db.owners"}


# --- syncs and checkpoints


async def test_those_who_come_during_a_sync_share_the_next_one() -> None:
    begun, go = threading.Semaphore(0), threading.Semaphore(0)

    def sync() -> None:
        begun.release()
        assert go.acquire(timeout=10)

    with ThreadPoolExecutor(1) as threads:
        shared = SharedSync(sync, threads)
        first = asyncio.ensure_future(shared.wait())
        assert await asyncio.to_thread(begun.acquire, timeout=10)
        late = [asyncio.ensure_future(shared.wait()) for _ in range(50)]
        await asyncio.sleep(0)
        late[0].cancel()
        go.release()
        await first
        assert not any(one.done() for one in late[1:])
        assert await asyncio.to_thread(begun.acquire, timeout=10)
        go.release()
        await asyncio.gather(*late[1:])
        assert late[0].cancelled()
        assert not begun.acquire(blocking=False), "fifty waiters, one more sync"


async def test_a_failed_sync_fails_for_those_who_waited_for_it_alone() -> None:
    errors = [OSError("disk")]

    def sync() -> None:
        if errors:
            raise errors.pop()

    with ThreadPoolExecutor(1) as threads:
        shared = SharedSync(sync, threads)
        first, late = await asyncio.gather(shared.wait(), shared.wait(), return_exceptions=True)
        assert isinstance(first, OSError)
        assert late is None


def test_a_checkpoint_moves_the_log_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("CREATE TABLE t (x)")
        db.execute("INSERT INTO t VALUES (zeroblob(100000))")
        assert path.stat().st_size < 100_000
        checkpoint(path)
        assert path.stat().st_size > 100_000
        log = path.with_name("a.db-wal")
        length = log.stat().st_size
        checkpoint(path, far_too_long_pages=1)
        db.execute("INSERT INTO t VALUES (zeroblob(50000))")
        assert log.stat().st_size == length, "it started over"
        path.with_name("a.txt").write_text("no database, and no matter: the next read says so")
        checkpoint(path.with_name("a.txt"))
    finally:
        db.close()
