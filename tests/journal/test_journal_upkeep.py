"""Journals of a former form, copies, who may read them, and lists that read no records."""

# ruff: noqa: ASYNC240 - nothing else goes on in these tests while a file is looked at

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from journal_cases import REPLY, add, alter, connection_of, downgrade, read_all, started, stored, story, write

from cases import cases
from surefoot.journal import upkeep
from surefoot.journal.heads import heads_of
from surefoot.journal.sqlite import SqliteJournal
from surefoot.journal.sqlite_file import FORMAT, file_error
from surefoot.types.errors import JournalCorrupt, JournalError, UsageError
from surefoot.types.events import CallStarted, Event, RunForked
from surefoot.types.words import Note

pytestmark = pytest.mark.anyio

ONLY_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="rights are of POSIX")


def form_of(path: Path) -> int:
    db = sqlite3.connect(path)
    try:
        return db.execute("PRAGMA user_version").fetchone()[0]
    finally:
        db.close()


async def old(path: Path) -> None:
    async with aclosing(SqliteJournal(path)) as store:
        await write(store, "r1", story("r1"))
        await store.fork("r1", 3, "r2")
        await add(store, "r2", RunForked("r2", "r1", 3), REPLY)
        await store.fork("r1", 2, "r3")
    downgrade(path, 1)
    heads_of(path).unlink()


# --- forms


async def test_a_run_deleted_while_a_copy_is_made_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, kept = tmp_path / "runs.db", tmp_path / "copy.db"
    await stored(path, "r1", "r2")
    heads = upkeep.Reader.heads

    async def delete() -> None:
        async with aclosing(SqliteJournal(path)) as store:
            await store.delete("r1")

    def and_delete(reader: upkeep.Reader) -> dict[int, upkeep.Head]:
        found = heads(reader)
        monkeypatch.setattr(upkeep.Reader, "heads", heads)
        with ThreadPoolExecutor(1) as threads:
            threads.submit(asyncio.run, delete()).result()
        return found

    monkeypatch.setattr(upkeep.Reader, "heads", and_delete)
    assert list(upkeep.backup(path, kept)) == []
    store = SqliteJournal(kept)
    assert await store.beginning("") == ["r2"]
    await write(store, "r1", story("r1"))
    await store.aclose()


async def test_a_journal_of_form_1_is_read_as_it_is(path: Path) -> None:
    await old(path)
    store = SqliteJournal(path, read_only=True)
    infos = [(info.run_id, info.status, info.events, info.parent) for info in await store.runs()]
    assert infos[:2] == [("r3", "interrupted", 2, "r1"), ("r2", "interrupted", 5, "r1")]
    assert infos[2:] == [("r1", "completed", 6, "")]
    assert await read_all(store, "r1") == (story("r1"), "")
    assert await store.beginning("r") == ["r1", "r2", "r3"]
    await store.aclose()
    assert form_of(path) == 1
    assert not heads_of(path).exists()


async def test_a_journal_of_form_1_that_is_written_to_becomes_that_of_today(path: Path) -> None:
    await old(path)
    store = SqliteJournal(path)
    before = await store.runs()
    for run_id in ("r1", "r2", "r3"):
        await add(store, run_id, CallStarted("late"))
    after = [(info.events - 1, info.task) for info in await store.runs()]
    assert after == [(info.events, info.task) for info in before]
    await store.aclose()
    assert form_of(path) == FORMAT
    assert upkeep.verify(path) == []
    alter(path, "DELETE FROM event WHERE run=3")
    assert [fault.run_id for fault in upkeep.verify(path)] == ["r3"]


async def test_what_a_file_was_before_its_upgrade_is_kept(path: Path) -> None:
    await old(path)
    async with aclosing(SqliteJournal(path, read_only=True)) as before:
        was = [await before.read_recorded(run_id) for run_id in ("r1", "r2", "r3")]
    for _ in range(2):  # the second time there is nothing to do
        async with aclosing(SqliteJournal(path)) as store:
            await store.say("r3", Note("hello", "Ada"))
    kept = path.with_name(f"{path.name}.before-form-{FORMAT}")
    assert (form_of(path), form_of(kept)) == (FORMAT, 1)
    assert sorted(child.name for child in path.parent.glob("*before*")) == [kept.name]
    async with aclosing(SqliteJournal(kept, read_only=True)) as again:
        assert [await again.read_recorded(run_id) for run_id in ("r1", "r2", "r3")] == was
    assert os.name != "posix" or kept.stat().st_mode & 0o077 == 0


async def test_a_former_surefoot_that_has_the_file_open_breaks_off_and_drops_nothing(path: Path) -> None:
    await stored(path, "r1")
    downgrade(path, 2)
    former = sqlite3.connect(path, isolation_level=None)
    store = SqliteJournal(path)
    (page,) = (await store.list()).runs
    with pytest.raises(sqlite3.IntegrityError, match="later surefoot"):  # as form 2 put summaries down
        former.execute("INSERT OR REPLACE INTO summary (run, body) VALUES (1, x'7b7d')")
    former.close()
    assert (await store.list()).runs == (page,)
    await store.delete("r1")
    await write(store, "r1", story("r1"))
    await store.aclose()


