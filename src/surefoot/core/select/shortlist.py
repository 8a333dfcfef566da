"""Which tools fit a task, and the shortlist that a model selects from.

A task of several parts asks for several tools, and each part alone finds its own; the whole keeps what belongs
together. `score = whole / max(whole) + 0.7 * best clause / its max`, brought to 1 at most. A tool counts only if it
holds a rare word of the task, two words, or one of its name; so a task that no tool fits gets none. Any string is a
task: there is no syntax, and nothing raises. Source: spec/planning.md, sections 14 and 15.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from surefoot.core.select.index import Index, clauses, content_words, plain, words
from surefoot.core.select.profile import canonical
from surefoot.types.dataclass import dataclass

MOST_CHARS = 20_000  # characters of a task that are looked at
_CLAUSE = 0.7
_ENOUGH = 1_000  # tools that the rarer words have found; from there on commoner words only add to these
_RARE = 10  # a word is rare when at most ten tools hold it, or every tenth
_ENOUGH_WORDS = 2

_NAMES = re.compile(r"[A-Za-z0-9_.:/-]+"), re.compile(r"[\w.:/-]+")
_NAME_ENDS = ".:/-"

_GLUE = re.compile(r"[_./-]+|(?<=[a-z])(?=[A-Z])")  # what holds the words of a name together
CANDIDATES = 200  # hits that an encoder looks at

BEST = 10
"""Tools of each sub-query, and of the category that the task names, which are on the shortlist whatever they score."""
NEAR = 0.75  # the part of its best score from which on every tool of a sub-query is on the shortlist
PREFERRED = 1.5  # what the score of a tool of the named category is multiplied by

_CATEGORY = re.compile(r"(?:意图|\bintent)[ \t]*[:：]\s*[\"'“‘「《\[<`]?(.{1,200})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that fits, and how well: 1.0 is best."""

    id: str
    score: float


Rank = Callable[[str], Sequence[Hit]]  # the tools that fit a sub-query, best first


@dataclass(frozen=True, slots=True)
class Asked:
    """A task taken apart: `whole` and each of `clauses` is a text and its content words."""

    text: str
    whole: tuple[str, ...]
    clauses: tuple[tuple[str, tuple[str, ...]], ...]


def parse_task(task: str) -> Asked:
    """A task taken apart into words and clauses."""
    text = plain(task[:MOST_CHARS])
    return Asked(text, content_words(text), tuple(clauses(text)))


def ranked(index: Index, task: str, limit: int = 20, among: Collection[str] | None = None) -> tuple[Hit, ...]:
    """The tools that fit a task, best first, at most `limit`; equal scores in catalogue order. () when none fits.

    With `among` only tools of these ids, with the scores that they have among all.
    """
    query = parse_task(task)
    scores = _scores(index, query)
    best = max(scores.values(), default=1.0)
    first = dict.fromkeys(_tools_called(index, task), best)
    if among is not None:
        chosen = set(map(index.place, among))
        first = {at: score for at, score in first.items() if at in chosen}
        scores = {at: score for at, score in scores.items() if at in chosen}
    for at in first:
        scores.pop(at, None)
    others = _fitting(index, query, scores, limit - len(first))
    return tuple(Hit(index.rows[at].tool.id, score) for at, score in (*first.items(), *others))[: max(limit, 0)]


def tools_named(index: Index, text: str) -> tuple[str, ...]:
    """The ids of the tools whose exact id or name stands in a text, in catalogue order."""
    return tuple(index.rows[at].tool.id for at in sorted({at for _, places in _names_in(index, text) for at in places}))


