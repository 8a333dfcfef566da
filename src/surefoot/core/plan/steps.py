"""What events make of a plan: a step begins, and it comes to something. Part of the fold."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from surefoot.core.plan.record import PlanRecord
from surefoot.core.replied import calls_of
from surefoot.core.roles import SOLO
from surefoot.core.state import State, Turn, changed
from surefoot.types.events import ModelReplied
from surefoot.types.messages import ModelMessage, NativeCall
from surefoot.types.plan import PlanStep, StepExecutionResult
from surefoot.types.reply import Parsed, ParsedCall
from surefoot.types.step_events import (
    ReasoningStepCompleted,
    ReasoningStepViolated,
    StepEnded,
    StepEvent,
    StepSkipped,
    StepStarted,
)


def with_step(state: State, event: StepEvent) -> State:
    """The state once something has happened to a step; an event of a step that is not known changes nothing."""
    plan = state.plan
    state = changed(state, seen=state.seen + 1)
    step = next((one for one in plan.steps if one.step_id == event.step_id), None) if plan is not None else None
    if plan is None or step is None:
        return state
    match event:
        case StepStarted():
            state = changed(state, plan=replace(plan, running=step, since=state.steps, bad=()))
            return _with_call(state, step) if step.kind == "tool" else state
        case ReasoningStepViolated():
            return changed(state, plan=replace(plan, bad=(*plan.bad, state.steps)))
        case StepSkipped():
            return _ended(state, plan, StepExecutionResult(step.step_id, "skip"))
        case ReasoningStepCompleted(_, output):
            result = StepExecutionResult(step.step_id, step.kind, output, None, event.sources, event.trust)
            return _ended(state, plan, result)
        case StepEnded(_, output, call_id, error):
            call = state.call(call_id) if call_id else None
            output = call.result.content if call is not None and call.result is not None else output
            result = StepExecutionResult(step.step_id, step.kind, output, error, event.sources, event.trust)
            return _ended(state, plan, result)
        case _:
            assert_never(event)


def taken_up(plan: PlanRecord | None) -> PlanRecord | None:
    """The plan when somebody takes the run up again: a step that failed is tried anew."""
    if plan is None:
        return None
    results = {name: one for name, one in plan.results.items() if one.error is None}
    return replace(plan, results=results) if len(results) < len(plan.results) else plan


def _ended(state: State, plan: PlanRecord, result: StepExecutionResult) -> State:
    results = {**plan.results, result.step_id: result}
    return changed(state, plan=replace(plan, running=None, results=results, bad=()))


def _with_call(state: State, step: PlanStep) -> State:
    """The call of a tool step as a turn of its own, which no model spoke."""
    number = state.steps + 1
    message = ModelMessage("assistant", calls=(NativeCall("", step.tool_id, step.parameters),))
    parsed = Parsed((ParsedCall(0, step.tool_id, step.parameters),), format="native")
    calls, ids = calls_of(state, ModelReplied(number, message, parsed, role=SOLO))
    turn = Turn(
        number, message, parsed, "native", "any", SOLO, "calls", calls, step_id=step.step_id, called=state.called
    )
    wire_ids = state.wire_ids.plus(ids)
    return changed(state, done=state.turns, turn=turn, wire_ids=wire_ids, calls_made=state.calls_made + 1)
