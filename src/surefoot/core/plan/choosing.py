"""Which tools are planned with: what a model chose, held to what there is; what changed is computed, not believed.

Source: spec/planning.md, section 14, R15.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from surefoot.core.pager import READ_RESULT
from surefoot.core.plan.dag import Planning
from surefoot.core.plan.edits import superseded_by
from surefoot.core.plan.reading import Object, claimed_changes, percent_of, text_of, texts_of
from surefoot.core.state import State
from surefoot.core.text import json_text
from surefoot.types.endings import Failed
from surefoot.types.events import ToolsSelected
from surefoot.types.plan_events import ProposalRefused
from surefoot.types.planning import ProposalKind
from surefoot.types.selection import (
    ChangesFromPrevious,
    PreviousToolInfo,
    SelectionMode,
    ToolChange,
    ToolSelectionResult,
    ToolUse,
)

EMPTY_SELECTION = "empty selection"

_MOST_NAMES = 20
_LONGEST_NAME = 200

Decided = tuple[ToolsSelected | ProposalRefused, ...]


def offered_names(state: State) -> tuple[str, ...]:
    """The tools that a plan may be made with, in catalogue order; the pager belongs to loops."""
    return tuple(name for name in state.offered.names if name != READ_RESULT)


def selection_given(state: State, planning: Planning, given: Object) -> Decided:
    """What follows from a model's choice: the selection, or why it is asked again."""
    if planning.phase == "selecting":
        return _predicted(state, planning, given)
    return _corrected(state, planning, given)


def _predicted(state: State, planning: Planning, given: Object) -> Decided:
    offered = frozenset(offered_names(state))
    named = tuple(dict.fromkeys(texts_of(given.get("selected_tool_ids"))))
    known = [name for name in named if name in offered]
    refused = _unknown("select_initial", [name for name in named if name not in offered])
    shortlist = planning.shortlist
    chosen = list(known)
    if known and shortlist is not None:
        for best in shortlist.best:  # a part of the task for which nothing was chosen gets its best
            if best and not any(name in chosen for name in best):
                chosen.append(best[0])
    if not known:
        instead = fallback(state, planning)
        if not isinstance(instead, Failed):
            return (*refused, *instead)
        return refused or (_selected(state, planning, (), given, "predictive"),)  # it chose none on purpose
    spoken = [name for name in _spoken_of(state) if name not in chosen]
    chosen = [*chosen[: max(0, planning.config.selected_max - len(spoken))], *spoken]
    return (*refused, _selected(state, planning, chosen, given, "predictive"))


def _corrected(state: State, planning: Planning, given: Object) -> Decided:
    offered = frozenset(offered_names(state))
    named = tuple(dict.fromkeys(texts_of(given.get("selected_tool_ids"))))
    unknown = [name for name in named if name not in offered]
    if not named or unknown:
        detail = _few(unknown) or EMPTY_SELECTION
        return (ProposalRefused("select_corrective", "unknown_tool", detail),)
    named = named[: planning.config.selected_max]
    made = _selected(state, planning, [*named, *_kept_open(planning, named)], given, "corrective")
    claim = claimed_changes(given.get("changes_from_previous"))
    computed = made.selection.changes_from_previous if made.selection is not None else None
    if claim is None or computed is None or short(claim) == short(computed):
        return (made,)
    told = json_text_spaced(short(claim))
    return (ProposalRefused("select_corrective", "diff_corrected", told), made)


def fallback(state: State, planning: Planning) -> Decided | Failed:
    """The selection when a model gives none that can be used; a run for which nothing was found has failed."""
    if planning.phase == "selecting":
        listed = planning.shortlist.names if planning.shortlist is not None else offered_names(state)
        chosen = [*dict.fromkeys((*listed[: planning.config.selected_max], *_spoken_of(state)))]
        kind: ProposalKind = "select_initial"
        mode: SelectionMode = "predictive"
        if not chosen:
            return Failed("no_tools", "no tool of this agent fits the task; give it others, or a profile that has them")
    else:
        previous = planning.selected or ()
        failed = {one.tool_id for one in previous_tools(planning) if one.execution_status == "Failed"}
        chosen = [name for name in previous if name not in failed] or list(previous)
        chosen += _kept_open(planning, chosen)
        kind, mode = "select_corrective", "corrective"
    refused = ProposalRefused(kind, "selection_fallback", ",".join(chosen))
    return (refused, _selected(state, planning, chosen, {}, mode))


def all_selected(state: State, planning: Planning) -> ToolsSelected:
    """A catalogue that is too small to choose from is taken whole."""
    return _selected(state, planning, offered_names(state), {}, "all")


def _selected(
    state: State, planning: Planning, names: Iterable[str], given: Object, mode: SelectionMode
) -> ToolsSelected:
    chosen = tuple(dict.fromkeys(names))
    changes = None
    if planning.selected is not None:
        changes = changes_between(planning.selected, chosen, claimed_changes(given.get("changes_from_previous")))
    made = ToolSelectionResult(
        chosen,
        text_of(given.get("task_type")) or "general",
        percent_of(given.get("selection_confidence")),
        text_of(given.get("brief_reasoning")),
        changes,
    )
    return ToolsSelected(state.offered.names, mode, selection=made)


