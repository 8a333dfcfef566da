"""The tools that a model gets to choose from, at first and after failures. Source: spec/planning.md, section 14.

It stands beside `choose` because the index takes time to import, and only a run that plans asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surefoot.core.pager import READ_RESULT
from surefoot.core.plan.choose import offered_names, previous_tools
from surefoot.core.plans import Planning
from surefoot.core.select.index import Index, index_of_catalogue
from surefoot.core.select.shortlist import BEST, Hit, ranked, shortlist, sub_queries
from surefoot.core.state import State

_FAILED, _WORKED = 0.5, 1.25
"""What the score of a tool is multiplied by that has only failed in this run, and of one that has worked."""


def shortlisted(
    state: State, planning: Planning, meant: Mapping[str, Sequence[Hit]] | None = None
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The tools, best first, and for each part of the task its best; a small catalogue is listed whole.

    `meant` are the hits of each of `queries_of` as an encoder ranks them; without it words alone count.
    """
    most = planning.config.shortlist_max
    offered, index = offered_names(state), index_of(state)
    words = state.task.text if state.task is not None else ""
    queries = queries_of(state, planning)
    boosts: dict[str, float] = {}
    for one in previous_tools(planning) if planning.phase == "reselecting" else ():
        if one.tool_id != READ_RESULT and (one.execution_status == "Failed" or one.calls_ok):
            boosts[one.tool_id] = _FAILED if one.execution_status == "Failed" else _WORKED

    def rank(query: str) -> Sequence[Hit]:
        return ranked(index, query, BEST) if meant is None else meant[query]

    listed = shortlist(index, queries, most, boosts, words, rank=rank if meant is not None else None)
    names = tuple(name for name in listed if name in offered)
    if len(offered) <= most:
        names = (*names, *(name for name in offered if name not in names))
    best = tuple(tuple(hit.id for hit in rank(query)[:BEST] if hit.id in offered) for query in queries)
    return names, tuple(dict.fromkeys(some for some in best if some))


def queries_of(state: State, planning: Planning) -> tuple[str, ...]:
    """What is asked of the index: the task and its parts; after failures what failed, what is advised, what is open."""
    words = state.task.text if state.task is not None else ""
    if planning.phase != "reselecting":
        sketch = state.gate.known.words.anchor.sketch if state.gate is not None else None
        return sub_queries(words, [step.description for step in sketch.steps] if sketch is not None else [])
    records = [planning.steps[name] for name in planning.open_steps]
    steps = [one.step for one in (*(r for r in records if r.status == "failed"), *records)]
    advice = planning.reflections[-1].reflection.alternative_approaches if planning.reflections else ()
    parts = [f"{one.title} {one.instruction} {one.expected_output}".strip() for one in steps]
    return tuple(dict.fromkeys((words, *advice, *(part for part in parts if part))))


def index_of(state: State) -> Index:
    """The index of the tools that are offered; made once for each catalogue. The pager is in it and never listed."""
    return state.offered.derived("index", index_of_catalogue)
