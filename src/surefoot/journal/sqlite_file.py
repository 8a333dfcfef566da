"""The journal file: its tables, how it is opened, and what an error of SQLite means for the one who reads of it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import sqlite3
import time
import uuid
from collections.abc import Callable, Generator
from pathlib import Path

from surefoot.journal.heads import Heads, heads_of
from surefoot.types.errors import JournalError, JournalTooNew, JournalUnavailable

FORMAT = 3
"""The form of the tables; the form of the records in them is `VERSION` in `types/events.py`. Form 1, of surefoot 0.1,
has no summaries, and no heads beside it; form 2 has no inbox, leases and columns to look for. Both can be read as they
are, and become form 3 when they are first written to."""

FILE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What `sqlite3` raises about a file. The second one when SQLite's own message quotes damaged text."""

_APPLICATION = 0x53554645
"""Tells a journal from other SQLite files ("SUFE")."""

_BUSY_TIMEOUT_S = 5.0

PAGE_BYTES = 1024
"""Of a new file. A step appends about 2 KB in few places, and each place writes its whole page to the log."""

FORMS = Path(__file__).with_name("sqlite_forms")
"""The forms of the tables, one file for the step to each; none is ever changed."""

_FORMER_WRITES = """
CREATE TRIGGER former_writes BEFORE INSERT ON summary WHEN new.status='' AND new.run<>0
BEGIN SELECT RAISE(ABORT, 'this file has become one of a later surefoot'); END"""

_REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space, then resume",
    sqlite3.SQLITE_BUSY: "another process keeps it locked; try again when that one is done",
    sqlite3.SQLITE_LOCKED: "another process keeps it locked; try again when that one is done",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable",
    sqlite3.SQLITE_PERM: "make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "its folder must exist and be writable",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite file; name another path, or move this file away",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; keep a copy, and try SQLite's `.recover` on it",
    sqlite3.SQLITE_IOERR: "the disk reports an error; check it before going on",
}

_SYSTEM_REMEDIES = {
    errno.ENOSPC: _REMEDIES[sqlite3.SQLITE_FULL],
    errno.EDQUOT: _REMEDIES[sqlite3.SQLITE_FULL],
    errno.EROFS: _REMEDIES[sqlite3.SQLITE_READONLY],
    errno.EACCES: "make the file and its folder readable and writable for you",
    errno.EPERM: "make the file and its folder readable and writable for you",
    errno.ENOENT: _REMEDIES[sqlite3.SQLITE_CANTOPEN],
    errno.ENOTDIR: _REMEDIES[sqlite3.SQLITE_CANTOPEN],
    errno.EISDIR: "it is a folder; name a file",
    errno.EIO: _REMEDIES[sqlite3.SQLITE_IOERR],
}

_LOG_REMEDY = (
    "it has a log that was not folded in, and beside it nothing may be written; copy it with all files of its name to "
    "a folder of yours, and name the copy"
)


_AWAY = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR}
"""What says nothing about what was to be written."""


