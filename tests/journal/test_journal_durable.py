"""Syncs that are shared, and checkpoints."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from surefoot.journal.sqlite_write import SharedSync, checkpoint

pytestmark = pytest.mark.anyio


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
