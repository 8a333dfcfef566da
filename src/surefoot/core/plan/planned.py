"""A proposed plan, or a repair of one in new steps: taken as a whole, or refused with all that is wrong with it.

What somebody proposes who has read untrusted text may narrow the plan and not widen it: a step that goes beyond the
user's words is marked, and a person is asked about each of its calls. Source: spec/planning.md, sections 4, 7 and 13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from surefoot.core.gate.effects import guess
from surefoot.core.plan.accept import Forbids, draft_faults, dropped, listed, open_faults, placeholder, repeated
from surefoot.core.plan.dag import Planning, StepRecord, changed, laid_out
from surefoot.core.plan.edits import applied, remedied, replanned, superseded_by
from surefoot.core.plan.reading import DraftStep, Object, draft_of, list_of, object_of, remediation_of, text_of
from surefoot.core.state import State
from surefoot.types.plan import PlanStep
from surefoot.types.plan_events import PlanEdited, PlanMade, ProposalRefused
from surefoot.types.planning import Add, Mark, Operation, Plan, SetParameters
from surefoot.types.reflection import AddRemediationSteps, RemediationStep, ReplanningStrategy
from surefoot.types.tools import ToolSpec

T = TypeVar("T")


def plan_given(state: State, planning: Planning, given: Object, *, by: str) -> PlanMade | PlanEdited | ProposalRefused:
    """What follows from a proposed plan. `by` is who proposes it: a developer's plan is not held to what was read."""
    reflected = planning.strategy
    if reflected is not None and reflected.strategy is not None:
        return _replanned(state, planning, given, reflected.strategy)
    draft = draft_of(given.get("steps"))
    empty = changed(planning, steps={}, order=(), ready=(), dependents={}, places={})
    steps = tuple(one.step for one in draft if one.step is not None)
    faults = draft_faults(empty, draft, state.tools)
    if len(draft) <= planning.config.max_steps:
        faults += _open_faults(state, empty, draft, (), steps)
    if faults:
        return _refused(faults)
    steps = tuple(step if by == "developer" else marked(state, planning, step) for step in steps)
    return PlanMade(
        Plan(
            steps,
            description=text_of(given.get("description")),
            version=1 + len(planning.noted),
            task_type=text_of(given.get("task_type")) or "general",
            context_understanding=text_of(given.get("context_understanding")),
            trust="untrusted" if planning.has_read and by != "developer" else "trusted",
        )
    )


def _replanned(
    state: State, planning: Planning, given: Object, strategy: ReplanningStrategy
) -> PlanEdited | ProposalRefused:
    draft = draft_of(given.get("steps"))
    steps = tuple(one.step for one in draft if one.step is not None)
    structured: list[RemediationStep] = []
    if isinstance(strategy, AddRemediationSteps):
        structured = [one for one in strategy.suggestions if isinstance(one, RemediationStep)]
    faults = draft_faults(planning, draft, state.tools)
    if len(structured) + len(draft) > planning.config.max_steps:
        return _refused(["too_many_steps"])
    if isinstance(strategy, AddRemediationSteps):
        drafted = [remediation_of(object_of(one) or {}) for one in list_of(given.get("steps"))]
        edit = remedied(planning, [*structured, *(one for one in drafted if one is not None)])
        faults += [one for one in edit.faults if one not in faults]
        operations = edit.operations
        faults += [one for one in repeated(planning, operations, state.tools) if one not in faults]
    else:
        operations = replanned(planning, strategy, steps)
        faults += dropped(planning, superseded_by(planning, strategy), steps)
    faults += _open_faults(state, planning, draft, operations, ())
    if faults:
        return _refused(faults)
    return edited(state, planning, strategy, operations, description=text_of(given.get("description")))


def edited(
    state: State,
    planning: Planning,
    strategy: ReplanningStrategy,
    operations: Sequence[Operation],
    description: str = "",
) -> PlanEdited:
    """The edit as it is put on record, with what goes beyond the user's words marked."""
    made = tuple(_narrowed(state, planning, operations))
    return PlanEdited(planning.version, planning.version + 1, strategy, made, description=description)


def edit_faults(state: State, planning: Planning, operations: Sequence[Operation]) -> list[str]:
    """What is wrong with the plan that an edit would make."""
    return [*repeated(planning, operations, state.tools), *_open_faults(state, planning, (), operations, ())]


