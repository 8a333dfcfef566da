"""Facts in one SQLite file: kept once, found by their words or by the place that they hold for.

All methods block and may be called from one thread at a time; `bridge.py` does so from a thread of its own. Several
processes may use one file. The index breaks text at white space and punctuation and takes off English endings. Chinese,
Japanese and Korean have no white space, so a run of theirs is written as overlapping pairs, with its last character
once more: then a single character is found as the beginning of a pair. Source: spec/primitives.md, 4.3 and 4.4.

A convention is found through `entry_lookup`: for one scope and one language it lists the verified entries in the order
in which they are shown, so a lookup reads no more than it needs. `entry_text` holds words only, no text; `place` is one
word that stands for the scope of a verified entry, so that the index finds these words, at these levels, by itself.

Ranking costs about half a microsecond an entry, and more for each word. So when more than `most_ranked` entries match,
the rarer words of the query are ranked; what holds none of them follows if there is room. When no word is rare, entries
that hold all of them come first. Words that stand everywhere weigh next to nothing in `bm25`, so this changes little
besides the time.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
import unicodedata
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from surefoot.core.text import clean, json_text
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.knowledge import Knowledge, KnowledgeError

TOKENIZER = "porter unicode61 remove_diacritics 2"
FORM = 1  # the form of the tables
_APPLICATION = 0x53554B4E  # tells a knowledge store from other SQLite files ("SUKN")

_BUSY_TIMEOUT_S = 5.0
_CACHE_KIB = 16_384

_TABLES = Path(__file__).with_name("store.sql")
_TEXT = f"CREATE VIRTUAL TABLE entry_text USING fts5(content, place, content='', tokenize='{TOKENIZER}')"

_ANY_TABLE = "SELECT 1 FROM sqlite_master"
_LOCKED = "another process keeps it locked; try again when that one is done"
_REMEDIES = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), _LOCKED),
    **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM), "make the file and its folder writable"),
    sqlite3.SQLITE_CANTOPEN: "name a file, not a folder; its folder must exist and be writable",
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
                        for statement in (*_TABLES.read_text("utf-8").split(";\n"), _TEXT):
                            db.execute(statement)
                        db.execute(f"PRAGMA application_id={_APPLICATION}")
                        db.execute(f"PRAGMA user_version={FORM}")
            (application,), (form,) = (db.execute(f"PRAGMA {n}").fetchone() for n in ("application_id", "user_version"))
            told = "this SQLite file belongs to another program; name another path"
            if application == _APPLICATION:
                told = f"its tables have form {form}, this surefoot knows {FORM}: use the one that made it"
            if application != _APPLICATION or form != FORM:
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


LONGEST_PART = 2_000  # characters of a subject, a predicate or an object
LONGEST_LANGUAGE = 64
MOST_RANKED = 5_000  # entries that are ranked for one query
MOST_MATCHES = 100
"""Conventions of one level that are given, and in all after which no further level is read: more than can be asked."""
MOST_ON_TOPIC = 1_000  # conventions of one level on a topic that are compared by confidence, the oldest

MAX_WORDS = 32  # words of a query that count

_RUN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff]+")

_FIELDS = (
    *("id", "type", "subject", "predicate", "object", "scope", "language", "confidence", "verified_by", "source"),
    *("run_id", "call_id", "created_at"),
)
_INSERTED = (*_FIELDS[1:], "content", "verified", "key")
_LOAD = f"SELECT {', '.join(_FIELDS)} FROM entry WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608  # our own names
_INSERT = f"INSERT INTO entry ({', '.join(_INSERTED)}) VALUES (:{', :'.join(_INSERTED)})"  # noqa: S608  # our own names
_TOLD = (*_FIELDS[1:5], *_FIELDS[7:12], "content")  # all that a person sees of it or that says where it is from
_VOUCH = f"UPDATE entry SET verified=1, {', '.join(f'{name}=:{name}' for name in _TOLD)} WHERE id=:id"  # noqa: S608  # our own names
_SAME = "SELECT id, content, verified FROM entry WHERE scope=:scope AND language=:language AND key=:key"
_WORDS = "INSERT INTO entry_text (rowid, content, place) VALUES (?, ?, ?)"
_NO_WORDS = "INSERT INTO entry_text (entry_text, rowid, content, place) VALUES ('delete', ?, ?, ?)"
_LEVEL = """SELECT * FROM (SELECT ? AS level, confidence, id, key FROM entry
WHERE language=? AND scope=? AND verified=1 ORDER BY confidence DESC, id LIMIT ?)"""
_TOPIC = """SELECT * FROM (SELECT ? AS level, confidence, id, key FROM
(SELECT rowid FROM entry_text WHERE entry_text MATCH ? LIMIT ?) AS found CROSS JOIN entry ON entry.id=found.rowid
WHERE verified=1 ORDER BY confidence DESC, id LIMIT ?)"""
_RANKED = """SELECT rowid FROM entry_text WHERE entry_text MATCH ?
ORDER BY bm25(entry_text, 1.0, 0.0), rowid LIMIT ?"""
_FIRST = "SELECT rowid FROM entry_text WHERE entry_text MATCH ? LIMIT ?"
_COUNTED = "SELECT count(*) FROM (SELECT 1 FROM entry_text WHERE entry_text MATCH ? LIMIT ?)"


@dataclass(frozen=True, slots=True)
class Match:
    """A convention that was found, not loaded yet. `level` 0 is the nearest; `key` tells what it says."""

    level: int
    number: int
    key: bytes


class KnowledgeStore:
    """A store in one file, which is opened, and made if there is none, at the first use; its folder must exist.

    Methods raise `KnowledgeError` when the file cannot be used. Ids are numbers, written as text.
    `most_ranked`: see the module.
    """

    def __init__(self, path: str | os.PathLike[str], *, most_ranked: int = MOST_RANKED) -> None:
        self._path = Path(path)
        self._most_ranked = most_ranked
        self._opened: sqlite3.Connection | None = None

    def add(self, entries: Iterable[Knowledge], *, by: str) -> tuple[Knowledge, ...]:
        """Keep entries, as the bridge tells; what has the same content, scope and language is there already.

        Raises `ConfigError` for too long a text.
        """
        rows = [_row(entry, by) for entry in entries]
        db = self._db()
        with transaction(db, self._path):
            numbers = [self._keep(db, row) for row in rows]
        found = self.load(numbers)
        return tuple(found[number] for number in numbers)

    def load(self, numbers: Collection[int]) -> dict[int, Knowledge]:
        """The entries of those numbers that there are."""
        found: dict[int, Knowledge] = {}
        with reported(self._path):
            for row in self._db().execute(_LOAD, (json_text(list(numbers)),)) if numbers else ():
                values: dict[str, Any] = dict(zip(_FIELDS, row, strict=True))  # of the types that the table declares
                values["id"] = str(values["id"])
                try:
                    found[row[0]] = Knowledge(**values)
                except ConfigError as error:
                    wrong = f"knowledge store {self._path}: entry {row[0]} cannot be read ({error}); delete that row"
                    raise KnowledgeError(wrong) from error
        return found

    def search(self, query: str, limit: int) -> tuple[Knowledge, ...]:
        """Entries that hold a word of the query, best first by `bm25`, ties by id; verified or not."""
        if not (words := fts_words(query)):
            return ()
        everything, left = _content(words), self._most_ranked
        telling: list[str] = []  # the rarest words, as many as can be ranked; the others stand in too many entries
        with reported(self._path):
            if self._count(everything) <= left:
                numbers = self._numbers(_RANKED, everything, limit)
            else:
                for count, word in sorted((self._count(_content([word])), word) for word in words):
                    left -= count
                    if left < 0:
                        break
                    telling += [word] if count else []
                first = (_RANKED, _content(telling)) if telling else (_FIRST, _content(words, "AND"))
                rest = self._numbers(_FIRST, everything, limit)
                numbers = list(dict.fromkeys((*self._numbers(*first, limit), *rest)))[:limit]
        found = self.load(numbers)
        return tuple(found[number] for number in numbers if number in found)

    def knows_language(self, language: str) -> bool:
        """Whether a verified entry is for that language."""
        with reported(self._path):
            one = "SELECT 1 FROM entry WHERE language=? AND verified=1 LIMIT 1"
            return self._db().execute(one, (language,)).fetchone() is not None

    def of_language(self, scopes: Sequence[str], language: str) -> list[Match]:
        """Verified entries for that or any language at these scopes, nearest first, then those for the language alone.

        Inside a level by confidence, then id. One query; it gives at most `MOST_MATCHES` of a level and language, and
        nothing of the levels behind the one with which there are so many.
        """
        places = [(at, one, scope) for at, scope in enumerate(scopes) for one in dict.fromkeys(("", language))]
        places.append((len(scopes), language, ""))
        values = [value for place in places for value in (*place, MOST_MATCHES)]
        return self._matches(_LEVEL, len(places), values)

    def on_topic(self, scopes: Sequence[str], query: str) -> list[Match]:
        """Verified entries at these scopes, and for any language alone, that hold a word of the query; as above."""
        if not (words := fts_words(query)):
            return []
        expression = _content(words)
        places = (*(_place(scope, "") for scope in scopes), _place("", "any"))
        values: list[object] = []
        for at, place in enumerate(places):
            values += (at, f'{expression} AND place : "{place}"', MOST_ON_TOPIC, MOST_MATCHES + 1)
        return self._matches(_TOPIC, len(places), values)

    def verify(self, entry_id: str, *, by: str) -> Knowledge:
        """Let a person vouch for an entry, which is given back. Raises `UsageError` when there is none of that id."""
        if not by.strip():
            raise UsageError("knowledge is verified by a person; give the name")
        db = self._db()
        is_id = entry_id.isascii() and entry_id.isdigit() and len(entry_id) < 19  # noqa: PLR2004  # what SQLite's integers hold
        number = int(entry_id) if is_id else 0
        if (known := self.load([number]).get(number)) is None:
            raise UsageError(f"unknown entry {entry_id!r} in the knowledge store {self._path}; a search shows ids")
        row = _row(known, by)
        with transaction(db, self._path):
            self._keep(db, row)
        return self.load([number])[number]

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        db, self._opened = self._opened, None
        if db is not None:
            db.close()

    def _db(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = connect(self._path)
        return self._opened

    def _keep(self, db: sqlite3.Connection, row: dict[str, object]) -> int:
        """The number of an entry that is in the file now."""
        found: tuple[int, str, int] | None = db.execute(_SAME, row).fetchone()
        if found is None:
            number = db.execute(_INSERT, row).lastrowid or 0  # an insert has one
        elif row["verified"]:
            number, content, was_verified = found
            db.execute(_NO_WORDS, _words(number, {**row, "content": content, "verified": was_verified}))
            db.execute(_VOUCH, {**row, "id": number})
        else:
            return found[0]
        db.execute(_WORDS, _words(number, row))
        return number

    def _count(self, expression: str) -> int:
        """How many entries match, counted up to one more than can be ranked."""
        return self._db().execute(_COUNTED, (expression, self._most_ranked + 1)).fetchone()[0]

    def _numbers(self, statement: str, expression: str, limit: int) -> list[int]:
        return [number for (number,) in self._db().execute(statement, (expression, limit))]

    def _matches(self, part: str, parts: int, values: Sequence[object]) -> list[Match]:
        """What a statement of so many parts gives, nearest first. SQLite runs a part when its rows are asked for."""
        rows: list[tuple[int, float, int, bytes]] = []
        keys: set[bytes] = set()
        with reported(self._path), closing(self._db().execute(" UNION ALL ".join([part] * parts), values)) as found:
            for row in found:
                if len(keys) >= MOST_MATCHES and row[0] != rows[-1][0]:
                    break
                rows.append(row)
                keys.add(row[-1])
                if part is _TOPIC and len(keys) >= MOST_MATCHES and rows[-MOST_MATCHES][0] == row[0]:
                    break  # `sqlite3` steps one row ahead: that is of this level still, so the next is not begun
        rows.sort(key=lambda row: (row[0], -row[1], row[2]))
        return [Match(level, number, key) for level, _, number, key in rows]


def indexed(text: str) -> str:
    """A text as it goes into the index."""
    return _RUN.sub(lambda run: f" {' '.join([*_pairs(run[0]), run[0][-1]])} ", _normal(text))


def fts_words(query: str) -> tuple[str, ...]:
    """The words of a query, each quoted for FTS5 so that nothing in it is syntax; at most `MAX_WORDS`, each once."""
    spaced = _RUN.sub(lambda run: f" {' '.join(_pairs(run[0]) or [run[0]])} ", _normal(query))
    words = (word for word in spaced.split() if any(map(str.isalnum, word)))

    def quoted(word: str) -> str:
        whole = '"' + word.replace('"', '""') + '"'
        return f"{whole} *" if len(word) == 1 and _RUN.match(word) else whole

    return tuple(map(quoted, dict.fromkeys(words)))[:MAX_WORDS]


def matching(texts: Sequence[str], query: str) -> set[int]:
    """Which texts hold a word of the query, by the index's own rules."""
    if not (words := fts_words(query)):
        return set()
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f"CREATE VIRTUAL TABLE one USING fts5(content, tokenize='{TOKENIZER}')")
        db.executemany("INSERT INTO one (rowid, content) VALUES (?, ?)", enumerate(map(indexed, texts)))
        rows = db.execute("SELECT rowid FROM one WHERE one MATCH ?", (_content(words),))
        return {at for (at,) in rows}


