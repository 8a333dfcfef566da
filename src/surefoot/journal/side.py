"""What is kept beside the runs of a journal: in files that a person can read and mend, or in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Lock

from surefoot.types.archive import SideStore
from surefoot.types.errors import JournalError

_PATIENCE_S = 10.0


class FileSide:
    """A `SideStore` of files that only their user can read: what is kept under `pins` is in `JOURNAL.pins.json`.

    Nothing is made before the first `put`, which locks a file in the folder `locks`. The journal need not exist.
    """

    def __init__(self, journal: Path, locks: Path) -> None:
        self._journal = journal
        self._locks = locks

    async def get(self, name: str) -> bytes:
        return await asyncio.to_thread(_read, self._path(name))

    async def put(self, name: str, data: bytes, was: bytes) -> bool:
        return await asyncio.to_thread(_write, self._path(name), self._locks, data, was)

    def place(self, name: str) -> str:
        return str(self._path(name))

    def _path(self, name: str) -> Path:
        return self._journal.with_name(f"{self._journal.name}.{name}.json")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from error


def _write(path: Path, folder: Path, data: bytes, was: bytes) -> bool:
    import sqlite3  # noqa: PLC0415  # for a lock that goes with its process; a journal in memory needs none

    fresh = path.with_name(f"{path.name}.new")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = sqlite3.connect(folder / "side", isolation_level=None, timeout=_PATIENCE_S)
        with closing(lock):
            lock.execute("PRAGMA journal_mode=MEMORY")  # no second file
            lock.execute("BEGIN EXCLUSIVE")
            if _read(path) != was:
                return False
            fresh.touch(0o600)
            fresh.write_bytes(data)
            fresh.replace(path)
    except (OSError, sqlite3.Error) as error:
        raise JournalError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
    return True


class MemorySide:
    """A `SideStore` that lasts as long as this object. `keep` is called before anything is changed."""

    def __init__(self, keep: Callable[[str, bytes], object] | None = None) -> None:
        self.kept: dict[str, bytes] = {}
        self._keep = keep
        self._at_work = Lock()

    async def get(self, name: str) -> bytes:
        return self.kept.get(name, b"")

    async def put(self, name: str, data: bytes, was: bytes) -> bool:
        with self._at_work:
            if self.kept.get(name, b"") != was:
                return False
            if self._keep is not None:
                self._keep(name, data)
            self.kept[name] = data
            return True

    def place(self, name: str) -> str:
        return f"{name}, in memory"


async def amend(side: SideStore, name: str, change: Callable[[bytes], bytes]) -> None:
    """Put in place of what is there what `change` makes of it; made anew where somebody else was first."""
    was = await side.get(name)
    while not await side.put(name, change(was), was):
        was = await side.get(name)
