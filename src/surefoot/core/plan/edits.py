"""The five strategies as edits of a plan: what each one does, worked out on a copy and applied in one piece.

An edit is a list of operations; `applied` makes the next version of the plan out of them, in the fold and wherever an
edit is tried. A step that has succeeded is never changed, and an id is never used again.
Source: spec/planning.md, section 7, R9 to R14.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from surefoot.core.plan.child import references_in
from surefoot.core.state.plans import StepRecord
from surefoot.core.state.state import Planning
from surefoot.core.state.turn import changed
from surefoot.types import reflection
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.plan import Add, Mark, Operation, Plan, Reopen, SetDependencies, SetParameters, Skip, Supersede


@dataclass(frozen=True, slots=True)
class Edit:
    """What a strategy comes to: operations, or the faults for which it is refused."""

    operations: tuple[Operation, ...] = ()
    faults: tuple[str, ...] = ()


def needs_planning(strategy: reflection.ReplanningStrategy) -> bool:
    """Whether a strategy takes a corrective selection and a decomposition before it can be applied."""
    if isinstance(strategy, reflection.AddRemediationSteps):
        return any(isinstance(one, str) for one in strategy.suggestions)
    return isinstance(strategy, reflection.FullReplan | reflection.ReplanFromStep)


def edit_of(planning: Planning, strategy: reflection.ReplanningStrategy) -> Edit:
    """The edit of a strategy; of one that needs planning first, as far as it is known."""
    match strategy:
        case reflection.FullReplan():
            return Edit()
        case reflection.ReplanFromStep(step_id):
            return Edit() if step_id in planning.live else Edit(faults=(f"unknown_step:{step_id}",))
        case reflection.SkipSteps(step_ids):
            return _skipping(planning, step_ids)
        case reflection.AdjustDependencies():
            return _adjusting(planning, strategy)
        case reflection.AddRemediationSteps(suggestions):
            steps = [one for one in suggestions if isinstance(one, reflection.RemediationStep)]
            return remedied(planning, steps) if steps or not needs_planning(strategy) else Edit()
        case _:
            assert_never(strategy)


def superseded_by(planning: Planning, strategy: reflection.ReplanningStrategy) -> tuple[str, ...]:
    """The steps that a strategy takes out of the plan, in plan order."""
    if isinstance(strategy, reflection.FullReplan):
        return tuple(name for name in planning.live if not planning.steps[name].is_done)
    if not isinstance(strategy, reflection.ReplanFromStep):
        return ()
    out = {strategy.step_id}
    left = [strategy.step_id]
    while left:
        found = [name for name in planning.dependents.get(left.pop(), ()) if name not in out]
        out.update(found)
        left += found
    return tuple(name for name in planning.live if name in out)


def _reopened(planning: Planning, but: Iterable[str] = ()) -> tuple[Reopen, ...]:
    return tuple(Reopen(n) for n in planning.order if planning.steps[n].status == "failed" and n not in but)


def _skipping(planning: Planning, named: Sequence[str]) -> Edit:
    """R11: the named steps are left out, and those whose parameters use their results."""
    records = planning.steps
    if not named:
        return Edit(faults=("no_steps",))
    live = set(planning.live)
    if set(named) <= live and all(records[name].status == "skipped" for name in named):
        return Edit(faults=tuple(f"already_skipped:{name}" for name in named))  # it would change nothing
    uses = {
        name: {one.step_id for one in references_in(records[name].step.parameters) if not one.is_optional}
        for name in planning.live
        if not records[name].is_done
    }
    skipped = {name for name in named if name in uses}
    found = skipped
    while found:  # a step stands anywhere in the order, so this is done until nothing more is found
        found = {name for name, used in uses.items() if name not in skipped and used & skipped}
        skipped |= found
    cascade = [name for name in planning.order if name in skipped]
    kept = [n for n in cascade if records[n].step.must_succeed or records[n].step.kind == "response"]
    faults = (
        *(f"unknown_step:{name}" for name in named if name not in live),
        *(f"already_succeeded:{name}" for name in named if name in live and records[name].status == "succeeded"),
        *(f"must_succeed:{name}" for name in kept),
    )
    return Edit(faults=faults) if faults else Edit((*(Skip(name) for name in cascade), *_reopened(planning, skipped)))


def _adjusting(planning: Planning, strategy: reflection.AdjustDependencies) -> Edit:
    """R13: other dependencies and parameters of open steps, all at once."""
    if not strategy.adjustments:
        return Edit(faults=("no_adjustments",))
    faults: list[str] = []
    made: list[Operation] = []
    for one in strategy.adjustments:
        record, has_parameters = planning.steps.get(one.step_id), one.parameters is not None
        if record is not None and record.status == "succeeded":
            faults.append(f"already_succeeded:{one.step_id}")
            continue
        fits = record is not None and record.is_open and (record.step.kind == "tool" or not has_parameters)
        if not fits or (one.depends_on is None and not has_parameters):
            faults.append(f"bad_adjustment:{one.step_id}")
            continue
        if one.depends_on is not None:
            made.append(SetDependencies(one.step_id, tuple(sorted(one.depends_on))))
        if one.parameters is not None:
            made.append(SetParameters(one.step_id, one.parameters))
    return Edit(faults=tuple(faults)) if faults else Edit((*made, *_reopened(planning)))


def remedied(planning: Planning, suggestions: Sequence[reflection.RemediationStep]) -> Edit:
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
        before, target, name = one.insert_before, one.insert_before or one.insert_after, one.step.step_id
        record = planning.steps.get(target)
        if target and target not in needs:
            faults.append(f"unknown_step:{target}")
            continue
        if before and record is not None and (record.is_done or not record.is_open):
            # where it is not done, its call stands, and may wait for a person
            faults.append(f"{'already_succeeded' if record.is_done else 'bad_adjustment'}:{target}")
            continue
        if name in used:
            faults.append(f"duplicate_step_id:{name}")
            continue
        used.add(name)
        own = one.step.dependencies or (needs[target] if before else (target,) if target else ())
        made.append(Add(replace(one.step, dependencies=own), before, "" if before else target))
        waiting = [target] if before else [n for n, some in needs.items() if target in some] if target else []
        for other in waiting:  # of those that come after, the ones still to be done, and those that were just put in
            if before or other not in planning.steps or planning.steps[other].is_open:
                needs[other] = edited[other] = tuple(sorted({*needs[other], name}))
        if before and one.target_parameters is not None and target in calling:  # beside another kind they say nothing
            made.append(SetParameters(target, one.target_parameters))
        needs[name] = own
        if one.step.kind == "tool":
            calling.add(name)
    if faults:
        return Edit(faults=tuple(faults))
    return Edit((*made, *(SetDependencies(name, some) for name, some in edited.items()), *_reopened(planning)))


def applied(planning: Planning, operations: Iterable[Operation], seen: int, origin: str) -> Planning:
    """The planning with the next version of the plan. What is not named stays as it is, byte for byte."""
    steps: dict[str, StepRecord] = dict(planning.steps)
    order = list(planning.order)
    children = dict(planning.children)
    for operation in operations:
        match operation:
            case Add(step, before, after):
                steps[step.step_id] = StepRecord(step, since=seen)
                end = order.index(after) + 1 if after in order else len(order)
                order.insert(order.index(before) if before in order else end, step.step_id)
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
    return changed(laid, plan=plan, children=children)


def _with_step(record: StepRecord, **changes: object) -> StepRecord:
    return replace(record, step=replace(record.step, **changes))  # pyright: ignore[reportArgumentType]  # fields of a step


def laid_out(planning: Planning, steps: Mapping[str, StepRecord], order: Iterable[str]) -> Planning:
    """The planning with these steps in this order: who waits for whom, and who may start, is worked out anew."""
    ids = tuple(order)
    dependents: dict[str, list[str]] = {}
    made: dict[str, StepRecord] = {}
    for name in ids:
        record = steps[name]
        if record.status != "superseded":
            needs = set(record.step.dependencies)
            for needed in needs:
                dependents.setdefault(needed, []).append(name)
            unmet = sum(not ((one := steps.get(needed)) and one.is_done) for needed in needs)
            record = record if unmet == record.unmet else replace(record, unmet=unmet)
        made[name] = record
    pending = (made[name] for name in ids if made[name].status == "pending")
    return changed(
        planning,
        steps=made,
        order=ids,
        places={name: at for at, name in enumerate(ids)},
        dependents={name: tuple(some) for name, some in dependents.items()},
        ready=tuple(one.step.step_id for one in pending if not one.unmet and not one.due),
    )
