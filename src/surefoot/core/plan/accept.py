"""R1: a plan, or a repair of one, is accepted whole or refused whole, and all that is wrong with it is said at once.

What somebody proposes who has read untrusted text may narrow the plan and not widen it: a step that goes beyond the
user's words is marked, and a person is asked about each of its calls. Where a person signs plans, that is asked here
too. Source: spec/planning.md, sections 4, 7, 12 and 13.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, product
from typing import Literal, TypeVar

from surefoot.core.gate.effects import guess
from surefoot.core.plan.child import UnresolvedError, arguments_of, checked, open_calls, owners, references_in
from surefoot.core.plan.edits import applied, laid_out, remedied, superseded_by
from surefoot.core.plan.forms import PLAN as PLAN_FORM
from surefoot.core.plan.forms import DraftStep, Object, draft_of, list_of, read_form, remediation_of, text_of
from surefoot.core.state.plans import StepRecord
from surefoot.core.state.repeats import call_fingerprint, questions
from surefoot.core.state.state import Call, Planning, State
from surefoot.core.state.turn import changed
from surefoot.core.text.json import as_object
from surefoot.types.outcomes import Ask
from surefoot.types.plan import RESERVED_IDS, Add, Mark, Operation, Plan, PlanStep, SetParameters, Supersede
from surefoot.types.plan_events import PlanEdited, PlanMade, ProposalRefused
from surefoot.types.reflection import AddRemediationSteps, RemediationStep, ReplanningStrategy
from surefoot.types.tools import Catalogue

MOST_FAULTS = 20  # faults that a refusal lists; of further ones it tells the number
LONGEST_FAULT = 200  # characters of one fault that a refusal keeps
PLAN = "plan"  # what the question about a plan is called, where those about calls have the id of the call
T = TypeVar("T")


def faults_text(faults: Sequence[str]) -> str:
    """Faults as the detail of a refusal."""
    shown = [one[:LONGEST_FAULT] for one in faults[:MOST_FAULTS]]
    if len(faults) > MOST_FAULTS:
        shown.append(f"more_faults:{len(faults) - MOST_FAULTS}")
    return ";".join(shown)


def plan_given(state: State, planning: Planning, given: Object, *, by: str) -> PlanMade | PlanEdited | ProposalRefused:
    """What follows from a proposed plan. `by` is who proposes it: a developer's plan is not held to what was read."""
    strategy = planning.strategy.strategy if planning.strategy is not None else None
    before = planning if strategy else changed(planning, steps={}, order=(), ready=(), dependents={}, places={})
    draft = draft_of(given.get("steps"))
    steps = tuple(one.step for one in draft if one.step is not None)
    suggested = strategy.suggestions if isinstance(strategy, AddRemediationSteps) else ()
    put_in = [one for one in suggested if isinstance(one, RemediationStep)]
    if len(put_in) + len(draft) > planning.config.max_steps:
        return ProposalRefused("decompose", "invalid_plan", "too_many_steps")
    faults = draft_faults(before, draft, state.tools)
    operations: tuple[Operation, ...] = ()
    if isinstance(strategy, AddRemediationSteps):
        drafted = [remediation_of(as_object(one)) for one in list_of(given.get("steps"))]
        edit = remedied(planning, [*put_in, *(one for one in drafted if isinstance(one, RemediationStep))])
        operations = edit.operations
        faults += [one for one in edit.faults if one not in faults]
        faults += [one for one in repeated(planning, operations, state.tools) if one not in faults]
    elif strategy is not None:
        out = superseded_by(planning, strategy)
        operations = (*(Supersede(name) for name in out), *(Add(step) for step in steps))
        if not any(step.must_succeed for step in steps):
            lost = [n for n in out if planning.steps[n].step.must_succeed and planning.steps[n].is_open]
            faults += [f"must_succeed_dropped:{name}" for name in lost]
    faults += _open_faults(state, before, draft, operations, () if strategy else steps)
    if faults:
        return ProposalRefused("decompose", "invalid_plan", faults_text(faults))
    if strategy is not None:
        return edited(state, planning, strategy, operations, description=text_of(given.get("description")))
    is_developers = by == "developer"
    return PlanMade(
        read_form(
            Plan,
            PLAN_FORM,
            given,
            steps=steps if is_developers else tuple(marked(state, planning, step) for step in steps),
            version=1 + len(planning.noted),
            trust="trusted" if is_developers else planning.words_trust,
        )
    )


