"""Text as the full-text index has it, questions to that index, and when two texts say the same.

The index breaks text at white space and punctuation and takes off English endings. Chinese, Japanese and Korean have no
white space, so a run of theirs is written as overlapping pairs, with its last character once more: then a single
character is found as the beginning of a pair. Source: spec/primitives.md, 4.4.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import closing
from hashlib import sha256

from surefoot.core.text import clean

TOKENIZER = "porter unicode61 remove_diacritics 2"

MAX_WORDS = 32
"""Words of a query that count."""

_RUN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff]+")


def indexed(text: str) -> str:
    """A text as it goes into the index."""
    return _RUN.sub(lambda run: f" {' '.join([*_pairs(run[0]), run[0][-1]])} ", _normal(text))


def asked(query: str) -> tuple[str, ...]:
    """The words of a query, each quoted for FTS5 so that nothing in it is syntax; at most `MAX_WORDS`, each once."""
    spaced = _RUN.sub(lambda run: f" {' '.join(_pairs(run[0]) or [run[0]])} ", _normal(query))
    words = (word for word in spaced.split() if any(map(str.isalnum, word)))
    return tuple(map(_quoted, dict.fromkeys(words)))[:MAX_WORDS]


def any_of(words: Iterable[str], column: str) -> str:
    """An FTS5 expression: one of these quoted words stands in that column."""
    return f"{column} : ({' OR '.join(words)})"


def all_of(words: Iterable[str], column: str) -> str:
    """An FTS5 expression: each of these quoted words stands in that column."""
    return f"{column} : ({' AND '.join(words)})"


def matching(texts: Sequence[str], query: str) -> set[int]:
    """Which texts hold a word of the query, by the index's own rules."""
    if not (words := asked(query)):
        return set()
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f"CREATE VIRTUAL TABLE one USING fts5(content, tokenize='{TOKENIZER}')")
        db.executemany("INSERT INTO one (rowid, content) VALUES (?, ?)", enumerate(map(indexed, texts)))
        rows = db.execute("SELECT rowid FROM one WHERE one MATCH ?", (any_of(words, "content"),))
        return {at for (at,) in rows}


def content_key(text: str) -> bytes:
    """The same for texts that say the same: NFC, white space collapsed, case kept."""
    return sha256(" ".join(unicodedata.normalize("NFC", clean(text)).split()).encode()).digest()[:16]


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", clean(text)).replace("\0", " ")


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _quoted(word: str) -> str:
    quoted = '"' + word.replace('"', '""') + '"'
    return f"{quoted} *" if len(word) == 1 and _RUN.match(word) else quoted
