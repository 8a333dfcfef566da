"""Which tools are planned with: what a model may choose from, and what it chose, held to what there is.

What changed since the last choice is computed, not believed. Source: spec/planning.md, section 14, R15.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from surefoot.core.plan.edits import superseded_by
from surefoot.core.plan.forms import SELECTION, Object, claimed_changes, names_of, read_form
from surefoot.core.select.index import Index, index_of_catalogue
from surefoot.core.select.shortlist import BEST, Hit, ranked, shortlist, sub_queries
from surefoot.core.state.state import Planning, State
from surefoot.core.state.window import READ_RESULT
from surefoot.types.events import ToolsSelected
from surefoot.types.outcomes import Failed
from surefoot.types.plan import ProposalKind
from surefoot.types.plan_events import ProposalRefused
from surefoot.types.selection import (
    ChangesFromPrevious,
    PreviousToolInfo,
    SelectionMode,
    ToolChange,
    ToolSelectionResult,
    ToolUse,
)

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


EMPTY_SELECTION = "empty selection"

_MOST_NAMES = 20
_LONGEST_NAME = 200

Decided = tuple[ToolsSelected | ProposalRefused, ...]


def offered_names(state: State) -> tuple[str, ...]:
    """The tools that a plan may be made with, in catalogue order; the pager belongs to loops."""
    return tuple(name for name in state.offered.names if name != READ_RESULT)


def listed_names(state: State, planning: Planning) -> tuple[str, ...]:
    """The tools that a selection chooses from: the shortlist, and in a corrective one those chosen before."""
    if planning.shortlist is None:
        return offered_names(state)
    before = planning.selected or () if planning.phase == "reselecting" else ()
    return tuple(dict.fromkeys((*planning.shortlist.names, *before)))


def selection_given(state: State, planning: Planning, given: Object) -> Decided:
    """What follows from a model's choice: the selection, or why it is asked again."""
    offered = frozenset(offered_names(state))
    named = names_of(given.get("selected_tool_ids"))
    known, unknown = [one for one in named if one in offered], [one for one in named if one not in offered]
    most = planning.config.selected_max
    if planning.phase != "selecting":
        if not known or unknown:
            return (ProposalRefused("select_corrective", "unknown_tool", _few(unknown) or EMPTY_SELECTION),)
        chosen = known[:most]
        made = selected(state, planning, [*chosen, *_kept_open(planning, chosen)], given, "corrective")
        claim = claimed_changes(given.get("changes_from_previous"))
        computed = made.selection.changes_from_previous if made.selection is not None else None
        if claim is None or computed is None or short(claim) == short(computed):
            return (made,)
        return (
            ProposalRefused(
                "select_corrective", "diff_corrected", json.dumps(short(claim), ensure_ascii=False, sort_keys=True)
            ),
            made,
        )
    refused = (ProposalRefused("select_initial", "unknown_tool", _few(unknown)),) if unknown else ()
    if not known:
        instead = fallback(state, planning)
        if not isinstance(instead, Failed):
            return (*refused, *instead)
        return refused or (selected(state, planning, (), given, "predictive"),)  # it chose none on purpose
    for best in planning.shortlist.best if planning.shortlist is not None else ():
        if best and not any(name in known for name in best):  # a part of the task for which nothing was chosen
            known.append(best[0])
    spoken = [name for name in _spoken_of(state) if name not in known]
    return (*refused, selected(state, planning, [*known[: max(0, most - len(spoken))], *spoken], given, "predictive"))


def fallback(state: State, planning: Planning) -> Decided | Failed:
    """The selection when a model gives none that can be used; a run for which nothing was found has failed."""
    kind: ProposalKind = "select_initial"
    mode: SelectionMode = "predictive"
    if planning.phase == "selecting":
        listed = planning.shortlist.names if planning.shortlist is not None else offered_names(state)
        chosen = [*dict.fromkeys((*listed[: planning.config.selected_max], *_spoken_of(state)))]
        if not chosen:
            return Failed("no_tools", "no tool of this agent fits the task; give it others, or a profile that has them")
    else:
        previous = planning.selected or ()
        failed = {one.tool_id for one in previous_tools(planning) if one.execution_status == "Failed"}
        chosen = [name for name in previous if name not in failed] or list(previous)
        chosen += _kept_open(planning, chosen)
        kind, mode = "select_corrective", "corrective"
    refused = ProposalRefused(kind, "selection_fallback", ",".join(chosen))
    return (refused, selected(state, planning, chosen, {}, mode))