def edited(
    state: State,
    planning: Planning,
    strategy: ReplanningStrategy,
    operations: Sequence[Operation],
    description: str = "",
) -> PlanEdited:
    """The edit as it is put on record, with what goes beyond the user's words marked."""
    made: list[Operation] = []
    for one in operations:
        made.append(replace(one, step=marked(state, planning, one.step)) if isinstance(one, Add) else one)
        record = planning.steps.get(one.step_id) if isinstance(one, SetParameters) else None
        if record is not None and not record.step.unanchored and marked(state, planning, record.step).unanchored:
            made.append(Mark(record.step.step_id))
    return PlanEdited(planning.version, planning.version + 1, strategy, tuple(made), description=description)


def edit_faults(state: State, planning: Planning, operations: Sequence[Operation]) -> list[str]:
    """What is wrong with the plan that an edit would make."""
    return [*repeated(planning, operations, state.tools), *_open_faults(state, planning, (), operations, ())]


def marked(state: State, planning: Planning, step: PlanStep) -> PlanStep:
    """A step as its proposer may have it: once untrusted text was read, what goes beyond the user's words is marked.

    That is an effect that they do not ask for, or a tool that was selected only after that text was read.
    """
    if not planning.has_read:
        return step
    names = (step.tool_id, *step.allowed_tools)
    if step.kind == "agent" and not step.allowed_tools:
        names = planning.selected or ()
    known = state.gate.known if state.gate is not None else None
    for spec in filter(None, map(state.tools.get, names)):
        if spec.effect == "read" and not spec.egress:
            continue
        effect = guess(spec, known.config.guess).effect if known is not None else None
        is_unasked = known is not None and (effect is None or effect not in known.words.anchor.effects_asked)
        if is_unasked or spec.name in planning.late_tools:
            return replace(step, unanchored=True)
    return step


def draft_faults(planning: Planning, draft: Sequence[DraftStep], tools: Catalogue) -> list[str]:
    """What is wrong with a draft by itself, and against what was done before; of one too large no more than that."""
    if len(draft) > planning.config.max_steps:
        return ["too_many_steps"]
    counts = Counter(one.step_id for one in draft)
    found = [f"duplicate_step_id:{name}" for name, times in counts.items() if times > 1]
    for one in draft:
        if one.step_id in planning.steps:
            found.append(f"duplicate_step_id:{one.step_id}")
        if one.step_id in RESERVED_IDS:
            found.append(f"reserved_step_id:{one.step_id}")
        if one.step is not None:
            found += _repeats(planning, one.step, tools)
    return found if draft else ["empty_plan"]


def _repeats(planning: Planning, step: PlanStep, tools: Catalogue) -> list[str]:
    """Whether a call whose parameters are all given was made before: with an effect, or without success."""
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
        if isinstance(one, Add):
            given[one.step.step_id] = one.step
        elif isinstance(one, SetParameters):
            step = given.get(one.step_id) or planning.steps[one.step_id].step
            if one.step_id in given or one.parameters != step.parameters:
                given[one.step_id] = replace(step, parameters=one.parameters)
    return [fault for step in given.values() for fault in _repeats(planning, step, tools)]


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
    calls = (call for child in planning.children.values() for call in child.calls)
    begun = (one for one in calls if one.is_open and not one.is_waiting and one.spec and not one.spec.may_repeat)
    found: set[Literal["failed", "completed"]] = set()
    if mark in planning.completed_effects or any(
        mark == call_fingerprint(one.name, one.arguments, one.spec) for one in begun
    ):
        found.add("completed")
    if mark in planning.failed_calls:
        found.add("failed")
    return frozenset(found)


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
    unreadable = [one.step_id for one in draft if one.step is None and one.step_id not in planning.steps]
    stand_in = {name: StepRecord(PlanStep("unreadable", kind="reasoning", instruction=name)) for name in unreadable}
    edits = _each_once(operations, lambda one: one.step.step_id if isinstance(one, Add) else str(id(one)))
    found: list[str] = []
    for edit, first in product(edits, _each_once(steps, lambda one: one.step_id)):
        tried = applied(planning, edit, 1, "") if edit else planning
        if first or unreadable:
            new = {step.step_id: StepRecord(step) for step in first} | stand_in
            records = {**tried.steps, **new}
            drafted = [] if edit else [one.step_id for one in draft if one.step_id in records]
            tried = laid_out(tried, records, dict.fromkeys((*tried.order, *drafted, *new)))
        before = frozenset(found)
        found += [one for one in _faults_of(tried, state, frozenset(unreadable)) if one not in before]
    return found


def _each_once(items: Sequence[T], name: Callable[[T], str]) -> list[list[T]]:
    """The items so that no name comes twice, as often as it takes for each to be among them."""
    same: dict[str, list[T]] = {}
    for one in items:
        same.setdefault(name(one), []).append(one)
    most = max(map(len, same.values()), default=1)
    return [[some[min(at, len(some) - 1)] for some in same.values()] for at in range(most)]