def changes_between(
    previous: Sequence[str], chosen: Sequence[str], claim: ChangesFromPrevious | None
) -> ChangesFromPrevious:
    """What changed: kept, added and removed are set differences; a claimed replacement counts if it happened."""
    before, after = set(previous), set(chosen)
    reasons: dict[str, str] = {}
    replaced = ()
    if claim is not None:
        left, came = before - after, after - before
        replaced = tuple(one for one in claim.replaced_tools if one.old in left and one.new in came)
        reasons = {one.tool_id: one.reason for one in (*claim.added_tools, *claim.removed_tools)}
    out, new = {one.old for one in replaced}, {one.new for one in replaced}
    return ChangesFromPrevious(
        tuple(name for name in chosen if name in before),
        replaced,
        tuple(ToolChange(name, reasons.get(name, "")) for name in chosen if name not in before and name not in new),
        tuple(ToolChange(name, reasons.get(name, "")) for name in previous if name not in after and name not in out),
    )


def short(changes: ChangesFromPrevious) -> dict[str, Sequence[object]]:
    """The changes without reasons, sorted. Source: spec/planning.md, section 19."""
    return {
        "kept": sorted(changes.kept_tools),
        "replaced": sorted([one.old, one.new] for one in changes.replaced_tools),
        "added": sorted(one.tool_id for one in changes.added_tools),
        "removed": sorted(one.tool_id for one in changes.removed_tools),
    }


def json_text_spaced(value: Mapping[str, Sequence[object]]) -> str:
    """JSON with a blank after commas and colons, keys sorted."""
    parts = (f'"{key}": {_spaced(value[key])}' for key in sorted(value))
    return "{" + ", ".join(parts) + "}"


def _spaced(items: Sequence[object]) -> str:
    inner = (
        _spaced(cast("list[str]", one)) if isinstance(one, list) else json_text(one) for one in items
    )  # a pair of names
    return "[" + ", ".join(inner) + "]"


def previous_tools(planning: Planning) -> tuple[PreviousToolInfo, ...]:
    """How each selected tool has done, over all steps and attempts."""
    uses: dict[str, dict[str, ToolUse]] = {}
    for name in planning.order:
        record = planning.steps[name]
        ended = (*record.failures, *([record.result] if record.status == "succeeded" and record.result else []))
        for one in ended:
            if one.call_id:
                of_step = uses.setdefault(one.tool_id, {})
                before = of_step.get(name, ToolUse(name))
                error = (one.error.cls, one.error.code) if one.error is not None else before.last_error
                of_step[name] = ToolUse(name, before.ok + one.is_success, before.failed + (not one.is_success), error)
    return tuple(_told(tool_id, tuple(uses.get(tool_id, {}).values())) for tool_id in planning.selected or ())


def _told(tool_id: str, uses: tuple[ToolUse, ...]) -> PreviousToolInfo:
    ok, failed = sum(one.ok for one in uses), sum(one.failed for one in uses)
    errors = [f"{one.step_id}: {one.last_error[0]} {one.last_error[1]}" for one in uses if one.last_error is not None]
    summary = f"{ok} calls worked, {failed} failed" if uses else "not used"
    return PreviousToolInfo(tool_id, tool_id, ok, failed, uses, "; ".join(errors), summary)


def _kept_open(planning: Planning, but: Iterable[str]) -> list[str]:
    """The tools of steps that stay open whatever is planned anew."""
    from_here = planning.strategy
    out = frozenset[str]()
    if from_here is not None and from_here.strategy is not None:
        out = frozenset(superseded_by(planning, from_here.strategy))
    known = set(but)
    kept: list[str] = []
    for name in planning.open_steps:
        step = planning.steps[name].step
        for tool_id in (step.tool_id, *step.allowed_tools) if name not in out else ():
            if tool_id and tool_id not in known:
                known.add(tool_id)
                kept.append(tool_id)
    return kept


def _spoken_of(state: State) -> tuple[str, ...]:
    """The tools whose exact name stands in the user's words."""
    words = state.task.text if state.task is not None else ""
    return tuple(name for name in offered_names(state) if _stands_in(name, words))


def _stands_in(name: str, words: str) -> bool:
    at = words.find(name)
    while at >= 0:
        before, after = words[at - 1 : at], words[at + len(name) : at + len(name) + 1]
        if not (_is_of_word(before) or _is_of_word(after)):
            return True
        at = words.find(name, at + 1)
    return False


def _is_of_word(sign: str) -> bool:
    return bool(sign) and sign.isascii() and (sign.isalnum() or sign == "_")


def _unknown(kind: ProposalKind, names: Sequence[str]) -> tuple[ProposalRefused, ...]:
    return (ProposalRefused(kind, "unknown_tool", _few(names)),) if names else ()


def _few(names: Sequence[str]) -> str:
    """Names of a model's making as the detail of a refusal: the first, and how many more there are."""
    more = [f"and_{len(names) - _MOST_NAMES}_more"] if len(names) > _MOST_NAMES else []
    return ",".join([*(one[:_LONGEST_NAME] for one in names[:_MOST_NAMES]), *more])