async def test_a_journal_of_form_1_is_whole_without_heads_and_so_is_its_copy(path: Path, tmp_path: Path) -> None:
    await old(path)
    assert upkeep.verify(path) == upkeep.backup(path, tmp_path / "copy.db") == []
    assert [child.name for child in tmp_path.glob("copy*")] == ["copy.db"]
    alter(path, "DELETE FROM event WHERE run=1 AND seq=4")
    assert [fault.run_id for fault in upkeep.verify(path)] == ["r1"]


@pytest.mark.parametrize("events", [story("r1"), [started("r1")]])
async def test_a_run_of_form_1_that_lost_nothing_is_not_accepted(path: Path, events: list[Event]) -> None:
    await stored(path, "r1", events=events)
    downgrade(path, 1)
    heads_of(path).unlink()
    with pytest.raises(UsageError, match="run r1 has lost nothing"):
        await upkeep.accept(path, "r1", "Ada")
    assert (form_of(path), heads_of(path).exists()) == (1, False)


@pytest.mark.parametrize("is_accepted", [True, False])
async def test_a_run_of_form_1_that_lost_its_end_is_accepted_or_holds_up_none(path: Path, is_accepted: bool) -> None:
    await old(path)
    alter(path, "DELETE FROM event WHERE run=1 AND seq=5")
    if is_accepted:
        assert await upkeep.accept(path, "r1", "Ada") == upkeep.Accepted(5, has_ended=False)
        assert (form_of(path), upkeep.verify(path)) == (FORMAT, [])
        return
    async with aclosing(SqliteJournal(path)) as store:
        with pytest.raises(JournalCorrupt, match="run r1, record 5"):
            await store.open("r1")
        await store.open("r2")


# --- copies


