"""How a step begins, or fails before it does; how long it waits for another try. Source: spec/planning.md, 5 and 8."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.core.plan.arguments import arguments_of
from surefoot.core.plan.dag import Planning, StepRecord, done_before, fingerprint_of
from surefoot.core.plan.iterating import set_limits
from surefoot.core.plan.references import UnresolvedError
from surefoot.core.state import State
from surefoot.types.plan import StepError
from surefoot.types.step_events import StepEnded, StepStarted

FIRST_WAIT_S = 0.5
"""Seconds before the first retry by the engine; each further one waits twice as long."""


def start_of(state: State, planning: Planning, record: StepRecord) -> StepStarted | StepEnded:
    """A step begins, or fails before it does: no try is left it, its parameters cannot be had, or it repeats (R8 c)."""
    step, attempt = record.step, record.attempt + 1
    arguments: Mapping[str, object] = {}
    limits = set_limits(state)
    if limits is not None and not limits.max_reattempts_per_step:
        error = StepError("limit", "step_limit", "the limit of tries is 0, so no step is begun")
        return StepEnded(step.step_id, error=error, attempt=attempt)
    if step.kind == "tool":
        try:
            called = arguments_of(state.tools, planning, step.tool_id, step.parameters)
        except UnresolvedError as missing:
            error = StepError("parameter", "unresolved_reference", str(missing))
            return StepEnded(step.step_id, error=error, attempt=attempt)
        arguments = called.value
        if called.errors:
            told = "; ".join(str(error) for error in called.errors)
            return StepEnded(step.step_id, error=StepError("parameter", "bad_parameters", told), attempt=attempt)
    if code := _made_before(state, planning, record, arguments):
        told = "this very call was made before in this run"
        return StepEnded(step.step_id, error=StepError("parameter", code, told), attempt=attempt)
    return StepStarted(step.step_id, attempt, state.elapsed_s)


def _made_before(state: State, planning: Planning, record: StepRecord, arguments: Mapping[str, object]) -> str:
    mark = fingerprint_of(record.step, arguments, state.tools.get(record.step.tool_id))
    if mark in planning.failed_calls and not record.is_exempt:
        return "repeat_failure"
    return "repeats_completed_call" if mark in done_before(planning, record) else ""


def wait_of(record: StepRecord) -> float:
    """Seconds before the engine tries a step again: what the server asks, or more each time."""
    error = record.result.error if record.result is not None else None
    asked = error.retry_after_s if error is not None else None
    return asked if asked is not None else FIRST_WAIT_S * 2**record.transient