def selected(
    state: State, planning: Planning, names: Iterable[str], given: Object, mode: SelectionMode
) -> ToolsSelected:
    """The selection of these tools, with what a model has said of it in `given` and what has changed."""
    chosen = tuple(dict.fromkeys(names))
    changes = None
    if planning.selected is not None:
        changes = changes_between(planning.selected, chosen, claimed_changes(given.get("changes_from_previous")))
    own = {"selected_tool_ids": chosen, "changes_from_previous": changes}
    return ToolsSelected(state.offered.names, mode, selection=read_form(ToolSelectionResult, SELECTION, given, **own))


def changes_between(
    previous: Sequence[str], chosen: Sequence[str], claim: ChangesFromPrevious | None
) -> ChangesFromPrevious:
    """What changed: kept, added and removed are set differences; a claimed replacement counts if it happened."""
    before, after = set(previous), set(chosen)
    claim = claim or ChangesFromPrevious()
    replaced = tuple(one for one in claim.replaced_tools if one.old in before - after and one.new in after - before)
    reasons = {one.tool_id: one.reason for one in (*claim.added_tools, *claim.removed_tools)}
    out, new = {one.old for one in replaced} | after, {one.new for one in replaced} | before
    return ChangesFromPrevious(
        tuple(name for name in chosen if name in before),
        replaced,
        tuple(ToolChange(name, reasons.get(name, "")) for name in chosen if name not in new),
        tuple(ToolChange(name, reasons.get(name, "")) for name in previous if name not in out),
    )


def short(changes: ChangesFromPrevious) -> dict[str, Sequence[object]]:
    """The changes without reasons, sorted. Source: spec/planning.md, section 19."""
    return {
        "kept": sorted(changes.kept_tools),
        "replaced": sorted([one.old, one.new] for one in changes.replaced_tools),
        "added": sorted(one.tool_id for one in changes.added_tools),
        "removed": sorted(one.tool_id for one in changes.removed_tools),
    }


def previous_tools(planning: Planning) -> tuple[PreviousToolInfo, ...]:
    """How each selected tool has done, over all steps and attempts."""
    uses: dict[str, dict[str, ToolUse]] = {}
    for name in planning.order:
        record = planning.steps[name]
        ended = (*record.failures, *([record.result] if record.result and record.result.is_success else []))
        for one in ended:
            if one.call_id:
                of_step = uses.setdefault(one.tool_id, {})
                before = of_step.get(name, ToolUse(name))
                error = (one.error.cls, one.error.code) if one.error is not None else before.last_error
                of_step[name] = ToolUse(name, before.ok + one.is_success, before.failed + (not one.is_success), error)
    made: list[PreviousToolInfo] = []
    for tool_id in planning.selected or ():
        mine = tuple(uses.get(tool_id, {}).values())
        ok, failed = sum(one.ok for one in mine), sum(one.failed for one in mine)
        errors = [f"{one.step_id}: {one.last_error[0]} {one.last_error[1]}" for one in mine if one.last_error]
        summary = f"{ok} calls worked, {failed} failed" if mine else "not used"
        made.append(PreviousToolInfo(tool_id, tool_id, ok, failed, mine, "; ".join(errors), summary))
    return tuple(made)


def _kept_open(planning: Planning, but: Iterable[str]) -> list[str]:
    strategy = planning.strategy.strategy if planning.strategy is not None else None
    out = frozenset(superseded_by(planning, strategy)) if strategy is not None else frozenset[str]()
    steps = [planning.steps[name].step for name in planning.open_steps if name not in out]
    used = dict.fromkeys(tool_id for step in steps for tool_id in (step.tool_id, *step.allowed_tools) if tool_id)
    return [tool_id for tool_id in used if tool_id not in frozenset(but)]


def _spoken_of(state: State) -> tuple[str, ...]:
    words = state.task.text if state.task is not None else ""
    alone = r"(?<![A-Za-z0-9_]){}(?![A-Za-z0-9_])"
    return tuple(name for name in offered_names(state) if re.search(alone.format(re.escape(name)), words))


def _few(names: Sequence[str]) -> str:
    """Names of a model's making as the detail of a refusal: the first, and how many more there are."""
    more = [f"and_{len(names) - _MOST_NAMES}_more"] if len(names) > _MOST_NAMES else []
    return ",".join([*(one[:_LONGEST_NAME] for one in names[:_MOST_NAMES]), *more])
