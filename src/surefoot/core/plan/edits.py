"""The five strategies as edits of a plan: what each one does, worked out on a copy and applied in one piece.

An edit is a list of operations; `applied` makes the next version of the plan out of them, in the fold and wherever an
edit is tried. A step that has succeeded is never changed, and an id is never used again.
Source: spec/planning.md, section 7, R9 to R14.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from surefoot.core.plan.dag import Planning, StepRecord, laid_out
from surefoot.core.plan.references import references_in
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.plan import PlanStep
from surefoot.types.planning import (
    Add,
    Mark,
    Operation,
    Plan,
    Reopen,
    SetDependencies,
    SetParameters,
    Skip,
    Supersede,
)
from surefoot.types.reflection import (
    AddRemediationSteps,
    AdjustDependencies,
    Adjustment,
    FullReplan,
    RemediationStep,
    ReplanFromStep,
    ReplanningStrategy,
    SkipSteps,
)


@dataclass(frozen=True, slots=True)
class Edit:
    """What a strategy comes to: operations, or the faults for which it is refused."""

    operations: tuple[Operation, ...] = ()
    faults: tuple[str, ...] = ()


def needs_planning(strategy: ReplanningStrategy) -> bool:
    """Whether a strategy takes a corrective selection and a decomposition before it can be applied."""
    match strategy:
        case FullReplan() | ReplanFromStep():
            return True
        case AddRemediationSteps(suggestions):
            return any(isinstance(one, str) for one in suggestions)
        case SkipSteps() | AdjustDependencies():
            return False
        case _:
            assert_never(strategy)


def edit_of(planning: Planning, strategy: ReplanningStrategy) -> Edit:
    """The edit of a strategy; of one that needs planning first, only what is wrong with it already."""
    match strategy:
        case FullReplan():
            return Edit()
        case ReplanFromStep(step_id):
            return Edit() if step_id in planning.live else Edit(faults=(f"unknown_step:{step_id}",))
        case SkipSteps(step_ids):
            return _skipping(planning, step_ids)
        case AdjustDependencies():
            return _adjusting(planning, strategy)
        case AddRemediationSteps(suggestions):
            if not suggestions:
                return Edit(faults=("no_steps",))
            steps = [one for one in suggestions if isinstance(one, RemediationStep)]
            if needs_planning(strategy):
                return Edit(faults=remedied(planning, steps).faults) if steps else Edit()
            return remedied(planning, steps)
        case _:
            assert_never(strategy)


def superseded_by(planning: Planning, strategy: ReplanningStrategy) -> tuple[str, ...]:
    """The steps that a strategy takes out of the plan, in plan order."""
    match strategy:
        case FullReplan():
            return tuple(name for name in planning.live if not planning.steps[name].is_done)
        case ReplanFromStep(step_id):
            out = {step_id}
            left = [step_id]
            while left:
                for name in planning.dependents.get(left.pop(), ()):
                    if name not in out:
                        out.add(name)
                        left.append(name)
            return tuple(name for name in planning.live if name in out)
        case SkipSteps() | AdjustDependencies() | AddRemediationSteps():
            return ()
        case _:
            assert_never(strategy)


def replanned(planning: Planning, strategy: ReplanningStrategy, steps: Iterable[PlanStep]) -> tuple[Operation, ...]:
    """The operations that put new steps in place of those that a strategy takes out."""
    return (*(Supersede(name) for name in superseded_by(planning, strategy)), *(Add(step) for step in steps))


def _reopened(planning: Planning, but: frozenset[str] = frozenset()) -> tuple[Reopen, ...]:
    return tuple(Reopen(n) for n in planning.order if planning.steps[n].status == "failed" and n not in but)


# ------------------------------------------------------------------ skip_steps


def _skipping(planning: Planning, named: Sequence[str]) -> Edit:
    """R11: the named steps are left out, and those whose parameters use their results."""
    records = planning.steps
    if not named:
        return Edit(faults=("no_steps",))
    live = set(planning.live)
    out = [name for name in named if name in live and not records[name].is_done]
    skipped = set(out)
    for name in planning.order:  # a step stands anywhere in the order, so this is done until nothing more is found
        _spread(planning, skipped, name)
    while _spread_all(planning, skipped):
        pass
    cascade = [name for name in planning.order if name in skipped]
    kept = [n for n in cascade if records[n].step.must_succeed or records[n].step.kind == "response"]
    if set(named) <= live and all(records[name].status == "skipped" for name in named):
        return Edit(faults=tuple(f"already_skipped:{name}" for name in named))  # it would change nothing
    faults = (
        *(f"unknown_step:{name}" for name in named if name not in live),
        *(f"already_succeeded:{name}" for name in named if name in live and records[name].status == "succeeded"),
        *(f"must_succeed:{name}" for name in kept),
    )
    if faults:
        return Edit(faults=faults)
    return Edit((*(Skip(name) for name in cascade), *_reopened(planning, frozenset(skipped))))


def _spread_all(planning: Planning, skipped: set[str]) -> bool:
    before = len(skipped)
    for name in planning.order:
        _spread(planning, skipped, name)
    return len(skipped) > before


def _spread(planning: Planning, skipped: set[str], name: str) -> None:
    record = planning.steps[name]
    if name in skipped or record.is_done or record.status == "superseded":
        return
    if any(one.step_id in skipped and not one.is_optional for one in references_in(record.step.parameters)):
        skipped.add(name)


# ------------------------------------------------------------------ adjust_dependencies


def _adjusting(planning: Planning, strategy: AdjustDependencies) -> Edit:
    """R13: other dependencies and parameters of open steps, all at once."""
    if not strategy.adjustments:
        return Edit(faults=("no_adjustments",))
    faults: list[str] = []
    made: list[Operation] = []
    for one in strategy.adjustments:
        record = planning.steps.get(one.step_id)
        if record is not None and record.status == "succeeded":
            faults.append(f"already_succeeded:{one.step_id}")
        elif record is None or not _fits(record, one):
            faults.append(f"bad_adjustment:{one.step_id}")
        else:
            if one.depends_on is not None:
                made.append(SetDependencies(one.step_id, tuple(sorted(one.depends_on))))
            if one.parameters is not None:
                made.append(SetParameters(one.step_id, one.parameters))
    if faults:
        return Edit(faults=tuple(faults))
    return Edit((*made, *_reopened(planning)))


def _fits(record: StepRecord, one: Adjustment) -> bool:
    """Whether a step can be adjusted so: it is still to be done, something is said of it, and it has parameters."""
    if not record.is_open or (one.depends_on is None and one.parameters is None):
        return False
    return one.parameters is None or record.step.kind == "tool"


# ------------------------------------------------------------------ add_remediation_steps


def remedied(planning: Planning, suggestions: Sequence[RemediationStep]) -> Edit:
    """R12: steps spliced in before or after others."""
    if not suggestions:
        return Edit(faults=("no_steps",))
    needs = {name: planning.steps[name].step.dependencies for name in planning.live}
    faults: list[str] = []
    made: list[Operation] = []
    edited: dict[str, tuple[str, ...]] = {}
    used = set(planning.order)
    calling = {name for name in planning.live if planning.steps[name].step.kind == "tool"}
    for one in suggestions:
        target, name = one.insert_before or one.insert_after, one.step.step_id
        record = planning.steps.get(target)
        if target and target not in needs:
            faults.append(f"unknown_step:{target}")
            continue
        if one.insert_before and record is not None and record.is_done:
            faults.append(f"already_succeeded:{target}")
            continue
        if (
            one.insert_before and record is not None and not record.is_open
        ):  # its call stands, and may wait for a person
            faults.append(f"bad_adjustment:{target}")
            continue
        if name in used:
            faults.append(f"duplicate_step_id:{name}")
            continue
        used.add(name)
        own = one.step.dependencies or (needs[target] if one.insert_before else (target,) if target else ())
        made.append(Add(replace(one.step, dependencies=own), one.insert_before, "" if one.insert_before else target))
        if one.insert_before:
            needs[target] = edited[target] = tuple(sorted({*needs[target], name}))
            if one.target_parameters is not None and target in calling:  # beside another kind they say nothing
                made.append(SetParameters(target, one.target_parameters))
        elif target:
            for other in _open_dependents(planning, needs, target):
                needs[other] = edited[other] = tuple(sorted({*needs[other], name}))
        needs[name] = own
        if one.step.kind == "tool":
            calling.add(name)
    if faults:
        return Edit(faults=tuple(faults))
    changes = tuple(SetDependencies(name, some) for name, some in edited.items())
    return Edit((*made, *changes, *_reopened(planning)))


def _open_dependents(planning: Planning, needs: Mapping[str, tuple[str, ...]], target: str) -> tuple[str, ...]:
    """The steps still to be done that depend on a step; those that were just put in are among them."""
    waiting = (name for name, some in needs.items() if target in some)
    return tuple(name for name in waiting if (one := planning.steps.get(name)) is None or one.is_open)


# ------------------------------------------------------------------ applying


def applied(planning: Planning, operations: Iterable[Operation], seen: int, origin: str) -> Planning:
    """The planning with the next version of the plan. What is not named stays as it is, byte for byte."""
    steps: dict[str, StepRecord] = dict(planning.steps)
    order = list(planning.order)
    children = dict(planning.children)
    for operation in operations:
        match operation:
            case Add(step, before, after):
                steps[step.step_id] = StepRecord(step, since=seen)
                at = (
                    order.index(before) if before in order else order.index(after) + 1 if after in order else len(order)
                )
                order.insert(at, step.step_id)
                continue
            case Supersede(name):
                record = replace(steps[name], status="superseded")
                children.pop(name, None)
            case Skip(name):
                record = replace(steps[name], status="skipped", due="")
                children.pop(name, None)
            case SetDependencies(name, needs):
                record = _with_step(steps[name], dependencies=needs)
            case SetParameters(name, parameters):
                record = _with_step(steps[name], parameters=parameters)
                if parameters != steps[name].step.parameters:  # a call of this edit, held to all that was done before
                    record = replace(record, since=seen)
            case Mark(name):
                record = _with_step(steps[name], unanchored=True)
            case Reopen(name):
                record = replace(steps[name], status="pending", due="", is_exempt=True, transient=0)
            case _:
                assert_never(operation)
        steps[name] = record
    laid = laid_out(planning, steps, order)
    live = tuple(laid.steps[name].step for name in laid.live)
    plan = replace(laid.plan or Plan(()), steps=live, version=laid.version + 1, origin=origin)
    laid.__dict__.update(plan=plan, children=children)  # it was made just now, and nobody else has it
    return laid


def _with_step(record: StepRecord, **changes: object) -> StepRecord:
    return replace(record, step=replace(record.step, **changes))  # pyright: ignore[reportArgumentType]  # fields of a step
