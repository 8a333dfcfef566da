"""The lines of text files that fit some words best: a ranked word search, without an index.

Lines are ranked as BM25 ranks documents: rare words count more, long lines less. A line also gains from words in its
neighbours and in its path, and from holding a number when the question asks for one. Endings of words are folded
lightly (bridge, bridges; open, opened), Chinese, Japanese and Korean runs are taken as overlapping pairs.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from surefoot.tools.folder import Folder
from surefoot.tools.workspace import DEEPEST_PATH, HISTORY_NAMES, Place, Workspace, read_in

MAX_FILES = 5_000
MAX_BYTES = 64 * 1024 * 1024
MAX_HITS = 50_000
MAX_SECONDS = 5.0
MAX_WORDS = 32
"""Words of a query that count."""
SHOWN_CHARS = 300
"""Characters of a line that are shown."""

_SKIPPED = frozenset({*HISTORY_NAMES, "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache"})
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_NUMBER = re.compile(r"\d|[一二三四五六七八九十百千万]")
_ASKS_NUMBER = re.compile(
    r"\b(when|year|date|how (many|much|old|long|far|tall|high|big|large)|number|amount|price|cost|total)\b"
    r"|几|多少|何时|什么时候|哪年|哪一年|日期|多[长高大远久]",
    re.IGNORECASE,
)
_COMMON = frozenset(
    re.findall(
        r"\S+",
        """a about am an and any are as at be been by can could did do does for from had has have he her his how i if in
        is it its me my of on or our she should so some that the their them there they this to was we were what when
        where which who whom whose why will with would you your please tell find show give
        的 了 是 在 吗 呢 和 与 什么 多少 哪个 谁""",
    )
)
_K1, _B = 1.2, 0.6


@dataclass(frozen=True, slots=True)
class Found:
    """Lines as `file:line: text`, best first; `note` says what was not searched, or is empty."""

    lines: tuple[str, ...]
    note: str


class Query:
    """The words of a question, folded, without those that any text holds."""

    def __init__(self, text: str) -> None:
        self.asks_number = _ASKS_NUMBER.search(text) is not None
        every = [word for run in _WORD.findall(text.casefold()) for word in _parts(run)]
        telling = [word for word in every if word not in _COMMON]
        self.words = tuple(dict.fromkeys(map(fold, telling or every)))[:MAX_WORDS]
        stems = sorted({re.escape(_stem(word)) for word in self.words}, key=len, reverse=True)
        self.pattern = re.compile("|".join(stems) or "(?!)")


@dataclass(slots=True)
class _Line:
    """A line that holds words of the query; `near` are words of its neighbours and of its path, with their weight."""

    shown: str
    number: int
    text: str
    counts: dict[str, int]
    near: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(slots=True)
class _Corpus:
    lines: int = 0
    chars: int = 0
    hits: list[_Line] = field(default_factory=list[_Line])
    having: dict[str, int] = field(default_factory=dict[str, int])
    skipped: str = ""


def words_of(text: str) -> Iterator[str]:
    """The words of a text, folded; runs of Chinese, Japanese or Korean as overlapping pairs."""
    for run in _WORD.findall(text.casefold()):
        for word in _parts(run):
            yield fold(word)


def _parts(run: str) -> Sequence[str]:
    if len(run) == 1 or not "\u3040" <= run[0] <= "\uffdc":
        return (run,)
    return [run[at : at + 2] for at in range(len(run) - 1)]


def fold(word: str) -> str:
    """A word without the endings of plural and verb: lighter than a stemmer, and never wrong by much."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():  # noqa: PLR2004  # "his", "bus"
        return word
    for ending, kept in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ied", "y"), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):  # noqa: PLR2004
            word = word[: -len(ending)] + kept
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":  # noqa: PLR2004  # stopped, planned
        return word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word  # noqa: PLR2004  # bridge, bridges


def best_lines(workspace: Workspace, place: Place, query: Query, limit: int) -> Found:
    """The best lines of the text files at a place. Bounded in files, bytes and seconds; the note says when."""
    corpus = _Corpus()
    until = time.monotonic() + MAX_SECONDS
    files = read = 0
    with closing(_texts(workspace, place)) as texts:
        for shown, data in texts:
            files, read = files + 1, read + len(data)
            full = files > MAX_FILES or read > MAX_BYTES or len(corpus.hits) > MAX_HITS
            if full or time.monotonic() > until:
                corpus.skipped = "\n(there are more files than one search can read; give a path to search less)"
                break
            if b"\0" not in data:
                _add(corpus, query, shown, data.decode("utf-8", "replace"))
    ranked = sorted(corpus.hits, key=lambda line: (-_score(line, query, corpus), line.shown, line.number))[:limit]
    return Found(tuple(f"{line.shown}:{line.number}: {_excerpt(line, query)}" for line in ranked), corpus.skipped)


