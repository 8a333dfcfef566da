"""Which tools fit a task: ranked by the words of the whole and of its best clause, exact names first.

A task of several parts asks for several tools, and each part alone finds its own; the whole keeps what belongs
together. `score = whole / max(whole) + 0.7 * best clause / its max`, brought to 1 at most. A tool counts only if it
holds a rare word of the task, two words, or one of its name; so a task that no tool fits gets none. Any string is a
task: there is no syntax, and nothing raises. Source: spec/planning.md, section 15.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Sequence

from surefoot.core.select.index import Index, Postings
from surefoot.core.select.tokens import clauses, content_words, plain, words
from surefoot.types.dataclass import dataclass

MOST_CHARS = 20_000
"""Characters of a task that are looked at."""
_CLAUSE = 0.7
_ENOUGH = 1_000
"""Tools that the rarer words have found; from there on commoner words only add to these."""
_RARE_PART = 10
_RARE_LEAST = 10
"""A word is rare when at most ten tools hold it, or every tenth."""
_ENOUGH_WORDS = 2

_NAMES = re.compile(r"[A-Za-z0-9_.:/-]+"), re.compile(r"[\w.:/-]+")
_NAME_ENDS = ".:/-"

_GLUE = re.compile(r"[_./-]+|(?<=[a-z])(?=[A-Z])")
"""What holds the words of a name together."""
CANDIDATES = 200
"""Hits that an encoder looks at."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that fits, and how well: 1.0 is best."""

    id: str
    score: float


@dataclass(frozen=True, slots=True)
class Asked:
    """A task taken apart: `whole` and each of `clauses` is a text and its content words."""

    text: str
    whole: tuple[str, ...]
    clauses: tuple[tuple[str, tuple[str, ...]], ...]


def asked(task: str) -> Asked:
    """A task taken apart into words and clauses."""
    text = plain(task[:MOST_CHARS])
    return Asked(text, content_words(text), tuple(clauses(text)))


def ranked(index: Index, task: str, limit: int = 20, among: Collection[str] | None = None) -> tuple[Hit, ...]:
    """The tools that fit a task, best first, at most `limit`; equal scores in catalogue order. () when none fits.

    With `among` only tools of these ids, with the scores that they have among all.
    """
    query = asked(task)
    scores = _scores(index, query)
    best = max(scores.values(), default=1.0)
    first = dict.fromkeys(_called(index, task), best)
    if among is not None:
        chosen = set(map(index.place, among))
        first = {at: score for at, score in first.items() if at in chosen}
        scores = {at: score for at, score in scores.items() if at in chosen}
    for at in first:
        scores.pop(at, None)
    others = _fitting(index, query, scores, limit - len(first))
    return tuple(Hit(index.rows[at].tool.id, score) for at, score in (*first.items(), *others))[: max(limit, 0)]


def named(index: Index, text: str) -> tuple[str, ...]:
    """The ids of the tools whose exact id or name stands in a text, in catalogue order."""
    return tuple(index.rows[at].tool.id for at in sorted(_standing(index, text)))


