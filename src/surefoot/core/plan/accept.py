"""R1: a plan is accepted whole or refused whole, and all that is wrong with it is said at once.

Source: spec/planning.md, section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from surefoot.core.fingerprint import fingerprint
from surefoot.core.plan.arguments import checked
from surefoot.core.plan.dag import Planning, StepRecord, transitive
from surefoot.core.plan.reading import DraftStep
from surefoot.core.plan.references import references_in
from surefoot.types.plan import PlanStep
from surefoot.types.tools import Catalogue, ToolSpec

Forbids = Callable[[ToolSpec], bool]
"""Whether the user's words forbid a tool whatever it is called with."""


def draft_faults(planning: Planning, draft: Sequence[DraftStep], tools: Catalogue) -> list[str]:
    """What is wrong with a draft by itself, and against what was done before."""
    counts = Counter(one.step_id for one in draft)
    found = [f"duplicate_step_id:{name}" for name, times in counts.items() if times > 1]
    for one in draft:
        if one.step_id in planning.steps:
            found.append(f"duplicate_step_id:{one.step_id}")
        if one.step is not None:
            found += repeats(planning, one.step, tools)
    if not draft:
        found.append("empty_plan")
    if len(draft) > planning.config.max_steps:
        found.append("too_many_steps")
    return found


def repeats(planning: Planning, step: PlanStep, tools: Catalogue) -> list[str]:
    """Whether a call whose parameters are all given was made before: with an effect, or in vain."""
    spec = tools.get(step.tool_id)
    if step.kind != "tool" or spec is None or references_in(step.parameters):
        return []
    mark = fingerprint(step.tool_id, checked(tools, step.tool_id, step.parameters).value)
    if mark in planning.completed_effects:
        return [f"repeats_completed_step:{step.step_id}"]
    return [f"repeats_failed_call:{step.step_id}"] if mark in planning.failed_calls else []


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