def _texts(workspace: Workspace, place: Place) -> Generator[tuple[str, bytes]]:
    """Path and content of each file at a place: the file itself, or all below the folder."""
    if place.parts:
        with workspace.folder(place, place.parts[:-1]) as parent:
            if parent.kind(place.parts[-1]) != "folder":
                yield place.shown, read_in(parent, place.parts[-1])[0]
                return
    with workspace.folder(place, place.parts) as folder:
        above = "" if place.shown == "." else f"{place.shown}/"
        yield from _texts_below(workspace, folder, above)


def _texts_below(workspace: Workspace, folder: Folder, above: str) -> Generator[tuple[str, bytes]]:
    for entry in folder.entries():
        if entry.name.casefold() in _SKIPPED or workspace.is_secret(entry.name):
            continue
        try:
            if entry.kind == "file":
                yield f"{above}{entry.name}", read_in(folder, entry.name)[0]
            elif entry.kind == "folder" and above.count("/") < DEEPEST_PATH:
                with folder.below(entry.name) as below:
                    yield from _texts_below(workspace, below, f"{above}{entry.name}/")
        except OSError:  # removed, replaced or closed to us meanwhile: not a reason to find nothing elsewhere
            continue


def _add(corpus: _Corpus, query: Query, shown: str, text: str) -> None:
    lines = text.split("\n")
    corpus.lines += len(lines)
    corpus.chars += len(text)
    folded = [line.casefold() for line in lines] if query.pattern.search(text.casefold()) else []
    found: dict[int, dict[str, int]] = {}
    for at, line in enumerate(folded):
        if query.pattern.search(line) and (counts := _counts(line, query)):
            found[at] = counts
            for word in counts:
                corpus.having[word] = corpus.having.get(word, 0) + 1
    path = dict.fromkeys((word for word in words_of(shown) if word in query.words), 0.3)
    for at, counts in found.items():
        line = _Line(shown, at + 1, lines[at].strip(), counts, dict(path))
        for distance, weight in ((2, 0.12), (1, 0.25)):
            for word in (*found.get(at - distance, ()), *found.get(at + distance, ())):
                line.near[word] = max(weight, line.near.get(word, 0.0))
        corpus.hits.append(line)


def _counts(line: str, query: Query) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words_of(line):
        if (same := _same(word, query)) is not None:
            counts[same] = counts.get(same, 0) + 1
    return counts


def _same(word: str, query: Query) -> str | None:
    """The word of the query that this one is, or is a longer form of (construct, construction)."""
    if word in query.words:
        return word
    return next((asked for asked in query.words if len(asked) > 4 and word.startswith(_stem(asked))), None)  # noqa: PLR2004


def _stem(word: str) -> str:
    """What all forms of a folded word begin with: cities and city share `cit`."""
    return word[:-1] if len(word) > 3 and word[-1] in "ye" else word  # noqa: PLR2004


def _score(line: _Line, query: Query, corpus: _Corpus) -> float:
    usual = corpus.chars / max(1, corpus.lines) or 1.0
    length = _K1 * (1 - _B + _B * min(4.0, len(line.text) / usual))
    total = score = held = 0.0
    for word in query.words:
        having = corpus.having.get(word, 0)
        weight = math.log(1 + (corpus.lines - having + 0.5) / (having + 0.5))
        total += weight
        if count := line.counts.get(word, 0):
            held += weight
            score += weight * count * (_K1 + 1) / (count + length)
        else:
            score += weight * line.near.get(word, 0.0)
    score *= 0.5 + 0.5 * held / total if total else 1.0
    return score * 1.25 if query.asks_number and _NUMBER.search(line.text) else score


def _excerpt(line: _Line, query: Query) -> str:
    if len(line.text) <= SHOWN_CHARS:
        return line.text
    found = query.pattern.search(line.text.casefold())
    start = max(0, (found.start() if found else 0) - SHOWN_CHARS // 3)
    return f"{'…' if start else ''}{line.text[start : start + SHOWN_CHARS]}…"
