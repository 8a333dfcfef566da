"""Steps one after another: those that came with a task, and the one step of a small run. Source: spec/guard.md, 2.

no step runs, one has failed      → the run has failed
no step runs, all have a result   → the answer
no step runs, the next is a skip  → it is skipped
no step runs                      → the next begins
a tool step, its call is settled  → it is over
an agent step                     → as without a plan; its answer is the step's output
a step without tools              → words; a reply that it cannot use is put on record and asked for again, as often
                                    as the guard has it; then once out of fresh messages; then the step has failed
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from surefoot.core.guard.ledger import with_violation
from surefoot.core.loop import speakers
from surefoot.core.state.plans import PlanRecord
from surefoot.core.state.roles import SOLO
from surefoot.core.state.state import State
from surefoot.core.state.turn import changed
from surefoot.core.view.step import in_view, spoken_call, union, with_own_calls
from surefoot.types.events import RunEnded
from surefoot.types.moves import Record, Think
from surefoot.types.outcomes import Completed, CompletedPartial, Failed
from surefoot.types.plan import StepError, StepErrorClass, StepExecutionResult
from surefoot.types.plan_events import (
    ReasoningStepCompleted,
    ReasoningStepViolated,
    StepEnded,
    StepEvent,
    StepSkipped,
    StepStarted,
)
from surefoot.types.tools import ResultKind

DEVELOPER = "developer"

_AS_OUTPUT = frozenset({"truncated", "unlabelled_answer"})
_CLASSES: dict[ResultKind, StepErrorClass] = {"denied": "denied", "timeout": "timeout"}


def step_move(state: State, plan: PlanRecord) -> Think | Record:
    """The next move of a run with a plan, while nothing is open. The first row that applies decides."""
    step, turn = plan.running, state.turn
    if step is None:
        failed, following = plan.failed, plan.following
        if failed is not None and failed.error is not None:
            return Record((RunEnded(Failed(failed.error.code, f"step {failed.step_id}: {failed.error.message}")),))
        if following is None:
            return Record((RunEnded(Completed(plan.answer)),))
        if following.kind == "skip":
            return Record((StepSkipped(following.step_id, following.instruction, DEVELOPER),))
        return Record((StepStarted(following.step_id),))
    if state.failure is not None:
        return speakers.after_failure(state)
    if turn is None or state.steps == plan.since:
        return speakers.think(state, SOLO)
    if step.kind == "tool":
        call = turn.calls[0]
        result = call.result
        if result is not None and not result.is_error:
            return Record((StepEnded(step.step_id, call_id=call.id, sources=(call.id,), trust=result.trust),))
        kind = result.kind if result else "error"
        told = result.content if result else "the call could not be made"
        code = "timeout" if kind == "timeout" else f"call_{kind}"
        error = StepError(_CLASSES.get(kind, "tool"), code, f"{step.tool_id}: {told}")
        return Record((StepEnded(step.step_id, call_id=call.id, error=error),))
    if turn.want not in ("any", "answer") and step.kind != "agent":
        name, is_isolated = step.step_id, turn.want == "isolated"
        if (move := speakers.after_words(state, turn, name, plan.bad)) is not None:
            return move
        if turn.outcome in ("answer", "cut"):
            sources, trust = union(plan.inputs(step)) if is_isolated else in_view(state)
            output = speakers.visible_words(turn).strip() if is_isolated else speakers.joined(state, turn)
            said = ReasoningStepCompleted(name, output, len(plan.bad) + 1, is_isolated, sources, trust)
            return speakers.end_or_reply(state, Record((said,)))
        return Record((StepEnded(name, error=StepError("violation", speakers.VIOLATIONS, speakers.in_vain(plan.bad))),))
    move = speakers.end_or_reply(state, speakers.solo_speaker(state))
    match move:
        case Record((RunEnded(Completed(output)),)):
            pass
        case Record((RunEnded(CompletedPartial(output, reason)),)) if reason in _AS_OUTPUT:
            pass
        case _:
            return move
    sources, trust = in_view(state)
    return Record((StepEnded(step.step_id, output, sources=sources, trust=trust),))


def with_step(state: State, event: StepEvent) -> State:
    """The state once something has happened to a step; an event of a step that is not known changes nothing."""
    plan = state.plan
    if isinstance(event, ReasoningStepViolated) and (plan is None or not plan.is_reasoning(event.step_id)):
        return with_violation(state)
    step = next((one for one in plan.steps if one.step_id == event.step_id), None) if plan is not None else None
    if plan is None or step is None:
        return state
    match event:
        case StepStarted():
            state = changed(state, plan=replace(plan, running=step, since=state.steps, bad=()))
            return state if step.kind != "tool" else with_own_calls(state, *spoken_call(step))
        case ReasoningStepViolated():
            return changed(state, plan=replace(plan, bad=(*plan.bad, state.steps)))
        case StepSkipped():
            result = StepExecutionResult(step.step_id, "skip")
        case ReasoningStepCompleted(_, output):
            result = StepExecutionResult(step.step_id, step.kind, output, None, event.sources, event.trust)
        case StepEnded(_, output, call_id, error):
            call = state.call(call_id) if call_id else None
            output = call.result.content if call is not None and call.result is not None else output
            result = StepExecutionResult(step.step_id, step.kind, output, error, event.sources, event.trust)
        case _:
            assert_never(event)
    return changed(state, plan=replace(plan, running=None, results={**plan.results, result.step_id: result}, bad=()))


def retried(plan: PlanRecord | None) -> PlanRecord | None:
    """The plan when somebody takes the run up again: a step that failed is tried anew."""
    if plan is None:
        return None
    results = {name: one for name, one in plan.results.items() if one.error is None}
    return replace(plan, results=results) if len(results) < len(plan.results) else plan
