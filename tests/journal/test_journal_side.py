"""What is kept beside the runs of a journal: compare-and-set, in every store, between threads and processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from journal_cases import Made

from processes import ran
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.side import amend
from surefoot.journal.sqlite import SqliteJournal
from surefoot.types.errors import JournalError
from surefoot.types.ports import JournalStore

pytestmark = pytest.mark.anyio

ADD = """
import asyncio, sys
from surefoot.journal.side import amend
from surefoot.journal.sqlite import SqliteJournal

async def add():
    for _ in range(50):
        await amend(SqliteJournal(sys.argv[1]).side, "pins", lambda was: was + b"x")

asyncio.run(add())
"""


async def test_what_is_put_is_got_and_only_in_place_of_what_is_there(store: JournalStore) -> None:
    side = store.side
    assert await side.get("pins") == b""
    assert await side.put("pins", b"one", b"")
    assert not await side.put("pins", b"two", b"")
    assert not await side.put("pins", b"two", b"other")
    assert (await side.get("pins"), await side.get("paths")) == (b"one", b"")
    assert await side.put("pins", b"two", b"one")
    assert await side.put("paths", b"three", b"")
    assert (await side.get("pins"), await side.get("paths")) == (b"two", b"three")
    assert "pins" in side.place("pins")


@pytest.mark.parametrize("name", ["memory", "sqlite"])
async def test_of_many_who_change_it_at_once_none_is_lost(name: str, made: Made) -> None:
    store = made(name)

    def on_a_thread() -> None:
        async def add() -> None:
            for _ in range(20):
                await amend(store.side, "pins", lambda was: was + b"x")

        asyncio.run(add())

    await asyncio.gather(*(asyncio.to_thread(on_a_thread) for _ in range(4)))
    assert await store.side.get("pins") == b"x" * 80


async def test_of_processes_that_change_it_at_once_none_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await asyncio.gather(*(asyncio.to_thread(ran, ADD, str(path)) for _ in range(3)))
    assert await SqliteJournal(path).side.get("pins") == b"x" * 150
    assert not path.exists()


async def test_a_journal_of_lines_keeps_what_is_beside_its_runs() -> None:
    lines: list[str] = []
    first = MemoryJournal(keep=lines.extend)
    assert await first.side.put("pins", b"one", b"")
    assert await first.side.put("pins", b"\xfftwo", b"one")
    assert await MemoryJournal(lines).side.get("pins") == b"\xfftwo"

    def fails(_: object) -> None:
        raise OSError("the disk is full")

    with pytest.raises(JournalError, match="disk is full"):
        await MemoryJournal(lines, fails).side.put("pins", b"three", b"\xfftwo")


async def test_a_folder_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match=r"cannot write .*runs\.db\.pins\.json"):
        await SqliteJournal(tmp_path / "file" / "runs.db").side.put("pins", b"x", b"")