def _faults_of(planning: Planning, state: State, unreadable: frozenset[str]) -> list[str]:
    """What is wrong with the steps that are still to be done, in plan order. `planning` is the copy that is tried.

    `unreadable` are the steps whose fields do not fit their kind; what stands for them has no more than their id.
    """
    tools, gate = state.tools, state.gate
    effects: set[str] = set()
    forbidden: set[str] = set()  # tools that the user's words forbid, whatever they are called with
    if gate is not None and gate.known.config.mode == "enforce":
        told = gate.known.words.anchor.constraints.constraints
        limits = [one for one in told if one.constraint_type == "forbid" and one.condition.max_amount is None]
        whole = [one.condition for one in limits if not (one.condition.target or one.condition.forbidden_targets)]
        effects = {one.effect for one in whole if one.effect and not one.except_targets and not one.tool_name}
        forbidden = {one.tool_name for one in whole if one.tool_name and not one.except_targets}
    live = {name: planning.steps[name].step for name in planning.live}
    bit = {name: 1 << at for at, name in enumerate(live)}
    above = dict.fromkeys(live, 0)  # the bits of all that a step depends on, directly or not; its own in a circle
    for names in cycle((tuple(live), tuple(live)[::-1])):  # in plan order one pass nearly always does
        before = dict(above)
        for name in names:
            for needed in filter(bit.__contains__, live[name].dependencies):
                above[name] |= bit[needed] | above[needed]
        if above == before:
            break
    selected = frozenset(planning.selected) if planning.selected is not None else frozenset(tools.names)
    found: list[str] = []
    for name, step in live.items():
        if not planning.steps[name].is_open:
            continue
        for tool_id in () if name in unreadable else (step.tool_id,) if step.kind == "tool" else step.allowed_tools:
            spec = tools.get(tool_id)
            if spec is None:
                found.append(f"unknown_tool:{name}:{tool_id}")
            elif tool_id not in selected:
                found.append(f"tool_not_selected:{name}:{tool_id}")
            elif spec.name in forbidden or (
                effects and gate and guess(spec, gate.known.config.guess).effect in effects
            ):
                found.append(f"outside_intent:{name}:{tool_id}")
        found += [f"unknown_dependency:{name}:{needed}" for needed in step.dependencies if needed not in live]
        if above[name] & bit[name]:
            found.append(f"cycle:{name}")
        used = [one.step_id for one in references_in(step.parameters) if one.step_id not in step.dependencies]
        found += [f"reference_not_a_dependency:{name}:{one}" for one in used if not above[name] & bit.get(one, 0)]
        if name in unreadable:
            found.append(f"bad_kind:{name}")
        elif step.kind == "tool":  # what of the parameters does not fit, as far as that is known without values
            errors = checked(tools, step.tool_id, step.parameters).errors
            later = tuple(key for key, value in step.parameters.items() if references_in(value)) if errors else ()
            known = [one.path for one in errors if not later or (one.path and one.path not in later)]
            below = tuple(f"{key}{sign}" for key in later for sign in ".[")
            found += [f"bad_parameters:{name}:{path or '/'}" for path in known if not path.startswith(below)]
    return found


def signature(state: State) -> tuple[Call, ...]:
    """The question about the plan, in the form of a call: each step in one line."""
    planning = state.planning
    if planning is None or not planning.is_unsigned:
        return ()
    lines: dict[str, str] = {}
    for name in planning.live:
        step = planning.steps[name].step
        what = f"{step.tool_id} {dict(step.parameters)}" if step.kind == "tool" else f"{step.kind}: {step.instruction}"
        lines[step.step_id] = what + (f" after {', '.join(step.dependencies)}" if step.dependencies else "")
    asked = Ask(f"version {planning.version} of the plan is to be signed before it runs")
    return (Call(PLAN, PLAN, PLAN, lines, decision=asked),)


def waiting(state: State) -> tuple[Call, ...]:
    """What only a person can answer, in the form of calls, also where the run could go on with something else.

    Calls, those of agents that were asked, limits of progress, and a plan that is to be signed; none of an ended run.
    """
    if state.ending is not None:
        return ()
    calls = (call for _, call in open_calls(state) if isinstance(call.decision, Ask) or call.is_in_doubt)
    limits = (one for owner in owners(state) for one in questions(owner.state))
    inner = (asked for _, call in open_calls(state) for asked in call.asks)
    return (*calls, *inner, *limits, *signature(state))