def _open_faults(
    state: State,
    planning: Planning,
    draft: Sequence[DraftStep],
    operations: Sequence[Operation],
    steps: Sequence[PlanStep],
) -> list[str]:
    """The faults of the open steps, tried on a copy: with an edit made, or with the steps of a first plan.

    Of steps that share an id each is tried in its turn, so that none hides what is wrong with another.
    """
    found: list[str] = []
    told = frozenset[str]()
    for some in _each_once(operations, lambda one: one.step.step_id if isinstance(one, Add) else str(id(one))):
        for tried in _each_once(steps, lambda one: one.step_id):
            found += [one for one in _faults_of(state, planning, draft, some, tried) if one not in told]
            told = frozenset(found)
    return found


def _each_once(items: Sequence[T], name: Callable[[T], str]) -> list[list[T]]:
    """The items so that no name comes twice, as often as it takes for each to be among them."""
    same: dict[str, list[T]] = {}
    for one in items:
        same.setdefault(name(one), []).append(one)
    most = max(map(len, same.values()), default=1)
    return [[some[min(at, len(some) - 1)] for some in same.values()] for at in range(most)]


def _faults_of(
    state: State,
    planning: Planning,
    draft: Sequence[DraftStep],
    operations: Sequence[Operation],
    steps: Sequence[PlanStep],
) -> list[str]:
    unreadable = [one.step_id for one in draft if one.step is None and one.step_id not in planning.steps]
    tried = planning
    if operations:
        tried = applied(planning, operations, 1, "")
    if steps or unreadable:
        records = dict(tried.steps)
        order = list(tried.order)
        for name, record in (*((s.step_id, StepRecord(s)) for s in steps), *((n, placeholder(n)) for n in unreadable)):
            if name not in records:
                order.append(name)
            records[name] = record
        if not operations:
            order = list(dict.fromkeys((*tried.order, *(one.step_id for one in draft if one.step_id in records))))
        tried = laid_out(tried, records, order)
    return open_faults(tried, state.tools, forbids(state), frozenset(unreadable))


def _refused(faults: Sequence[str]) -> ProposalRefused:
    return ProposalRefused("decompose", "invalid_plan", listed(faults))


def forbids(state: State) -> Forbids:
    """Whether the user's words forbid a tool whatever it is called with; nobody forbids anything without a gate."""
    gate = state.gate
    if gate is None or gate.known.config.mode != "enforce":
        return lambda _: False
    limits = [one for one in gate.known.words.anchor.constraints.constraints if one.constraint_type == "forbid"]
    whole = [one.condition for one in limits if not (one.condition.target or one.condition.forbidden_targets)]
    effects = {one.effect for one in whole if one.effect and not one.except_targets and not one.tool_name}
    names = {one.tool_name for one in whole if one.tool_name and not one.except_targets}
    config = gate.known.config
    return lambda spec: spec.name in names or guess(spec, config.guess).effect in effects


def _is_beyond(state: State, planning: Planning, spec: ToolSpec) -> bool:
    """Whether a tool does what the user's words do not ask for, or came in only after untrusted text was read."""
    if spec.effect == "read" and not spec.egress:
        return False
    gate = state.gate
    if gate is not None:
        effect = guess(spec, gate.known.config.guess).effect
        if effect is None or effect not in gate.known.words.anchor.effects_asked:
            return True
    return spec.name in planning.late_tools


def marked(state: State, planning: Planning, step: PlanStep) -> PlanStep:
    """A step as its proposer may have it."""
    if not planning.has_read:
        return step
    specs = [spec for name in (step.tool_id, *step.allowed_tools) if (spec := state.tools.get(name)) is not None]
    if step.kind == "agent" and not step.allowed_tools:
        specs = [spec for name in planning.selected or () if (spec := state.tools.get(name)) is not None]
    return replace(step, unanchored=True) if any(_is_beyond(state, planning, spec) for spec in specs) else step


def _narrowed(state: State, planning: Planning, operations: Sequence[Operation]) -> list[Operation]:
    made: list[Operation] = []
    for one in operations:
        if isinstance(one, Add):
            made.append(replace(one, step=marked(state, planning, one.step)))
            continue
        made.append(one)
        if isinstance(one, SetParameters):
            record = planning.steps.get(one.step_id)
            if record is not None and marked(state, planning, record.step).unanchored and not record.step.unanchored:
                made.append(Mark(one.step_id))
    return made