def meanings(index: Index, task: str, hits: Iterable[Hit]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What an encoder is to compare: the task with each of its clauses, and a text for each hit."""
    parts = asked(task).clauses
    queries = (task[:MOST_CHARS], *(text for text, _ in parts if len(parts) > 1))
    tools = [index.rows[at].tool for hit in hits if (at := index.place(hit.id)) is not None]
    return queries, tuple(f"{_GLUE.sub(' ', tool.name)}: {tool.description}" for tool in tools)


def blended(
    index: Index, task: str, hits: Sequence[Hit], likeness: Sequence[Sequence[float]], limit: int = 20
) -> tuple[Hit, ...]:
    """The hits ranked anew with what an encoder says of them: score + cosine to the whole + best cosine to a clause.

    `likeness` has for each hit the cosines to the queries of `meanings`. Exact names stay first. Scores are up to 3.
    """
    sums = {hit.id: hit.score + near[0] + max(near[1:] or near) for hit, near in zip(hits, likeness, strict=True)}
    called = {index.rows[at].tool.id for at in _called(index, task)}
    order = sorted(sums, key=lambda tool: (tool not in called, -sums[tool]))
    return tuple(Hit(tool, sums[tool]) for tool in order[: max(limit, 0)])


def _scores(index: Index, query: Asked) -> dict[int, float]:
    whole: dict[int, float] = {}
    best: dict[int, float] = {}
    seen: set[str] = set()
    for _, found in query.clauses:
        sums = _sums(index, found)
        top = max(sums.values(), default=0.0)
        if top <= 0.0:
            continue
        if len(query.clauses) == 1:
            return {at: score / top for at, score in sums.items()}
        for at, score in sums.items():
            part = score / top
            if at not in whole:
                whole[at] = score
                best[at] = part
            else:
                whole[at] += score
                if part > best[at]:  # noqa: PLR1730  # a call of `max` costs more than all the rest here
                    best[at] = part
        for word in seen.intersection(found):  # a word counts once
            again = index.asked(word)
            for at in whole.keys() & again.keys():
                whole[at] -= again[at]
        seen.update(found)
    most = max(whole.values(), default=0.0)
    if most <= 0.0:
        return {}
    part, rest = 1 / (most * (1 + _CLAUSE)), _CLAUSE / (1 + _CLAUSE)
    return {at: score * part + best[at] * rest for at, score in whole.items()}


def _sums(index: Index, asked_words: Iterable[str]) -> dict[int, float]:
    """What the words of a clause say of each tool, added up, the rarest words first."""
    sums: dict[int, float] = {}
    for found in sorted(map(index.asked, asked_words), key=len):
        if not sums:
            sums = dict(found)
        elif len(sums) < _ENOUGH:
            for at, weight in found.items():
                sums[at] = sums.get(at, 0.0) + weight
        else:
            for at in sums.keys() & found.keys():
                sums[at] += found[at]
    return sums


def _fitting(index: Index, query: Asked, scores: dict[int, float], limit: int) -> list[tuple[int, float]]:
    """The best that count, at most `limit`."""
    if limit <= 0 or not scores:
        return []
    most = max(_RARE_LEAST, len(index.rows) // _RARE_PART)
    known = [(index.asked(word), len(index.weights(word) or index.asked(word)) <= most) for word in query.whole]
    names = frozenset(query.whole)
    fit: list[int] = []
    for some in (2 * limit, len(scores)):
        least = heapq.nlargest(some, scores.values())[-1] if some < len(scores) else 0.0
        order = sorted((at for at, score in scores.items() if score >= least), key=lambda at: (-scores[at], at))
        fit = [at for at in order if _counts(index, at, known, names)][:limit]
        if len(fit) == limit:
            break
    return [(at, scores[at]) for at in fit]


def _counts(index: Index, at: int, known: Sequence[tuple[Postings, bool]], asked_words: frozenset[str]) -> bool:
    held = [is_rare for found, is_rare in known if at in found]
    return len(held) >= _ENOUGH_WORDS or any(held) or not asked_words.isdisjoint(words(index.rows[at].tool.name))


def _called(index: Index, task: str) -> list[int]:
    """The tools that the task calls by name: it is the name, or a name that is no plain word stands in it."""
    whole = index.named.get(task.strip(), ())
    found = {at for name, places in _names_in(index, task) if not name.isalpha() or not name.islower() for at in places}
    return sorted({*whole, *found})


def _standing(index: Index, text: str) -> set[int]:
    return {at for _, places in _names_in(index, text) for at in places}


def _names_in(index: Index, text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The names of tools that stand in a text by themselves, and the tools of that name."""
    runs = (run for names in _NAMES for run in names.findall(text))
    pieces = {piece for run in runs for piece in (run, run.strip(_NAME_ENDS))}
    found = [(piece, index.named[piece]) for piece in sorted(pieces) if piece in index.named]
    if not text.isascii():  # no blanks stand around a Chinese name
        found += [(name, places) for name, places in index.named.items() if not name.isascii() and name in text]
    return found
