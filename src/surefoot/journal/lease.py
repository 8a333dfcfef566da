"""Who drives a run: a lock that the operating system gives back when its holder dies.

Each store that drives runs has an owner file of its own beside the journal, an empty SQLite file on which it holds an
exclusive lock for as long as it lives. A run names its owner. The owner lives exactly if its file is there and cannot
be locked by another; so after `kill -9` the run can be taken up at once, while a process that only sleeps keeps it.

No file that SQLite has open may be opened by other means in the same process: on POSIX, closing any descriptor of a
file gives up all locks that the process holds on it. So files here are only ever opened by SQLite.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
import uuid
from pathlib import Path

from surefoot.journal.sqlite_file import code_of
from surefoot.types.errors import JournalError

_TOKEN = re.compile(r"[0-9a-f]{32}")
_SWEEP_AFTER_S = 60
"""A file of this age is either locked or left over: taking the lock follows the making of the file at once."""


def owners_of(journal: Path) -> Path:
    """The folder of owner files of a journal."""
    return journal.with_name(journal.name + ".owners")


class Owner:
    """This store, as others see it. Taken when made; `token` is what a run names."""

    def __init__(self, folder: Path) -> None:
        self.token = uuid.uuid4().hex
        self._file = folder / self.token
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            self._lock = sqlite3.connect(self._file, isolation_level=None, timeout=0, check_same_thread=False)
            self._lock.execute("PRAGMA journal_mode=MEMORY")  # no second file beside it: nothing is ever written
            self._lock.execute("BEGIN EXCLUSIVE")
        except (OSError, sqlite3.Error) as error:
            raise JournalError(f"cannot make {self._file}: {error}; make its folder writable to drive runs") from error
        for file in folder.iterdir():
            with contextlib.suppress(OSError):  # another store sweeps too
                if time.time() - file.stat().st_mtime > _SWEEP_AFTER_S:
                    is_alive(folder, file.name)

    def give_up(self) -> None:
        """Let others take over what this store drove."""
        self._lock.close()
        with contextlib.suppress(OSError):  # a file that is left is dead, and swept later
            self._file.unlink()


def is_alive(folder: Path, token: str) -> bool:
    """Whether the owner of that token still holds its lock. The file of a dead one is removed."""
    if not _TOKEN.fullmatch(token):  # no token of ours, so nobody; and no path to be built from it
        return False
    file = folder / token
    if not file.exists():
        return False
    try:
        probe = sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=0)
    except sqlite3.Error:
        return file.exists()
    try:
        probe.execute("PRAGMA journal_mode=MEMORY")
        probe.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if code_of(error) != sqlite3.SQLITE_NOTADB:  # in doubt it lives: two drivers are the worse harm
            return file.exists()
    finally:
        probe.close()
    file.unlink(missing_ok=True)
    return False
