"""R1: a plan is accepted whole or refused whole, and all that is wrong with it is said at once.

Source: spec/planning.md, section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, assert_never

from surefoot.core.fingerprint import call_fingerprint
from surefoot.core.plan.arguments import arguments_of, checked
from surefoot.core.plan.dag import Planning, StepRecord, transitive
from surefoot.core.plan.reading import DraftStep
from surefoot.core.plan.references import UnresolvedError, references_in
from surefoot.types.plan import PlanStep
from surefoot.types.planning import (
    RESERVED_IDS,
    Add,
    Mark,
    Operation,
    Reopen,
    SetDependencies,
    SetParameters,
    Skip,
    Supersede,
)
from surefoot.types.tools import Catalogue, ToolSpec

Forbids = Callable[[ToolSpec], bool]
"""Whether the user's words forbid a tool whatever it is called with."""

MOST_FAULTS = 20
"""Faults that a refusal lists; of further ones it tells the number."""

LONGEST_FAULT = 200
"""Characters of one fault that a refusal keeps."""


def listed(faults: Sequence[str]) -> str:
    """Faults as the detail of a refusal."""
    shown = [one[:LONGEST_FAULT] for one in faults[:MOST_FAULTS]]
    if len(faults) > MOST_FAULTS:
        shown.append(f"more_faults:{len(faults) - MOST_FAULTS}")
    return ";".join(shown)


def draft_faults(planning: Planning, draft: Sequence[DraftStep], tools: Catalogue) -> list[str]:
    """What is wrong with a draft by itself, and against what was done before; of one too large no more than that."""
    found: list[str] = []
    if len(draft) > planning.config.max_steps:
        found.append("too_many_steps")
        return found
    counts = Counter(one.step_id for one in draft)
    found += [f"duplicate_step_id:{name}" for name, times in counts.items() if times > 1]
    for one in draft:
        if one.step_id in planning.steps:
            found.append(f"duplicate_step_id:{one.step_id}")
        if one.step_id in RESERVED_IDS:
            found.append(f"reserved_step_id:{one.step_id}")
        if one.step is not None:
            found += repeats(planning, one.step, tools)
    if not draft:
        found.append("empty_plan")
    return found


def repeats(planning: Planning, step: PlanStep, tools: Catalogue) -> list[str]:
    """Whether a call whose parameters are all given was made before: with an effect, or in vain."""
    if step.kind != "tool" or references_in(step.parameters):
        return []
    before = made_before(planning, tools, step.tool_id, step.parameters)
    if "completed" in before:
        return [f"repeats_completed_step:{step.step_id}"]
    return [f"repeats_failed_call:{step.step_id}"] if "failed" in before else []


def repeated(planning: Planning, operations: Iterable[Operation], tools: Catalogue) -> list[str]:
    """Which calls that an edit gives were made before. What a step was to do anyway is not given by the edit."""
    given: dict[str, PlanStep] = {}
    for one in operations:
        match one:
            case Add(step):
                given[step.step_id] = step
            case SetParameters(name, parameters):
                step = given.get(name) or planning.steps[name].step
                if name in given or parameters != step.parameters:
                    given[name] = replace(step, parameters=parameters)
            case Supersede() | Skip() | SetDependencies() | Reopen() | Mark():
                pass
            case _:
                assert_never(one)
    return [fault for step in given.values() for fault in repeats(planning, step, tools)]


def made_before(
    planning: Planning, tools: Catalogue, tool_id: str, parameters: Mapping[str, object]
) -> frozenset[Literal["failed", "completed"]]:
    """What came of equal calls of this run: they had their effect, they failed, or both.

    Both, where the result was not what was promised. One that is being made, or of which nobody knows, is taken to have
    its effect. A call with references that have no values yet is looked at when it starts (section 8, gate c).
    """
    try:
        arguments = arguments_of(tools, planning, tool_id, parameters).value
    except UnresolvedError:
        return frozenset()
    mark = call_fingerprint(tool_id, arguments, tools.get(tool_id))
    found: set[Literal["failed", "completed"]] = set()
    if mark in planning.completed_effects or mark in _being_made(planning):
        found.add("completed")
    if mark in planning.failed_calls:
        found.add("failed")
    return frozenset(found)


def _being_made(planning: Planning) -> frozenset[str]:
    """The calls with an effect that have begun and have not ended, so that nobody knows yet what comes of them."""
    begun = (
        call for child in planning.children.values() for call in child.calls if call.is_open and not call.is_waiting
    )
    return frozenset(
        call_fingerprint(one.name, one.arguments, one.spec)
        for one in begun
        if one.spec is not None and not one.spec.may_repeat
    )


