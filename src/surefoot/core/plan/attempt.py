"""An attempt at a step: it begins, goes on in a state of its own, and comes to something. Part of the fold.

What happens inside a step is folded into the step's own state; where that has come to something, the step has.
Source: spec/planning.md, sections 5 and 8.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeGuard

from surefoot.core.plan.child import (
    UnresolvedError,
    arguments_of,
    child_of,
    fingerprint_of,
    outcome_of,
    step_value,
    with_whole,
)
from surefoot.core.state.plans import StepRecord
from surefoot.core.state.repeats import NOTHING_KNOWN, call_fingerprint
from surefoot.core.state.roles import goes_on
from surefoot.core.state.state import Call, Planning, State
from surefoot.core.state.turn import changed
from surefoot.core.text import json_text
from surefoot.types import events
from surefoot.types.guard_events import JudgementMade, PerceptionSanitised
from surefoot.types.inner import CallPaused
from surefoot.types.plan import ANSWER, PlanStep, StepError, StepExecutionResult
from surefoot.types.plan_events import StepEnded, StepStarted
from surefoot.types.reflection import PlanStats

Apply = Callable[[State, events.Event], State]

_ANSWERING = PlanStep(ANSWER, "answer", "response", instruction="Answer the task from these results.")
"""The step that writes the answer of a plan without a response step."""

_LONGEST_EFFECT = 200
_RETRIED = frozenset({"transient", "timeout"})


def with_record(planning: Planning, record: StepRecord, **changes: object) -> Planning:
    """The planning with one step's record replaced, and other fields changed."""
    return changed(planning, steps={**planning.steps, record.step.step_id: record}, **changes)


def counted(planning: Planning, **more: int) -> PlanStats:
    """The figures with some of them increased."""
    return replace(planning.stats, **{name: getattr(planning.stats, name) + by for name, by in more.items()})


def without(planning: Planning, step_id: str) -> Planning:
    """The planning in which a step is not about to start."""
    ready = tuple(name for name in planning.ready if name != step_id)
    due = tuple(name for name in planning.due if name != step_id) if planning.due else ()
    return changed(planning, ready=ready, due=due)


def having_done(planning: Planning, record: StepRecord) -> Planning:
    """The planning once a step is done: those that waited for it alone are ready. Costs O(its dependents)."""
    name = record.step.step_id
    steps = {**planning.steps, name: record}
    ready = planning.ready
    for waiting in planning.dependents.get(name, ()):
        one = steps[waiting]
        steps[waiting] = one = replace(one, unmet=one.unmet - 1)
        if not one.unmet and one.status == "pending":
            at = bisect_left(ready, planning.places[waiting], key=planning.places.__getitem__)
            ready = (*ready[:at], waiting, *ready[at:])
    return changed(planning, steps=steps, ready=ready)


def start_of(state: State, planning: Planning, record: StepRecord) -> StepStarted | StepEnded:
    """A step begins, or fails before it does: no try is left it, its parameters cannot be had, or it repeats (R8 c)."""
    step, attempt = record.step, record.attempt + 1
    arguments: Mapping[str, object] = {}
    limits = state.config.step_iteration
    error: StepError | None = None
    if limits is not None and limits.enabled and not limits.max_reattempts_per_step:
        error = StepError("limit", "step_limit", "the limit of tries is 0, so no step is begun")
    elif step.kind == "tool":
        try:
            called = arguments_of(state.tools, planning, step.tool_id, step.parameters)
        except UnresolvedError as missing:
            error = StepError("parameter", "unresolved_reference", str(missing))
        else:
            arguments = called.value
            if called.errors:
                error = StepError("parameter", "bad_parameters", "; ".join(map(str, called.errors)))
    if error is None:
        mark = fingerprint_of(step, arguments, state.tools.get(step.tool_id))
        is_failed = mark in planning.failed_calls and not record.is_exempt
        if is_failed or mark in planning.made_before(record):
            code = "repeat_failure" if is_failed else "repeats_completed_call"
            error = StepError("parameter", code, "this very call was made before in this run")
    if error is not None:
        return StepEnded(step.step_id, error=error, attempt=attempt)
    return StepStarted(step.step_id, attempt, state.elapsed_s)


