"""How often a whole step of a plan may be tried where the user has said so, and what follows at that limit.

a failure                → it is counted, unless what lies between has failed
the limit                → it is put on record, with what is to be done
AbortTask, AnswerNow     → the run ends, as does one that goes in circles; AnswerNow has an answer written first
Escalate                 → a person is asked; "go on" begins the step anew, "no" has the run thought about
SkipStep                 → an edit that skips it, where R11 allows one; else the run is thought about
Replan                   → the run is thought about
an edit reopens the step → it begins anew

Source: spec/planning.md, section 8; spec/primitives.md, 2.2 and 2.5.
"""

from __future__ import annotations

from dataclasses import replace

from surefoot.core.plan.dag import Planning, StepRecord, cause_of, changed
from surefoot.core.plan.edits import edit_of
from surefoot.core.plan.planned import edit_faults, edited
from surefoot.core.state import DueLimit, State
from surefoot.core.state import changed as changed_state
from surefoot.core.stuck import count, record_and_check, reset
from surefoot.core.tracked import limited, reached
from surefoot.types.events import Event, InStep, StepLimitReached
from surefoot.types.plan import StepErrorClass
from surefoot.types.plan_events import Escalated, PlanEdited, ProposalRefused
from surefoot.types.planning import Reopen
from surefoot.types.progress import LimitAction, StepIterationConfig
from surefoot.types.reflection import SkipSteps
from surefoot.types.step_events import StepEnded

ENGINE = "engine"
"""Who edits the plan where a limit has it done; such an edit is no replan, so no limit of replans counts it."""

_BETWEEN: frozenset[StepErrorClass] = frozenset({"transient", "timeout", "server"})
"""Errors of what lies between a tool and what it reaches: they say nothing about the step."""


def set_limits(state: State) -> StepIterationConfig | None:
    """The limits of whole steps; None where the user has set none, since R5 stands in for their defaults."""
    config = state.config.step_iteration
    return config if config is not None and config.enabled else None


# ------------------------------------------------------------------ the fold


def with_tries(before: State, after: State, event: Event) -> State:
    """The state in which a failure is counted that an event has brought, or steps begin anew that an edit reopens."""
    if after.planning is None or (config := set_limits(after)) is None:
        return after
    match event:
        case PlanEdited(operations=operations):
            return _begun_anew(after, after.planning, [one.step_id for one in operations if isinstance(one, Reopen)])
        case InStep(step_id) | StepEnded(step_id):
            old = before.planning.steps.get(step_id) if before.planning is not None else None
            new = after.planning.steps.get(step_id)
            has_failed = old is not None and new is not None and len(new.failures) > len(old.failures)
            return _failed(after, config, new) if has_failed and new is not None else after
        case _:
            return after


def _failed(state: State, config: StepIterationConfig, record: StepRecord) -> State:
    result, step_id = record.failures[-1], record.step.step_id
    error = result.error
    if error is None:
        return state
    tried, decision = record_and_check(
        state.tried,
        config,
        step_id,
        error.message or error.code,
        call=(result.fingerprint or "").encode(),
        infrastructure=error.cls in _BETWEEN,
        number=state.seen - 1,
    )
    due = state.limit_due
    if decision.decision == "stop" and decision.first:
        due = (*due, DueLimit(step_id, count(tried, step_id), decision))
    return changed_state(state, tried=tried, limit_due=due)


def _begun_anew(state: State, planning: Planning, reopened: list[str]) -> State:
    tried = state.tried
    for step_id in reopened:
        tried = reset(tried, step_id)
    failed = {name for name, one in planning.steps.items() if one.status == "failed"}
    asked = tuple(one for one in state.asked if one.step_id in failed)
    due = tuple(one for one in state.limit_due if one.step_id in failed)
    return changed_state(state, tried=tried, asked=asked, limit_due=due)


def with_limit(state: State, event: StepLimitReached) -> State:
    """The state once a limit is on record: R5's own and `Replan` end nothing by themselves."""
    if event.action == LimitAction.Replan:
        due = tuple(one for one in state.limit_due if one.step_id != event.step_id)
        return changed_state(state, seen=state.seen + 1, limit_due=due)
    told = limited(state, event)
    if event.action != LimitAction.SkipStep or told.planning is None:
        return told
    return changed_state(told, planning=changed(told.planning, is_limited=True))


# ------------------------------------------------------------------ the moves


def asked_about(state: State) -> frozenset[str]:
    """The steps about which a person is asked whether they go on."""
    return frozenset(one.step_id for one in state.asked)


def limit_to_tell(state: State) -> StepLimitReached | None:
    """The limit of a step that is to be put on record."""
    config = set_limits(state)
    if config is None or not state.limit_due:
        return None
    return reached(state.limit_due[0], config.on_limit_reached)


def after_limit(state: State, planning: Planning) -> PlanEdited | Escalated | None:
    """What is done about the first failed step that has come to its limit, once that is on record; None for no such."""
    config = set_limits(state)
    if config is None:
        return None
    asked = asked_about(state)
    for name in planning.queue:
        tried = state.tried.by_id.get(name)
        if tried is None or tried.stop is None or name in asked:
            continue
        if config.on_limit_reached == LimitAction.SkipStep:
            strategy = SkipSteps((name,), tried.stop.reason)
            edit = edit_of(planning, strategy)
            if not (edit.faults or edit_faults(state, planning, edit.operations)):
                return replace(edited(state, planning, strategy, edit.operations), by=ENGINE)
        return Escalated(name, cause_of(planning.steps[name]))
    return None


def same_error(record: StepRecord) -> tuple[ProposalRefused, StepLimitReached, Escalated]:
    """R5: a step that has failed so often in one way is not thought about by itself any more."""
    name = record.step.step_id
    actor, cls, _ = record.signature
    code = record.result.error.code if record.result is not None and record.result.error is not None else ""
    told = f"{actor} has failed {record.times_failed_so} times with {cls} {code}".rstrip()
    return (
        ProposalRefused("step_reflection", "step_retry_limit", f"{name}:{cls}", name),
        StepLimitReached(name, record.attempt, told, "max", action=LimitAction.Replan),
        Escalated(name, cause_of(record)),
    )
