"""What makes a written record survive the loss of power, and what keeps the write-ahead log short.

The theory. In WAL mode with `synchronous=NORMAL` a commit hands its pages to the operating system, at the end of the
file `-wal`, and does not wait for the disk: it survives the death of the process, not the loss of power. From there
a page moves on only by a checkpoint, which first syncs the `-wal` file, then copies its pages into the journal file
and syncs that; the log starts over only when all of it has been copied. So at every moment a committed page is in the
`-wal` file or, synced, in the journal file, and one sync of `-wal` after the commit makes it durable. That sync is a
matter of milliseconds, so it is done off the event loop and shared by all who wait for it.

Opening and closing `-wal` ourselves is harmless: SQLite's locks are on the journal file and on `-shm`, never on the
log. (On POSIX, closing any descriptor of a locked file gives up the locks of the whole process.)

Checkpoints are made off the event loop, too, one at a time. A passive one disturbs nobody, but under a steady load the
log has always grown by the time it ends and would never start over; when it has grown far too long, one that holds
writers up for a moment follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

FAR_TOO_LONG_PAGES = 65_536
"""64 MiB of log, where a page has 1 KiB: from here on a checkpoint may hold writers up."""


class SharedSync:
    """`sync`, run on a thread and shared: whoever comes while one is under way waits for the next one.

    The one under way does not count for them, since it may have begun before their write.
    """

    def __init__(self, sync: Callable[[], None], threads: Executor) -> None:
        self._sync = sync
        self._threads = threads
        self._latest: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Return when a sync that began after this call has ended. Raises what `sync` raises."""
        loop = asyncio.get_running_loop()
        before = self._latest
        if before is not None and not before.done() and before.get_loop() is loop:
            await asyncio.wait((before,))
        if self._latest is before or self._latest is None:
            self._latest = loop.run_in_executor(self._threads, self._sync)
        await asyncio.shield(self._latest)


def sync_file(path: Path) -> None:
    """Have all that was written to the file on the disk itself when this returns. Blocks. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Have the names of new files in a folder on the disk. Where folders cannot be synced there is no need to."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checkpoint(path: Path, far_too_long_pages: int = FAR_TOO_LONG_PAGES) -> None:
    """Move what can be moved from the log into the journal file. Blocks.

    What cannot be moved now (a reader needs it, the disk is full) stays in the log, where it is as safe, and is tried
    again at the next checkpoint; so that is no error.
    """
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=NORMAL")
        _, pages, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages > far_too_long_pages:
            db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()


def sync_descriptor(descriptor: int) -> None:
    """Have all that was written to an open file on the disk itself. Blocks. Raises `OSError`."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - not on every platform

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # `fsync` stops short of the disk there
    elif hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)
