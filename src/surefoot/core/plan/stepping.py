"""What events make of a running step: it begins, goes on in a state of its own, and comes to something.

What happens inside a step is folded into the step's own state; where that has come to something, the step has.
Source: spec/planning.md, sections 5 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeGuard

from surefoot.core.fingerprint import call_fingerprint
from surefoot.core.plan.arguments import arguments_of
from surefoot.core.plan.child import child_of, outcome_of, step_value, with_whole
from surefoot.core.plan.dag import (
    Planning,
    StepRecord,
    changed,
    counted,
    fingerprint_of,
    having_done,
    with_record,
)
from surefoot.core.plan.references import UnresolvedError
from surefoot.core.repeats import NOTHING_KNOWN
from surefoot.core.state import Call, State
from surefoot.core.state import changed as changed_state
from surefoot.core.text import json_text
from surefoot.types.events import (
    CallEnded,
    CallStarted,
    DoubtSettled,
    Event,
    InStep,
    ModelReplied,
    ModelTraitLearnt,
    StepInner,
)
from surefoot.types.guard_events import JudgementMade, PerceptionSanitised
from surefoot.types.plan import PlanStep, StepError, StepExecutionResult, StepStatus
from surefoot.types.planning import ANSWER
from surefoot.types.step_events import StepStarted

Apply = Callable[[State, Event], State]

_LONGEST_EFFECT = 200
_RETRIED = frozenset({"transient", "timeout"})


def started(state: State, planning: Planning, event: StepStarted) -> Planning:
    """The planning once a step begins: it has a state of its own."""
    name, attempt = event.step_id, event.attempt
    if name == ANSWER:
        step = PlanStep(ANSWER, "answer", "response", instruction=ANSWER_GOAL)
        child = child_of(state, planning, step, attempt, {})
        return changed(planning, children={**planning.children, ANSWER: child})
    record = planning.steps[name]
    step = record.step
    arguments: Mapping[str, object] = {}
    if step.kind == "tool":
        try:
            arguments = arguments_of(state.tools, planning, step.tool_id, step.parameters).value
        except UnresolvedError:  # it was resolved right before, so nothing can be missing
            return planning
    transient = record.transient + (record.due == "wait")
    record = replace(record, status="running", attempt=attempt, due="", transient=transient, begun_s=event.elapsed_s)
    child = child_of(state, planning, step, attempt, arguments)
    return with_record(
        planning,
        record,
        children={**planning.children, name: child},
        ready=tuple(one for one in planning.ready if one != name),
        due=tuple(one for one in planning.due if one != name) if planning.due else (),
        stats=counted(planning, step_retries=1) if transient > planning.steps[name].transient else planning.stats,
    )


ANSWER_GOAL = "Answer the task from these results."
"""What the step is told that writes the answer of a plan without a response step."""


def inside(state: State, planning: Planning, event: InStep, apply: Apply) -> State:
    """Something happened inside a running step."""
    child = planning.children.get(event.step_id)
    inner = event.event
    if child is None or child.scope != f"{event.step_id}.{event.attempt}":
        return changed_state(state, seen=state.seen + 1)  # a late word: it is on record, and changes nothing
    before = with_whole(child, state)
    after = _in_doubt(before, inner) or apply(before, inner)
    if isinstance(inner, ModelTraitLearnt):
        state = apply(state, inner)
    planning = _noticed(state, planning, event.step_id, after, inner)
    if _has_acted(after, inner):  # from here on each step knows that alone
        state = changed_state(state, known=after.known)
        others = {name: changed_state(one, known=after.known) for name, one in planning.children.items()}
        planning = changed(planning, children=others)
    state = changed_state(
        state,
        seen=state.seen + 1,
        gate=after.gate,
        usage=after.usage,
        requests=state.requests + after.requests - before.requests,
        calls_made=state.calls_made + after.calls_made - before.calls_made,
        elapsed_s=max(state.elapsed_s, after.elapsed_s),
    )
    return changed_state(state, planning=_settled(state, planning, event, after))


def _has_acted(child: State, inner: StepInner) -> bool:
    """Whether a call with an effect has ended just now, with whatever outcome."""
    call = child.call(inner.call_id) if isinstance(inner, CallEnded | DoubtSettled) else None
    return call is not None and call.has_effect and (isinstance(inner, CallEnded) or call.result is not None)


def _in_doubt(child: State, inner: StepInner) -> State | None:
    """A call that has ended, and nobody knows how, stays open, as if the process had died at it. None for any other.

    One that may be repeated is not repeated at once: whoever takes the run up has it made again (R18).
    """
    turn = child.turn
    if turn is None or not _is_unknown(inner, child):
        return None
    calls = tuple(_doubted(call) if call.id == inner.call_id else call for call in turn.calls)
    turn = changed_state(turn, calls=calls, _memo={})
    child = changed_state(child, known=NOTHING_KNOWN) if _has_acted(child, inner) else child
    return changed_state(child, seen=child.seen + 1, turn=turn, elapsed_s=max(child.elapsed_s, inner.elapsed_s))


def _is_unknown(inner: StepInner, child: State) -> TypeGuard[CallEnded]:
    """Whether a call has ended and nobody knows whether it took effect: also where the tool itself ran out of time."""
    if not isinstance(inner, CallEnded):
        return False
    call = child.call(inner.call_id)
    may_repeat = call is not None and call.spec is not None and call.spec.may_repeat
    has_no_word = inner.result.error.startswith("timeout:") and not may_repeat
    return inner.result.kind == "in_doubt" or has_no_word


def _doubted(call: Call) -> Call:
    return changed_state(call, doubt="unknown" if call.spec is not None and call.spec.may_repeat else "")


def _noticed(state: State, planning: Planning, step_id: str, child: State, inner: StepInner) -> Planning:
    """The planning with what a call inside a step has done, or has failed at."""
    match inner:
        case ModelReplied(requests=requests):
            return changed(planning, stats=counted(planning, llm_calls=requests))
        case JudgementMade(asking=asking) | PerceptionSanitised(asking=asking) if asking is not None:
            return changed(planning, stats=counted(planning, llm_calls=asking.requests))
        case CallStarted():
            return changed(planning, stats=counted(planning, tool_calls=1))
        case CallEnded(call_id) | DoubtSettled(call_id):
            call = child.call(call_id)
            return _called(state, planning, step_id, call) if call is not None and call.result is not None else planning
        case _:
            return planning


def _called(state: State, planning: Planning, step_id: str, call: Call) -> Planning:
    result = call.result
    assert result is not None  # noqa: S101  # asked only then
    has_read = planning.has_read or result.trust == "untrusted"
    planning = planning if has_read == planning.has_read else changed(planning, has_read=has_read)
    if result.is_error or call.spec is None or call.spec.may_repeat:
        is_agent = step_id in planning.steps and planning.steps[step_id].step.kind == "agent"
        if is_agent and result.kind in ("error", "timeout"):
            mark = call_fingerprint(call.name, call.arguments, call.spec)
            return changed(planning, failed_calls=planning.failed_calls | {mark})
        return planning
    mark = call_fingerprint(call.name, call.arguments, call.spec)
    if mark not in planning.completed_effects:  # the first time counts: what was added since must not repeat it
        planning = changed(planning, completed_effects={**planning.completed_effects, mark: state.seen + 1})
    record = planning.steps.get(step_id)
    if record is None:
        return planning
    record = replace(record, done_calls=record.done_calls | {mark})
    if record.step.kind == "agent":
        told = f"{call.name}({json_text(call.arguments)})"[:_LONGEST_EFFECT]
        record = replace(record, effects=(*record.effects, told))
    return with_record(planning, record)


def _settled(state: State, planning: Planning, event: InStep, child: State) -> Planning:
    """The planning with a step's own state as it is now, or with what has come of the step."""
    name = event.step_id
    children = {**planning.children, name: child}
    if name == ANSWER:
        step = PlanStep(ANSWER, "answer", "response", instruction=ANSWER_GOAL)
        written = outcome_of(child, step, event.attempt)
        if written is None:
            return changed(planning, children=children)
        del children[ANSWER]
        return changed(planning, children=children, answer=written.output)
    record = planning.steps[name]
    result = outcome_of(child, record.step, event.attempt)
    if result is None:
        status = _status_after(record, child, event.event)
        if status == record.status:
            return changed(planning, children=children)
        return with_record(planning, replace(record, status=status), children=children)
    kind = child.calls[0].result.kind if record.step.kind == "tool" and child.calls[0].result is not None else "ok"
    del children[name]
    if kind == "cancelled":
        return with_record(planning, replace(record, status="cancelled", result=result), children=children)
    planning = changed(planning, children=children)
    arguments = child.calls[0].arguments if record.step.kind == "tool" else dict[str, object]()
    result = replace(
        result,
        fingerprint=fingerprint_of(record.step, arguments, state.tools.get(record.step.tool_id)),
        started_at_s=record.begun_s,
        duration_s=max(0.0, round(state.elapsed_s - record.begun_s, 6)),
    )
    if result.error is not None:
        return failed(state, planning, record, result)
    done = replace(
        record,
        status="succeeded",
        result=result,
        value=step_value(result, child),
        due="",
        is_exempt=False,
        done_in=planning.version,
    )
    return changed(having_done(planning, done), has_moved=True)