def started(state: State, planning: Planning, event: StepStarted) -> Planning:
    """The planning once a step begins: it has a state of its own."""
    name, attempt = event.step_id, event.attempt
    if name == ANSWER:
        child = child_of(state, planning, _ANSWERING, attempt, {})
        return changed(planning, children={**planning.children, ANSWER: child})
    record = planning.steps[name]
    step = record.step
    arguments = arguments_of(state.tools, planning, step.tool_id, step.parameters).value  # as it began: all are there
    by_engine = record.due == "wait"
    record = replace(
        record,
        status="running",
        attempt=attempt,
        due="",
        transient=record.transient + by_engine,
        begun_s=event.elapsed_s,
    )
    children = {**planning.children, name: child_of(state, planning, step, attempt, arguments)}
    stats = counted(planning, step_retries=1) if by_engine else planning.stats
    return with_record(without(planning, name), record, children=children, stats=stats)


def failed(state: State, planning: Planning, record: StepRecord, result: StepExecutionResult) -> Planning:
    """The planning with a step that has failed: tried again by the engine (R4), or left to a reflection."""
    error = result.error or StepError("tool", "error")
    name = record.step.step_id
    spec = state.tools.get(record.step.tool_id)
    may_repeat = spec is not None and spec.may_repeat and error.cls in _RETRIED
    if may_repeat and record.transient < planning.config.transient_retries:
        waiting = replace(record, status="pending", result=result, due="wait")
        return with_record(planning, waiting, due=(*planning.due, name))
    failures = (*record.failures, result)
    record = replace(record, status="failed", result=result, failures=failures, due="", is_exempt=False)
    marks = planning.failed_calls | {result.fingerprint} if result.fingerprint else planning.failed_calls
    queue = planning.queue if planning.escalation is not None else (*planning.queue, name)
    return with_record(planning, record, failed_calls=marks, queue=queue)


def inside(state: State, planning: Planning, event: events.InStep, apply: Apply) -> State:
    """Something happened inside a running step."""
    child, inner = planning.children.get(event.step_id), event.event
    if child is None or child.scope != f"{event.step_id}.{event.attempt}":
        return state  # a late word: it is on record, and changes nothing
    before = with_whole(child, state)
    if _is_unknown(inner, before):  # the call stays open, as if the process had died at it; who resumes may repeat it
        known, call_id = NOTHING_KNOWN if _has_acted(before, inner) else before.known, inner.call_id
        after = before.with_calls(
            lambda one: changed(one, doubt="unknown" if _may_repeat(one) else "") if one.id == call_id else one
        )
        elapsed_s = max(before.elapsed_s, inner.elapsed_s)
        after = changed(after, known=known, seen=before.seen + 1, elapsed_s=elapsed_s)
    else:
        after = apply(before, inner)
    if isinstance(inner, events.ModelTraitLearnt):
        state = changed(apply(state, inner), seen=state.seen)
    elif isinstance(inner, events.ModelFailed) and inner.instead is not None:  # steps that begin later ask it at once
        going_on = {**state.speakers, inner.role: goes_on(state.speakers[inner.role], inner.instead)}
        state = changed(state, speakers=going_on)
    planning = _noticed(state, planning, event.step_id, after, inner)
    if _has_acted(after, inner):  # from here on each step knows that alone
        state = changed(state, known=after.known)
        others = {name: changed(one, known=after.known) for name, one in planning.children.items()}
        planning = changed(planning, children=others)
    state = changed(
        state,
        gate=after.gate,
        usage=after.usage,
        requests=state.requests + after.requests - before.requests,
        calls_made=state.calls_made + after.calls_made - before.calls_made,
        elapsed_s=max(state.elapsed_s, after.elapsed_s),
    )
    return changed(state, planning=_settle(state, planning, event, after))


def _has_acted(child: State, inner: events.StepInner) -> bool:
    """Whether a call with an effect has ended just now, with whatever outcome."""
    call = child.call(inner.call_id) if isinstance(inner, events.CallEnded | events.DoubtSettled) else None
    return call is not None and call.has_effect and (isinstance(inner, events.CallEnded) or call.result is not None)


def _is_unknown(inner: events.StepInner, child: State) -> TypeGuard[events.CallEnded]:
    """Whether a call has ended and nobody knows whether it took effect: also where the tool itself ran out of time."""
    if not isinstance(inner, events.CallEnded):
        return False
    is_timeout = inner.result.error.startswith("timeout:")
    return inner.result.kind == "in_doubt" or (is_timeout and not _may_repeat(child.call(inner.call_id)))