def meanings(index: Index, task: str, hits: Iterable[Hit]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What an encoder is to compare: the task with each of its clauses, and a text for each hit."""
    parts = parse_task(task).clauses
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
    called = {index.rows[at].tool.id for at in _tools_called(index, task)}
    order = sorted(sums, key=lambda tool: (tool not in called, -sums[tool]))
    return tuple(Hit(tool, sums[tool]) for tool in order[: max(limit, 0)])


def sub_queries(task: str, sketch: Sequence[str] = ()) -> tuple[str, ...]:
    """What is asked of the index for a task: the whole, then each step of its sketch or, without one, each clause."""
    parts = tuple(sketch) or tuple(text for text, _ in parse_task(task).clauses)
    return tuple(dict.fromkeys((task, *parts)))


def category_of(index: Index, text: str) -> str:
    """The category of the index that a text prefers by `意图: X` or `intent: X`, in small letters; "" without one."""
    if (found := _CATEGORY.search(text)) is None:
        return ""
    preferred = canonical(found[1]).casefold()
    known = {canonical(row.tool.category).casefold() for row in index.rows.values()} - {""}

    def is_named(category: str) -> bool:
        after = preferred[len(category) : len(category) + 1]
        is_whole = not (category[-1].isascii() and after.isascii() and after.isalnum())
        return preferred.startswith(category) and is_whole

    return max(filter(is_named, known), key=len, default="")


def shortlist(
    index: Index,
    queries: Sequence[str],
    most: int,
    boosts: Mapping[str, float] | None = None,
    text: str | None = None,
    *,
    rank: Rank | None = None,
) -> tuple[str, ...]:
    """The ids of at most `most` tools for these sub-queries, best first; () when nothing fits.

    Each sub-query gives its ten best and all that score at least 0.75 of its best. `boosts` multiplies scores by tool
    id. `text` is the user's own (the first sub-query without it): a tool whose id or name stands in it is always on the
    list, and so are the ten best of a category that it prefers. `rank` gives the hits of a sub-query in place of words.
    """
    own = (queries[0] if queries else "") if text is None else text
    place = {row.tool.id: at for at, row in index.rows.items()}
    category = category_of(index, own)
    members = tuple(
        row.tool.id for row in index.rows.values() if category and canonical(row.tool.category).casefold() == category
    )
    factors = dict(boosts or {})
    factors.update((tool, factors.get(tool, 1.0) * PREFERRED) for tool in members)
    scores: dict[str, float] = {}
    kept: set[str] = set()
    for query in queries:
        if rank is not None:
            part = _weighed(rank(query), factors)
        else:
            hits = {hit.id: hit.score for hit in ranked(index, query, max(most, BEST) + len(factors))}
            preferred = ranked(index, query, len(factors), among=frozenset(factors)) if factors else ()
            hits.update((hit.id, hit.score) for hit in preferred)
            part = _weighed([Hit(tool, score) for tool, score in hits.items()], factors)
        kept.update(tool for at, (tool, score) in enumerate(part.items()) if at < BEST or score >= NEAR)
        for tool, score in part.items():
            scores[tool] = max(scores.get(tool, 0.0), score)

    def best(tools: Iterable[str]) -> list[str]:
        return sorted(tools, key=lambda tool: (-scores.get(tool, 0.0), place[tool]))

    called = tools_named(index, own)
    must = (*called, *best(members)[:BEST])
    listed = tuple(dict.fromkeys((*must, *best(kept))))[: max(most, 0)]
    return tuple(dict.fromkeys((*(tool for tool in called if tool in listed), *best(listed))))


def _scores(index: Index, query: Asked) -> dict[int, float]:
    whole: dict[int, float] = {}
    best: dict[int, float] = {}
    seen: set[str] = set()
    for _, found in query.clauses:
        sums: dict[int, float] = {}
        for hits in sorted(map(index.lookup, found), key=len):
            if not sums:
                sums = dict(hits)
            elif len(sums) < _ENOUGH:
                for place, weight in hits.items():
                    sums[place] = sums.get(place, 0.0) + weight
            else:
                for place in sums.keys() & hits.keys():
                    sums[place] += hits[place]
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
            again = index.lookup(word)
            for at in whole.keys() & again.keys():
                whole[at] -= again[at]
        seen.update(found)
    most = max(whole.values(), default=0.0)
    if most <= 0.0:
        return {}
    part, rest = 1 / (most * (1 + _CLAUSE)), _CLAUSE / (1 + _CLAUSE)
    return {at: score * part + best[at] * rest for at, score in whole.items()}


def _fitting(index: Index, query: Asked, scores: dict[int, float], limit: int) -> list[tuple[int, float]]:
    """The best that count, at most `limit`."""
    if limit <= 0 or not scores:
        return []
    most = max(_RARE, len(index.rows) // _RARE)
    known = [(index.lookup(word), len(index.weights(word) or index.lookup(word)) <= most) for word in query.whole]
    asked_words = frozenset(query.whole)

    def counts(at: int) -> bool:
        held = [is_rare for found, is_rare in known if at in found]
        return len(held) >= _ENOUGH_WORDS or any(held) or not asked_words.isdisjoint(words(index.rows[at].tool.name))

    fit: list[int] = []
    for some in (2 * limit, len(scores)):
        least = heapq.nlargest(some, scores.values())[-1] if some < len(scores) else 0.0
        order = sorted((at for at, score in scores.items() if score >= least), key=lambda at: (-scores[at], at))
        fit = [at for at in order if counts(at)][:limit]
        if len(fit) == limit:
            break
    return [(at, scores[at]) for at in fit]


def _tools_called(index: Index, task: str) -> list[int]:
    """The tools that the task calls by name: it is the name, or a name that is not a plain word stands in it."""
    whole = index.named.get(task.strip(), ())
    found = {at for name, places in _names_in(index, task) if not name.isalpha() or not name.islower() for at in places}
    return sorted({*whole, *found})


def _names_in(index: Index, text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The names of tools that stand in a text by themselves, and the tools of that name."""
    runs = (run for names in _NAMES for run in names.findall(text))
    pieces = {piece for run in runs for piece in (run, run.strip(_NAME_ENDS))}
    found = [(piece, index.named[piece]) for piece in sorted(pieces) if piece in index.named]
    if not text.isascii():  # no blanks stand around a Chinese name
        found += [(name, places) for name, places in index.named.items() if not name.isascii() and name in text]
    return found


def _weighed(hits: Iterable[Hit], factors: Mapping[str, float]) -> dict[str, float]:
    weighed = sorted(((hit.id, hit.score * factors.get(hit.id, 1.0)) for hit in hits), key=lambda one: -one[1])
    top = weighed[0][1] if weighed else 0.0
    return {tool: score / top for tool, score in weighed} if top > 0.0 else {}
