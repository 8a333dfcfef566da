"""The file of a knowledge store: its tables, how it is opened, and what an error of SQLite means for who reads of it.

A convention is found through `entry_lookup`: for one scope and one language it lists the verified entries in the order
in which they are shown, so a lookup reads no more than it needs. `entry_text` holds words only, no text; `place` is one
word that stands for the scope of a verified entry, so that the index finds "these words, at these levels" by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from surefoot.types.knowledge import KnowledgeError

TOKENIZER = "porter unicode61 remove_diacritics 2"
FORM = 1
"""The form of the tables."""

_APPLICATION = 0x53554B4E
"""Tells a knowledge store from other SQLite files ("SUKN")."""

_BUSY_TIMEOUT_S = 5.0
_CACHE_KIB = 16_384

_TABLES = f"""
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    predicate TEXT NOT NULL,
    object TEXT NOT NULL,
    content TEXT NOT NULL,
    scope TEXT NOT NULL,       -- '' none, '.' the root, else a directory below it
    language TEXT NOT NULL,    -- '' any
    confidence REAL NOT NULL,
    verified INTEGER NOT NULL,
    verified_by TEXT NOT NULL,
    source TEXT NOT NULL,
    run_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    created_at REAL NOT NULL,
    key BLOB NOT NULL,         -- the same for contents that say the same
    UNIQUE (scope, language, key)
);
CREATE INDEX entry_lookup ON entry (language, scope, verified, confidence DESC, id, key);
CREATE VIRTUAL TABLE entry_text USING fts5(content, place, content='', tokenize='{TOKENIZER}');
"""

_ANY_TABLE = "SELECT 1 FROM sqlite_master"

_LOCKED = "another process keeps it locked; try again when that one is done"
_REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), _LOCKED),
    **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM), "make the file and its folder writable"),
    sqlite3.SQLITE_CANTOPEN: "its folder must exist and be writable",
    sqlite3.SQLITE_NOTADB: "not an SQLite file; name another path, or move this file away",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; keep a copy, and try SQLite's `.recover` on it",
    sqlite3.SQLITE_IOERR: "the disk reports an error; check it before going on",
}


@contextmanager
def reported(path: Path) -> Generator[None]:
    """Whatever SQLite raises, as a `KnowledgeError` that names the file and the remedy."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:  # the second when SQLite's message quotes damaged text
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        remedy = _REMEDIES.get(code, "not a knowledge store that surefoot can use; name another path")
        raise KnowledgeError(f"knowledge store {path}: {error}; {remedy}") from error


def connect(path: Path) -> sqlite3.Connection:
    """The store of that path, made if there is none; its folder must exist. Raises `KnowledgeError`."""
    with reported(path):
        # any thread, one at a time: whoever closes it need not be the one who worked with it
        db = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
        with ExitStack() as closing_it:
            closing_it.callback(db.close)
            db.execute("PRAGMA trusted_schema=OFF")  # a file may come from anywhere
            if db.execute(_ANY_TABLE).fetchone() is None:
                db.execute("PRAGMA journal_mode=WAL")  # cannot be done inside a transaction
                with transaction(db, path):
                    if db.execute(_ANY_TABLE).fetchone() is None:  # still: another process may have been first
                        for statement in _TABLES.split(";\n"):
                            db.execute(statement)
                        db.execute(f"PRAGMA application_id={_APPLICATION}")
                        db.execute(f"PRAGMA user_version={FORM}")
            (application,), (form,) = (db.execute(f"PRAGMA {n}").fetchone() for n in ("application_id", "user_version"))
            if application != _APPLICATION:
                told = "this SQLite file belongs to another program; name another path"
                raise KnowledgeError(f"knowledge store {path}: {told}")
            if form != FORM:
                told = f"its tables have form {form}, this surefoot knows {FORM}: use the one that made it"
                raise KnowledgeError(f"knowledge store {path}: {told}")
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            closing_it.pop_all()
    return db


@contextmanager
def transaction(db: sqlite3.Connection, path: Path) -> Generator[None]:
    """All or nothing. Raises `KnowledgeError`."""
    with reported(path):
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
            db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")