def _may_repeat(call: Call | None) -> bool:
    return call is not None and call.spec is not None and call.spec.may_repeat


def _noticed(state: State, planning: Planning, step_id: str, child: State, inner: events.StepInner) -> Planning:
    """The planning with what a call inside a step has done, or has failed at."""
    match inner:
        case events.ModelReplied(requests=requests):
            return changed(planning, stats=counted(planning, llm_calls=requests))
        case JudgementMade(asking=asking) | PerceptionSanitised(asking=asking) if asking is not None:
            return changed(planning, stats=counted(planning, llm_calls=asking.requests))
        case events.CallStarted(attempt=attempt):  # one that is made again after a crash is the same call
            return changed(planning, stats=counted(planning, tool_calls=int(attempt == 1)))
        case CallPaused(inner=run):
            return changed(planning, stats=counted(planning, llm_calls=run.requests))
        case events.CallEnded(call_id, inner=run):
            call = child.call(call_id)
            if run is not None:
                planning = changed(planning, stats=counted(planning, llm_calls=run.requests))
        case events.DoubtSettled(call_id):
            call = child.call(call_id)
        case _:
            return planning
    if call is None or (result := call.result) is None:
        return planning
    if result.trust == "untrusted" and not planning.has_read:
        planning = changed(planning, has_read=True)
    record = planning.steps.get(step_id)
    is_agent = record is not None and record.step.kind == "agent"
    has_no_effect = result.is_error or call.spec is None or call.spec.may_repeat
    if has_no_effect and not (is_agent and result.kind in ("error", "timeout")):
        return planning
    mark = call_fingerprint(call.name, call.arguments, call.spec)
    told = f"{call.name}({json_text(call.arguments)})"[:_LONGEST_EFFECT]
    if has_no_effect:
        planning = changed(planning, failed_calls=planning.failed_calls | {mark})
        if record is None or call.spec is None or not call.spec.delegates or call.spec.effect == "read":
            return planning
        told = f"{told} gave no answer but may have acted: find that out first"
        return with_record(planning, replace(record, effects=(*record.effects, told)))
    if mark not in planning.completed_effects:  # the first time counts: what was added since must not repeat it
        planning = changed(planning, completed_effects={**planning.completed_effects, mark: state.seen})
    if record is None:
        return planning
    effects = (*record.effects, told) if is_agent else record.effects
    return with_record(planning, replace(record, effects=effects, done_calls=record.done_calls | {mark}))


def _settle(state: State, planning: Planning, event: events.InStep, child: State) -> Planning:
    """The planning with a step's own state as it is now, or with what has come of the step."""
    name = event.step_id
    children = {**planning.children, name: child}
    step = _ANSWERING if name == ANSWER else planning.steps[name].step
    result = outcome_of(child, step, event.attempt)
    if result is not None:
        del children[name]
    planning = changed(planning, children=children)
    if name == ANSWER:
        if result is None:
            return planning
        return changed(planning, answer=result.output, answer_fault=result.error.message if result.error else "")
    record = planning.steps[name]
    if result is None:  # in doubt from a call of which nobody knows, until its doubt is settled
        is_settled = isinstance(event.event, events.DoubtSettled) and event.event.outcome != "unknown"
        status = "running" if record.status == "in_doubt" and is_settled else record.status
        status = "in_doubt" if _is_unknown(event.event, child) else status
        return planning if status == record.status else with_record(planning, replace(record, status=status))
    call = child.calls[0] if step.kind == "tool" else None
    if call is not None and call.result is not None and call.result.kind == "cancelled":
        return with_record(planning, replace(record, status="cancelled", result=result))
    result = replace(
        result,
        fingerprint=fingerprint_of(step, call.arguments if call is not None else {}, state.tools.get(step.tool_id)),
        started_at_s=record.begun_s,
        duration_s=max(0.0, round(state.elapsed_s - record.begun_s, 6)),
    )
    if result.error is not None:
        return failed(state, planning, record, result)
    value, version = step_value(result, child), planning.version
    done = replace(record, status="succeeded", result=result, value=value, due="", is_exempt=False, done_in=version)
    return changed(having_done(planning, done), has_moved=True)