def content_key(text: str) -> bytes:
    """The same for texts that say the same: NFC, white space collapsed, case kept."""
    return sha256(" ".join(unicodedata.normalize("NFC", clean(text)).split()).encode()).digest()[:16]


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", clean(text)).replace("\0", " ")


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _content(words: Iterable[str], operator: str = "OR") -> str:
    """An FTS5 expression: one or all of these quoted words stand in a content."""
    return f"content : ({f' {operator} '.join(words)})"


def _row(entry: Knowledge, by: str) -> dict[str, object]:
    for name in ("subject", "predicate", "object"):
        if len(text := getattr(entry, name)) > LONGEST_PART:
            raise ConfigError(name, f"{text[:40]}…", f"at most {LONGEST_PART:,} characters")
    if len(entry.language) > LONGEST_LANGUAGE:
        raise ConfigError("language", f"{entry.language[:40]}…", f"at most {LONGEST_LANGUAGE} characters")
    kept = replace(entry, verified_by=by.strip(), created_at=entry.created_at or time.time())
    row = {name: getattr(kept, name) for name in _FIELDS[1:]}
    row |= {"content": kept.content, "verified": int(kept.verified), "key": content_key(kept.content)}
    return {name: clean(value) if isinstance(value, str) else value for name, value in row.items()}


def _words(number: int, row: Mapping[str, object]) -> tuple[int, str, str]:
    """What the index has of an entry. One that nobody vouches for has no place, so it takes none from those that do."""
    place = _place(str(row["scope"]), str(row["language"])) if row["verified"] else ""
    return number, indexed(str(row["content"])), place


def _place(scope: str, language: str) -> str:
    """One word that stands for a level: a scope, or no scope and some language; "" for knowledge of no level."""
    if not scope:
        return "anylanguage" if language else ""
    return f"at{sha256(scope.encode()).hexdigest()[:16]}"