def code_of(error: Exception) -> int:
    """SQLite's primary result code, 0 when the error is not SQLite's own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def file_error(path: Path, error: Exception) -> JournalError:
    """What went wrong, with which file, and what to do."""
    if isinstance(error, OSError):
        file = "" if error.filename in (None, str(path)) else f"{error.filename}: "
        remedy = _SYSTEM_REMEDIES.get(error.errno or 0, "check the file, its folder and the disk")
        return JournalUnavailable(f"journal {path}: {file}{error.strerror or error}; {remedy}")
    remedy = _REMEDIES.get(code_of(error), "surefoot cannot read it as a journal; name another path")
    remedy = _SYSTEM_REMEDIES[errno.EISDIR] if path.is_dir() else remedy
    kind = JournalUnavailable if code_of(error) in _AWAY else JournalError
    return kind(f"journal {path}: {error}; {remedy}")


@contextlib.contextmanager
def translate_errors(path: Path) -> Generator[None]:
    """Errors about the file leave here as `JournalError`, with what to do."""
    try:
        yield
    except (OSError, *FILE_ERRORS) as error:
        raise file_error(path, error) from error


@contextlib.contextmanager
def transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Generator[None]:
    """Nobody else writes in here, and all of it is written, or nothing."""
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def connect(path: Path, *, make: bool = True) -> sqlite3.Connection:
    """The journal of that path; with `make` it is made if there is none, for its owner alone. Its folder must exist.

    Raises `JournalError`, and `JournalTooNew` when a later surefoot made the file.
    """
    if make:
        with contextlib.suppress(OSError):  # SQLite tells what is wrong, and gives the log the rights of the file
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))  # a new file: nobody holds a lock on it
    with translate_errors(path), contextlib.ExitStack() as failed:
        # any thread, one at a time: a synchronous caller may run one event loop after the other on different threads
        db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
        failed.callback(db.close)
        if make and _is_empty(db):
            db.execute(f"PRAGMA page_size={PAGE_BYTES}")  # counts before there is anything in the file
            _use_wal(db, path)  # cannot be done inside a transaction
            with transaction(db):
                if _is_empty(db):  # still: another process may have been first
                    for form in range(1, FORMAT + 1):
                        _step_to(db, form)
                    db.execute(f"PRAGMA application_id={_APPLICATION}")
                    db.execute(f"PRAGMA user_version={FORMAT}")
        _check_form(db, path)
        _use_wal(db, path)
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("PRAGMA journal_size_limit=16777216")  # a log that had to grow is cut back when it starts over
        failed.pop_all()
    return db


def _step_to(db: sqlite3.Connection, form: int) -> None:
    """Make what a form of the tables has more than the one before."""
    for statement in (FORMS / f"{form}.sql").read_text("utf-8").split(";\n"):
        db.execute(statement)


def connect_for(path: Path, *, read_only: bool) -> tuple[sqlite3.Connection, bool]:
    """The journal of that path, and whether files beside it may be written. With `read_only` none is made."""
    may_write = not read_only or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK))
    return connect(path, make=not read_only) if may_write else connect_to_read(path), may_write


def has_log(path: Path) -> bool:
    """Whether there are pages outside of the journal file. Then somebody may have it open, or died with it open."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def connect_to_read(path: Path) -> sqlite3.Connection:
    """The journal of that absolute path, where nothing may be written. Nothing is made, changed or locked.

    SQLite reads a file of this kind only with an index beside it, unless it is told that nobody changes the file
    (`immutable`). That is so where it has no log: whoever writes, writes to the log first. Where it has one, the index
    has to be there, too. Raises `JournalError` where it is not, and as `connect`.
    """
    still = "" if has_log(path) else "&immutable=1"
    with translate_errors(path), contextlib.ExitStack() as failed:
        db = sqlite3.connect(f"{path.as_uri()}?mode=ro{still}", uri=True, isolation_level=None, check_same_thread=False)
        failed.callback(db.close)
        try:
            _check_form(db, path)
        except sqlite3.Error as error:
            if not still and code_of(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise JournalError(f"journal {path}: {error}; {_LOG_REMEDY}") from error
            raise
        failed.pop_all()
    return db


def form_of(db: sqlite3.Connection) -> int:
    """The form of the tables."""
    (form,) = db.execute("PRAGMA user_version").fetchone()
    return form if isinstance(form, int) else 0


def upgrade_tables(
    db: sqlite3.Connection, path: Path, note_heads: Callable[[], None], note_summaries: Callable[[], None]
) -> None:
    """Bring a file of an earlier form to this one, in one transaction; `FILE.before-form-N` keeps what it was.

    `note_heads` has the heads of all runs on the disk, `note_summaries` puts down the summaries of all runs. A former
    surefoot that has the file open still would drop columns that it does not know: its run breaks off instead.
    """
    _keep_before(db, path)
    with transaction(db, "EXCLUSIVE"):
        form = form_of(db)  # another process may have been first
        if form == 1:
            _step_to(db, 2)
            note_heads()
        if form < FORMAT:
            _step_to(db, FORMAT)
            note_summaries()
            db.execute(_FORMER_WRITES)
            db.execute(f"PRAGMA user_version={FORMAT}")


def _keep_before(db: sqlite3.Connection, path: Path) -> None:
    """Keep a copy of a file of an earlier form, with its heads, unless there is one."""
    kept = path.with_name(f"{path.name}.before-form-{FORMAT}")
    fresh = path.with_name(f"{kept.name}.{uuid.uuid4().hex}")
    if kept.exists():
        return
    try:
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL, 0o600))
        with contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as copy:
            db.backup(copy)
        if form_of(db) > 1:
            shutil.copy(heads_of(path), heads_of(kept))
        fresh.replace(kept)
    finally:
        fresh.unlink(missing_ok=True)


def _check_form(db: sqlite3.Connection, path: Path) -> None:
    if _is_empty(db):
        with contextlib.closing(Heads(path, may_write=False)) as heads:
            lost = ", ".join(head.name for _, head in heads.all() if head is not None and head.least)
        if lost:
            raise JournalError(
                f"journal {path}: all records are missing, but {heads.path.name} tells of these runs: {lost}; "
                f"restore all files of the journal, or let each go with `surefoot journal accept RUN --journal {path}`"
            )
        raise JournalError(f"journal {path}: there is nothing in this file, so it is not a journal; name another path")
    if db.execute("PRAGMA application_id").fetchone() != (_APPLICATION,):
        raise JournalError(f"journal {path}: this SQLite file belongs to another program; name another path")
    if (form := form_of(db)) < 1:
        raise JournalError(f"journal {path}: its tables have no known form; {_REMEDIES[sqlite3.SQLITE_CORRUPT]}")
    if form > FORMAT:
        raise JournalTooNew(f"journal {path}: its tables have form {form}, this surefoot knows {FORMAT}: upgrade it")
    db.execute("PRAGMA trusted_schema=OFF")  # a file may come from anywhere


def _is_empty(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _use_wal(db: sqlite3.Connection, path: Path) -> None:
    until = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode=WAL").fetchone()
            break
        except sqlite3.OperationalError as error:  # SQLite's own patience does not cover this change
            if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise JournalError(f"journal {path}: a write-ahead log is not possible there; name a file on a local disk")


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