def _status_after(record: StepRecord, child: State, inner: StepInner) -> StepStatus:
    """The status of a step that goes on: in doubt from a call of which nobody knows until its doubt is settled."""
    if _is_unknown(inner, child):
        return "in_doubt"
    is_settled = isinstance(inner, DoubtSettled) and inner.outcome != "unknown"
    return "running" if record.status == "in_doubt" and is_settled else record.status


def failed(state: State, planning: Planning, record: StepRecord, result: StepExecutionResult) -> Planning:
    """The planning with a step that has failed: tried again by the engine (R4), or left to a reflection."""
    error = result.error or StepError("tool", "error")
    name = record.step.step_id
    spec = state.tools.get(record.step.tool_id)
    may_repeat = spec is not None and spec.may_repeat and error.cls in _RETRIED
    if may_repeat and record.transient < planning.config.transient_retries:
        waiting = replace(record, status="pending", result=result, due="wait")
        return with_record(planning, waiting, due=(*planning.due, name))
    failed = replace(
        record, status="failed", result=result, failures=(*record.failures, result), due="", is_exempt=False
    )
    marks = planning.failed_calls | {result.fingerprint} if result.fingerprint else planning.failed_calls
    queue = planning.queue if planning.escalation is not None else (*planning.queue, name)
    return with_record(planning, failed, failed_calls=marks, queue=queue)
