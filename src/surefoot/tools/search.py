"""The lines of text files that fit some words best: a ranked word search, without an index.

Lines are ranked as BM25 ranks documents: rare words count more, long lines less. A line also gains from words in its
neighbours and in its path, and from holding a number when the question asks for one. Each hit is shown with its
neighbours, since the answer often stands beside the line that holds the words of the question.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from surefoot.tools.calling import ToolFailed
from surefoot.tools.folder import Folder
from surefoot.tools.words import Query, words_of
from surefoot.tools.workspace import DEEPEST_PATH, HISTORY_NAMES, Place, Workspace, read_in

MAX_FILES = 5_000
MAX_BYTES = 64 * 1024 * 1024
MAX_HITS = 50_000
MAX_SECONDS = 5.0
SHOWN_CHARS = 300
"""Characters of a line that are shown."""

_SKIPPED = frozenset({*HISTORY_NAMES, "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache"})
_NUMBER = re.compile(
    r"\d|[一二三四五六七八九十百千万]|\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(thir|four|fif|six|seven"
    r"|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million)\b",
    re.IGNORECASE,
)
_K1, _B = 1.2, 0.6


@dataclass(frozen=True, slots=True)
class Found:
    """Lines as `file:line: text`, the block with the best hit first; `note` says what was not searched, or is empty."""

    lines: tuple[str, ...]
    note: str


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
    ranked = sorted(corpus.hits, key=lambda hit: (-_score(hit, query, corpus), hit.shown, hit.at))
    lines = [
        f"{shown}:{number}: {_excerpt(text, query)}" for shown, number, text in _with_neighbours(ranked[:limit], limit)
    ]
    return Found(tuple(lines), corpus.skipped)


def _texts(workspace: Workspace, place: Place) -> Generator[tuple[str, bytes]]:
    """Path and content of each file at a place: the file itself, or all below the folder."""
    if any(name.casefold() in HISTORY_NAMES for name in place.parts):
        raise ToolFailed("Folders of version control are not searched. Search another path.")
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
    """How often each word of the query stands in a text; a related word counts in part."""
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


def _excerpt(text: str, query: Query) -> str:
    if len(text) <= SHOWN_CHARS:
        return text
    found = query.pattern.search(text.casefold())
    start = max(0, (found.start() if found else 0) - SHOWN_CHARS // 3)
    return f"{'…' if start else ''}{text[start : start + SHOWN_CHARS]}…"
