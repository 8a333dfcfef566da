"""The shortlist that a model selects from: the best tools of a task and of each of its parts.

Source: spec/planning.md, section 14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from surefoot.core.select.index import Index
from surefoot.core.select.query import Hit, asked, named, ranked
from surefoot.core.select.registration import canonical

BEST = 10
"""Tools of each sub-query, and of the category that the task names, which are on the shortlist whatever they score."""
NEAR = 0.75
"""The part of its best score from which on every tool of a sub-query is on the shortlist."""
PREFERRED = 1.5
"""What the score of a tool of the named category is multiplied by."""

Rank = Callable[[str], Sequence[Hit]]
"""The tools that fit a sub-query, best first."""

_CATEGORY = re.compile(r"(?:意图|\bintent)[ \t]*[:：]\s*[\"'“‘「《\[<`]?(.{1,200})", re.IGNORECASE)


def sub_queries(task: str, sketch: Sequence[str] = ()) -> tuple[str, ...]:
    """What is asked of the index for a task: the whole, then each step of its sketch or, without one, each clause."""
    parts = tuple(sketch) or tuple(text for text, _ in asked(task).clauses)
    return tuple(dict.fromkeys((task, *parts)))


def category_of(index: Index, text: str) -> str:
    """The category of the index that a text prefers by `意图: X` or `intent: X`, in small letters; "" without one."""
    found = _CATEGORY.search(text)
    if found is None:
        return ""
    told = canonical(found[1]).casefold()
    known = {canonical(row.tool.category).casefold() for row in index.rows.values()} - {""}
    return max((one for one in known if _begins_with(told, one)), key=len, default="")


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

    Each sub-query gives its ten best and all that score at least 0.75 of its best, with the score as a part of that
    best. `boosts` multiplies scores by tool id: below 1 for one that failed before, above for one that worked. `text`
    is the user's own (the first sub-query without it): a tool whose id or name stands in it is always on the list, and
    the ten best tools of a category that it prefers are too. `rank` gives the hits of a sub-query in place of the
    words alone, as an encoder has them.
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
        part = _part(index, query, factors, most) if rank is None else _weighed(rank(query), factors)
        kept.update(tool for at, (tool, score) in enumerate(part.items()) if at < BEST or score >= NEAR)
        for tool, score in part.items():
            scores[tool] = max(scores.get(tool, 0.0), score)

    def best(tools: Iterable[str]) -> list[str]:
        return sorted(tools, key=lambda tool: (-scores.get(tool, 0.0), place[tool]))

    called = named(index, own)
    must = (*called, *best(members)[:BEST])
    listed = tuple(dict.fromkeys((*must, *best(kept))))[: max(most, 0)]
    return tuple(dict.fromkeys((*(tool for tool in called if tool in listed), *best(listed))))


def _part(index: Index, query: str, factors: Mapping[str, float], most: int) -> dict[str, float]:
    """The tools of one sub-query, best first, each with its score as a part of the best."""
    hits = {hit.id: hit.score for hit in ranked(index, query, max(most, BEST) + len(factors))}
    if factors:
        hits.update((hit.id, hit.score) for hit in ranked(index, query, len(factors), among=frozenset(factors)))
    return _weighed([Hit(tool, score) for tool, score in hits.items()], factors)


def _weighed(hits: Iterable[Hit], factors: Mapping[str, float]) -> dict[str, float]:
    weighed = sorted(((hit.id, hit.score * factors.get(hit.id, 1.0)) for hit in hits), key=lambda one: -one[1])
    top = weighed[0][1] if weighed else 0.0
    return {tool: score / top for tool, score in weighed} if top > 0.0 else {}


def _begins_with(text: str, category: str) -> bool:
    after = text[len(category) : len(category) + 1]
    return text.startswith(category) and not (category[-1].isascii() and after.isascii() and after.isalnum())