async def test_a_backup_is_made_while_runs_are_driven(journal: SqliteJournal, path: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    await write(journal, "r1", story("r1"))
    run, events = await journal.open("r2", create=True), [started("r2"), CallStarted("c1")]
    await run.append(events, "synced")
    assert upkeep.backup(path, target) == []
    await run.append([CallStarted("c2")], "synced")
    assert sorted(child.name for child in tmp_path.glob("copy*")) == ["copy.db", "copy.db.heads"]
    for there in (target, heads_of(target)):
        assert stat.S_IMODE(there.stat().st_mode) == 0o600 or sys.platform == "win32"
    for one in (target, path):
        with pytest.raises(UsageError, match="is there already"):
            upkeep.backup(path, one)
    async with aclosing(SqliteJournal(target)) as store:
        assert await read_all(store, "r1") == (story("r1"), "")
        assert await (await store.open("r2")).read() == events  # nobody drives the copy
    alter(target, "DELETE FROM event WHERE run=2")
    assert [fault.run_id for fault in upkeep.verify(target)] == ["r2"]


async def test_a_backup_of_a_damaged_journal_tells_what_it_lacks(path: Path, tmp_path: Path) -> None:
    await stored(path, "r1", "r2", "r3")
    alter(path, "DELETE FROM event WHERE run=1 AND seq>3")
    alter(path, "UPDATE run SET events=0")
    alter(path, "DELETE FROM event WHERE run=3")
    alter(path, "DELETE FROM run WHERE number=3")
    assert [fault.run_id for fault in upkeep.backup(path, tmp_path / "copy.db")] == ["r1", "r3"]


async def test_a_backup_vouches_for_no_run_without_a_head(path: Path, tmp_path: Path) -> None:
    await stored(path, "r1", "r2")
    heads_of(path).unlink()
    alter(path, "DELETE FROM event WHERE run=1 AND seq>3")
    faults = upkeep.backup(path, tmp_path / "copy.db")
    assert [(fault.run_id, fault.is_lost) for fault in faults] == [("r1", True), ("r2", True)]
    assert upkeep.verify(tmp_path / "copy.db") == faults
    async with aclosing(SqliteJournal(tmp_path / "copy.db")) as copy:
        with pytest.raises(JournalCorrupt, match="does not say how many records it had; restore all files"):
            await copy.open("r2")


async def test_a_journal_whose_records_were_all_in_its_log_names_the_runs_that_are_lost(path: Path) -> None:
    await stored(path, "r1", "r2")
    path.write_bytes(b"")
    for end in ("-wal", "-shm"):
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
    with pytest.raises(JournalError, match=r"all records are missing, but .* tells of these runs: r1, r2; restore all"):
        await SqliteJournal(path, read_only=True).runs()
    for run_id in ("r1", "r2"):
        assert (await upkeep.accept(path, run_id, "Ada")).records == 0
    assert upkeep.verify(path) == []


async def test_a_backup_that_fails_leaves_nothing(path: Path, tmp_path: Path) -> None:
    await stored(path, "r1")
    with pytest.raises(JournalError, match="copy"):
        upkeep.backup(path, tmp_path / "none" / "copy.db")
    data = bytearray(path.read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(JournalError):
        upkeep.backup(path, tmp_path / "copy.db")
    assert list(tmp_path.glob("copy*")) == []
    (tmp_path / "copy.db").symlink_to("nowhere")
    with pytest.raises(UsageError, match="is there already"):
        upkeep.backup(path, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").is_symlink()


@cases("journal_damage")
async def test_a_backup_is_made_where_the_end_of_a_run_is_unknown(path: Path, damage: str, faulty: list[str]) -> None:
    async with aclosing(SqliteJournal(path)) as store:
        await write(store, "r1", story("r1"))
        await store.fork("r1", 5, "r2")
    alter(path, damage)
    assert [fault.run_id for fault in upkeep.backup(path, path.with_name("copy.db"))] == faulty


async def test_heads_that_are_a_folder_are_named(path: Path, tmp_path: Path) -> None:
    await stored(path, "r1")
    heads_of(path).unlink()
    heads_of(path).mkdir()
    for use in (lambda: upkeep.verify(path), lambda: upkeep.backup(path, tmp_path / "copy.db")):
        with pytest.raises(JournalError, match=r"runs\.db\.heads: .*; "):
            use()
    assert list(tmp_path.glob("copy*")) == []


def test_a_file_that_may_not_be_read_is_to_be_made_readable(path: Path) -> None:
    denied = PermissionError(errno.EACCES, "Permission denied", str(heads_of(path)))
    assert "readable" in str(file_error(path, denied))


@pytest.mark.slow
async def test_accepting_in_a_journal_that_is_locked_says_so(path: Path) -> None:
    await stored(path, "r1")
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalError, match="another process keeps it locked; try again"):
        await upkeep.accept(path, "r1", "Ada")
    db.close()


async def test_records_that_cannot_be_folded_are_a_fault(path: Path) -> None:
    await stored(path, "r1", events=[REPLY])  # nobody has begun it
    (fault,) = upkeep.verify(path)
    assert "cannot be folded" in fault.message
    with pytest.raises(JournalError, match="cannot be folded"):
        await upkeep.accept(path, "r1", "Ada")
    async with aclosing(SqliteJournal(path)) as store:
        assert await read_all(store, "r1") == ([REPLY], ""), "nothing was added"


# --- rights


@ONLY_POSIX
async def test_a_new_journal_is_its_owners_alone(journal: SqliteJournal, path: Path) -> None:
    before = os.umask(0o022)
    try:
        run = await journal.open("r1", create=True)
        await run.append([started()], "synced")
    finally:
        os.umask(before)
    rights = {child.name.removeprefix("runs.db"): stat.S_IMODE(child.stat().st_mode) for child in path.parent.iterdir()}
    assert rights == {".owners": 0o700, **dict.fromkeys(("", "-shm", "-wal", ".heads"), 0o600)}


@pytest.mark.parametrize("content", [b"", None])
async def test_who_only_reads_makes_no_journal(path: Path, content: bytes | None) -> None:
    if content is not None:
        path.write_bytes(content)
    store = SqliteJournal(path, read_only=True)
    with pytest.raises(JournalError, match="there is nothing in this file" if content == b"" else "unable to open"):
        await store.runs()
    assert [child.name for child in path.parent.iterdir()] == ([path.name] if content is not None else [])
    assert content is None or path.read_bytes() == b""


# --- lists


async def test_lists_and_beginnings_read_no_records(journal: SqliteJournal) -> None:
    for number in range(60):
        await write(journal, f"run-{number:02}", story(f"run-{number:02}"))
    await journal.open("run-none", create=True)
    asked: list[str] = []
    connection_of(journal).set_trace_callback(asked.append)
    assert await journal.beginning("run-4", 3) == ["run-40", "run-41", "run-42"]
    assert await journal.beginning("run-x") == await journal.beginning("run-none") == []
    assert await journal.beginning("%") == []
    assert len(asked) == 4
    infos = await journal.runs(20)
    assert [info.run_id for info in infos] == [f"run-{number:02}" for number in range(59, 39, -1)]
    assert not [text for text in asked if "SELECT seq, at, version, body, hash" in text]


async def test_a_summary_that_is_not_as_new_as_the_records_is_made_anew(journal: SqliteJournal, path: Path) -> None:
    await write(journal, "r1", story())
    (kept,) = await journal.runs()
    for change in ("body='{}'", "body='no'", "body=replace(body, '\"events\":6', '\"events\":5')", "run=77"):
        assert alter(path, f"UPDATE summary SET {change}") == 1  # noqa: S608 - words of this test
        (again,) = await journal.runs()
        assert replace(again, change=kept.change) == kept
        alter(path, "UPDATE summary SET run=1")
