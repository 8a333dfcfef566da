"""The lines of text files that fit some words best: a ranked word search, without an index.

Lines are ranked as BM25 ranks documents: rare words count more, long lines less. A line also gains from words in its
neighbours and in its path, and from holding a number when the question asks for one; it is shown with its neighbours,
since the answer often stands beside the line that holds the words of the question. Endings of plural and verb are
folded; a longer word that holds one of the query (storm, thunderstorm) counts half. Chinese, Japanese and Korean runs
are overlapping pairs.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from surefoot.tools.call import ToolFailed
from surefoot.tools.workspace import HISTORY_NAMES, Place, Workspace, read_in

MAX_FILES = 5_000
MAX_BYTES = 64 * 1024 * 1024
MAX_HITS = 50_000
MAX_SECONDS = 5.0
SHOWN_CHARS = 300  # characters of a line that are shown

_SKIPPED = frozenset({*HISTORY_NAMES, "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache"})
_NUMBER = re.compile(
    r"\d|[一二三四五六七八九十百千万]|\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(thir|four|fif|six|seven"
    r"|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million)\b",
    re.IGNORECASE,
)
_K1, _B = 1.2, 0.6

MAX_WORDS = 32  # words of a query that count
HELD = 0.5  # what a word counts that begins or ends with one of the query, where the same word counts one

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_ASKS_NUMBER = re.compile(
    r"\b(when|year|date|time|how (many|much|old|long|far|tall|high|big|large|often)|number|amount|price|cost|total)\b"
    r"|几|多少|何时|什么时候|哪年|哪一年|日期|多[长高大远久]",
    re.IGNORECASE,
)
_COMMON = frozenset(
    re.findall(
        r"\S+",
        """a about am an and any are as at be been by can could did do does for from had has have he her his how i if in
        is it its me my of on or our she should so some that the their them there they this to was we were what when
        where which who whom whose why will with would you your please tell find show give look up
        的 了 是 在 吗 呢 和 与 什么 多少 哪个 谁""",
    )
)
_KINDS = re.findall(r"\S+", "year date day time number amount name place person people note file")
"""What is looked for: such words seldom stand beside the answer, so they count half."""
_SHORTEST = 5  # letters that a word must have to be looked for in longer ones


class Found(NamedTuple):
    """Lines as `file:line: text`, the block with the best hit first; `note` says what was not searched, or is empty."""

    lines: tuple[str, ...]
    note: str


class Query:
    """The words of a question, folded, without those that any text holds; `weights` says how much each counts."""

    def __init__(self, text: str) -> None:
        self.asks_number = _ASKS_NUMBER.search(text) is not None
        every = list(words_of(text))
        telling = [word for word in every if word not in _COMMON]
        self.words = tuple(dict.fromkeys(map(fold, telling or every)))[:MAX_WORDS]
        kinds = frozenset(map(fold, _KINDS))
        self.weights = {word: 0.5 if word in kinds else 1.0 for word in self.words}
        starts = {word[:-1] if len(word) > 3 and word[-1] in "ye" else word for word in self.words}  # noqa: PLR2004
        self.pattern = re.compile("|".join(map(re.escape, sorted(starts, key=len, reverse=True))) or "(?!)")
        """What each word that matches holds (city and cities share `cit`): cheap to look for in a text."""

        @lru_cache(maxsize=20_000)  # texts say the same words again and again
        def match(word: str) -> tuple[str, float] | None:
            """Which word of the query a word of a text stands for, and how well, 1.0 being the same; None for none."""
            folded = fold(word)
            if folded in self.weights:
                return folded, 1.0
            signs = (one for one in self.words if len(one) == 1 and one >= "\u3040" and one in folded)
            long = (one for one in self.words if len(one) >= _SHORTEST and one.isalpha())
            held = ((one, HELD) for one in long if folded.startswith(one) or folded.endswith(one))
            return next(chain(((one, 1.0) for one in signs), held), None)

        self.match = match


@dataclass(slots=True)
class _Hit:
    """A line that holds words of the query; places count the lines of a file that are not blank.

    `around` holds it and its neighbours as (number in the file, text), by place; `near` are the words of neighbours and
    path, with their weight.
    """

    shown: str
    at: int
    text: str
    counts: dict[str, float]
    around: dict[int, tuple[int, str]]
    near: dict[str, float]


@dataclass(slots=True)
class _Corpus:
    lines: int = 0
    chars: int = 0
    hits: list[_Hit] = field(default_factory=list["_Hit"])
    having: dict[str, float] = field(default_factory=dict[str, float])
    skipped: str = ""


def best_lines(workspace: Workspace, place: Place, query: Query, limit: int) -> Found:
    """The best lines of the text files at a place, with their neighbours: at most `limit` lines, blank ones left out.

    Bounded in files, bytes and seconds; the note says when.
    """
    corpus = _Corpus()
    until = time.monotonic() + MAX_SECONDS
    read = 0
    with closing(_texts(workspace, place)) as texts:
        for files, (shown, data, size) in enumerate(texts, 1):
            read += len(data)
            full = files > MAX_FILES or read > MAX_BYTES or len(corpus.hits) > MAX_HITS
            if full or time.monotonic() > until:
                corpus.skipped += "\n(there are more files than one search can read; give a path to search less)"
                break
            if b"\0" not in data:
                if size > len(data):
                    corpus.skipped += f"\n(only the first {len(data)} bytes of {shown} were searched)"
                _add(corpus, query, shown, data.decode("utf-8", "replace"))
    ranked = sorted(corpus.hits, key=lambda hit: (-_score(hit, query, corpus), hit.shown, hit.at))

    def excerpt(text: str) -> str:
        if len(text) <= SHOWN_CHARS:
            return text
        found = query.pattern.search(text.casefold())
        start = max(0, (found.start() if found else 0) - SHOWN_CHARS // 3)
        return f"{'…' if start else ''}{text[start : start + SHOWN_CHARS]}…"

    shown_lines = _with_neighbours(ranked[:limit], limit)
    return Found(tuple(f"{path}:{number}: {excerpt(text)}" for path, number, text in shown_lines), corpus.skipped)


def words_of(text: str) -> Iterator[str]:
    """The words of a text in lower case, not folded; runs of Chinese, Japanese or Korean as overlapping pairs."""
    for run in _WORD.findall(text.casefold()):
        if len(run) == 1 or not "\u3040" <= run[0] <= "\uffdc":
            yield run
        else:
            yield from (run[at : at + 2] for at in range(len(run) - 1))


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


def _texts(workspace: Workspace, place: Place) -> Generator[tuple[str, bytes, int]]:
    """The files at a place, each with as many of its bytes as are read, and its size."""
    if any(name.casefold() in HISTORY_NAMES for name in place.parts):
        raise ToolFailed("Folders of version control are not searched. Search another path.")
    if place.parts:
        with workspace.folder(place, place.parts[:-1]) as parent:
            if parent.kind(place.parts[-1]) != "folder":
                yield place.shown, *read_in(parent, place.parts[-1])
                return
    with workspace.folder(place, place.parts) as folder:
        above = "" if place.shown == "." else f"{place.shown}/"
        for inner, shown, entry in workspace.walk(folder, above, but=_SKIPPED):
            if entry.kind == "file":
                with suppress(OSError):  # removed, replaced or closed to us meanwhile: no reason to find nothing else
                    yield shown, *read_in(inner, entry.name)


def _add(corpus: _Corpus, query: Query, shown: str, text: str) -> None:
    corpus.lines += text.count("\n") + 1
    corpus.chars += len(text)
    if not query.pattern.search(text.casefold()):
        return
    lines = [(number, line) for number, each in enumerate(text.split("\n"), 1) if (line := each.strip())]
    found: dict[int, dict[str, float]] = {}
    for at, (_, line) in enumerate(lines):
        if counts := _counts(line, query):
            found[at] = counts
            for word, count in counts.items():
                corpus.having[word] = corpus.having.get(word, 0.0) + min(1.0, count)
    path = {word: 0.3 * how_well for word, how_well in _counts(shown, query).items()}
    for at, counts in found.items():
        around = {near: lines[near] for near in (at, at + 1, at + 2, at - 1) if 0 <= near < len(lines)}
        hit = _Hit(shown, at, lines[at][1], counts, around, dict(path))
        for distance, weight in ((2, 0.12), (1, 0.25)):
            for word in (*found.get(at - distance, ()), *found.get(at + distance, ())):
                hit.near[word] = max(weight, hit.near.get(word, 0.0))
        corpus.hits.append(hit)


def _counts(text: str, query: Query) -> dict[str, float]:
    """How often each word of the query stands in a text; a word that begins or ends with one counts in part."""
    counts: dict[str, float] = {}
    if query.pattern.search(text := text.casefold()):
        for word in words_of(text):
            if (match := query.match(word)) is not None:
                counts[match[0]] = counts.get(match[0], 0.0) + match[1]
    return counts


def _score(hit: _Hit, query: Query, corpus: _Corpus) -> float:
    usual = corpus.chars / max(1, corpus.lines) or 1.0
    length = _K1 * (1 - _B + _B * min(4.0, len(hit.text) / usual))
    total = score = held = 0.0
    for word, asked in query.weights.items():
        having = corpus.having.get(word, 0.0)
        weight = asked * math.log(1 + (corpus.lines - having + 0.5) / (having + 0.5))
        total += weight
        if count := hit.counts.get(word, 0.0):
            held += weight * min(1.0, count)
            score += weight * count * (_K1 + 1) / (count + length)
        else:
            score += weight * hit.near.get(word, 0.0)
    score *= 0.5 + 0.5 * held / total if total else 1.0
    return score * 1.25 if query.asks_number and _NUMBER.search(hit.text) else score


def _with_neighbours(ranked: Sequence[_Hit], limit: int) -> Iterator[tuple[str, int, str]]:
    """Path, number and text of the best hits and of the lines around them, at most `limit` lines.

    Lines that follow each other are one block, in the order of the file; the block with the best hit comes first.
    """
    taken: dict[tuple[str, int], tuple[int, int, str]] = {}
    for hit in ranked:
        for at, (number, text) in hit.around.items():
            if len(taken) < limit:
                taken.setdefault((hit.shown, at), (len(taken), number, text))
        if len(taken) >= limit:
            break
    blocks: list[list[tuple[str, int]]] = []
    for shown, at in sorted(taken):
        if blocks and blocks[-1][-1] == (shown, at - 1):
            blocks[-1].append((shown, at))
        else:
            blocks.append([(shown, at)])
    for block in sorted(blocks, key=lambda block: min(taken[each][0] for each in block)):
        for each in block:
            yield each[0], *taken[each][1:]