def dropped(planning: Planning, superseded: Iterable[str], added: Iterable[PlanStep]) -> list[str]:
    """The steps that must succeed and that an edit takes out without putting in one that must."""
    out = [name for name in superseded if planning.steps[name].step.must_succeed and planning.steps[name].is_open]
    return [] if any(step.must_succeed for step in added) else [f"must_succeed_dropped:{name}" for name in out]


def open_faults(
    planning: Planning, tools: Catalogue, forbids: Forbids, unreadable: frozenset[str] = frozenset()
) -> list[str]:
    """What is wrong with the steps that are still to be done, in plan order. `planning` is the copy that is tried.

    `unreadable` are the steps whose fields do not fit their kind; what stands for them has no more than their id.
    """
    live = {name: planning.steps[name].step for name in planning.live}
    above, circular = _ancestors(live)
    bit = {name: 1 << at for at, name in enumerate(live)}
    selected = frozenset(planning.selected) if planning.selected is not None else frozenset(tools.names)
    found: list[str] = []
    for name, step in live.items():
        if not planning.steps[name].is_open:
            continue
        if name not in unreadable:
            found += _tool_faults(step, tools, selected, forbids)
        found += [f"unknown_dependency:{name}:{needed}" for needed in step.dependencies if needed not in live]
        if name in circular:
            found.append(f"cycle:{name}")
        used = references_in(step.parameters)
        mask = above[name]
        found += [
            f"reference_not_a_dependency:{name}:{one.step_id}"
            for one in used
            if one.step_id not in live or not mask & bit[one.step_id]
        ]
        if name in unreadable:
            found.append(f"bad_kind:{name}")
        elif step.kind == "tool":
            found += _parameter_faults(step, tools)
    return found


def _tool_faults(step: PlanStep, tools: Catalogue, selected: frozenset[str], forbids: Forbids) -> list[str]:
    found: list[str] = []
    for tool_id in (step.tool_id,) if step.kind == "tool" else step.allowed_tools:
        spec = tools.get(tool_id)
        if spec is None:
            found.append(f"unknown_tool:{step.step_id}:{tool_id}")
        elif tool_id not in selected:
            found.append(f"tool_not_selected:{step.step_id}:{tool_id}")
        elif forbids(spec):
            found.append(f"outside_intent:{step.step_id}:{tool_id}")
    return found


def _parameter_faults(step: PlanStep, tools: Catalogue) -> list[str]:
    """What of the parameters does not fit the tool, as far as that is known before references have values."""
    spec = tools.get(step.tool_id)
    if spec is None:
        return []
    errors = checked(tools, step.tool_id, step.parameters).errors
    later = tuple(name for name, value in step.parameters.items() if references_in(value)) if errors else ()
    below = tuple(f"{name}{sign}" for name in later for sign in ".[")
    known = [one for one in errors if not later or (one.path and one.path not in later)]
    return [f"bad_parameters:{step.step_id}:{one.path or '/'}" for one in known if not one.path.startswith(below)]


def _ancestors(live: Mapping[str, PlanStep]) -> tuple[dict[str, int], frozenset[str]]:
    """For each step all that it depends on, as bits by its place; and the steps that depend on themselves."""
    bit = {name: 1 << at for at, name in enumerate(live)}
    below: dict[str, list[str]] = {}
    unmet: dict[str, int] = {}
    for name, step in live.items():
        needs = [needed for needed in dict.fromkeys(step.dependencies) if needed in live]
        unmet[name] = len(needs)
        for needed in needs:
            below.setdefault(needed, []).append(name)
    masks = dict.fromkeys(live, 0)
    ready = [name for name, count in unmet.items() if not count]
    while ready:
        name = ready.pop()
        mask = masks[name] | bit[name]
        for waiting in below.get(name, ()):
            masks[waiting] |= mask
            unmet[waiting] -= 1
            if not unmet[waiting]:
                ready.append(waiting)
    circular: set[str] = set()
    for name, count in unmet.items():
        if count:
            found = transitive(live, name)
            masks[name] = sum(bit[one] for one in found if one in bit)
            if name in found:
                circular.add(name)
    return masks, frozenset(circular)


def placeholder(step_id: str) -> StepRecord:
    """What stands for a step that cannot be read, so that the others are checked as they would be beside it."""
    return StepRecord(PlanStep("unreadable", kind="reasoning", instruction=step_id))
