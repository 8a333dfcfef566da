"""What a plan asks for next: the rows of the table of moves for a run that has one. Source: spec/guard.md, section 2.

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

from surefoot.core.plan.record import PlanRecord
from surefoot.core.reasoners import react
from surefoot.core.reasoners.shared import after_failure, joined, said, think
from surefoot.core.roles import SOLO
from surefoot.core.running import in_view, union
from surefoot.core.shape import shape_faults
from surefoot.core.state import State, Turn
from surefoot.types.endings import Completed, CompletedPartial, Failed, Stopped
from surefoot.types.events import RunEnded
from surefoot.types.guard import GuardConfig
from surefoot.types.moves import Record, Think
from surefoot.types.plan import PlanStep, StepError, StepErrorClass
from surefoot.types.step_events import (
    ReasoningStepCompleted,
    ReasoningStepViolated,
    StepEnded,
    StepSkipped,
    StepStarted,
)
from surefoot.types.tools import ResultKind

VIOLATIONS = "reasoning_violations"
"""Why a step without tools fails, and the run with it."""

DEVELOPER = "developer"

_DEFAULT = GuardConfig()
_AS_OUTPUT = frozenset({"truncated", "unlabelled_answer"})
_CLASSES: dict[ResultKind, StepErrorClass] = {"denied": "denied", "timeout": "timeout"}


def step_move(state: State, plan: PlanRecord) -> Think | Record:
    """The next move of a run with a plan, while nothing is open. The first row that applies decides."""
    step = plan.running
    if step is None:
        return _next_step(state, plan)
    if state.failure is not None:
        return after_failure(state)
    turn = state.turn
    if turn is None or state.steps == plan.since:
        return think(state, SOLO)
    if step.kind == "tool":
        return Record((_called(step, turn),))
    if turn.want in ("any", "answer"):
        return _spoken(state, step)
    return _worded(state, plan, step, turn)


def _next_step(state: State, plan: PlanRecord) -> Record:
    if (failed := plan.failed) is not None and failed.error is not None:
        return Record((RunEnded(Failed(failed.error.code, f"step {failed.step_id}: {failed.error.message}")),))
    step = plan.following
    if step is None:
        schema = state.config.output_schema
        is_other = schema is not None and bool(shape_faults(plan.answer, schema))
        return Record((RunEnded(CompletedPartial(plan.answer, "schema") if is_other else Completed(plan.answer)),))
    if step.kind == "skip":
        return Record((StepSkipped(step.step_id, step.instruction, DEVELOPER),))
    return Record((StepStarted(step.step_id),))


def _called(step: PlanStep, turn: Turn) -> StepEnded:
    """A tool step whose call is settled."""
    call = turn.calls[0]
    result = call.result
    if result is None or result.is_error:
        kind = result.kind if result else "error"
        told = result.content if result else "the call could not be made"
        code = "timeout" if kind == "timeout" else f"call_{kind}"
        error = StepError(_CLASSES.get(kind, "tool"), code, f"{step.tool_id}: {told}")
        return StepEnded(step.step_id, call_id=call.id, error=error)
    return StepEnded(step.step_id, call_id=call.id, sources=(call.id,), trust=result.trust)


def _spoken(state: State, step: PlanStep) -> Think | Record:
    """An agent step, or a last word: the loop decides as without a plan; where it would answer, the step is over."""
    move = react.speaker(state)
    match move:
        case Record((RunEnded(Completed(output)),)):
            pass
        case Record((RunEnded(CompletedPartial(output, reason)),)) if reason in _AS_OUTPUT:
            pass
        case _:
            return move
    sources, trust = in_view(state)
    return Record((StepEnded(step.step_id, output, sources=sources, trust=trust),))


def _worded(state: State, plan: PlanRecord, step: PlanStep, turn: Turn) -> Think | Record:
    """A step without tools, after a reply of its own."""
    if turn.outcome == "refused":
        return Record((RunEnded(Stopped("refused")),))
    is_isolated = turn.want == "isolated"
    has_words = turn.outcome in ("answer", "cut")
    if turn.outcome == "cut" and state.speakers[SOLO].cuts_running <= state.config.continuations and not is_isolated:
        return think(state, SOLO)
    if has_words:
        sources, trust = union(plan.inputs(step)) if is_isolated else in_view(state)
        output = said(turn).strip() if is_isolated else joined(state, turn)
        tries = len(plan.bad) + 1
        return Record((ReasoningStepCompleted(step.step_id, output, tries, is_isolated, sources, trust),))
    if is_isolated:
        told = f"{len(plan.bad)} replies called a tool or held no words, and the isolated call gave none either"
        return Record((StepEnded(step.step_id, error=StepError("violation", VIOLATIONS, told)),))
    if state.steps not in plan.bad:
        return Record((_violated(state, plan, step, turn),))
    retries = (state.config.guard or _DEFAULT).reasoning_retries
    return think(state, SOLO, "any" if len(plan.bad) <= retries else "isolated")


def _violated(state: State, plan: PlanRecord, step: PlanStep, turn: Turn) -> ReasoningStepViolated:
    error = turn.parsed.error
    reason = "calls" if turn.calls else "empty" if turn.outcome == "empty" or error is None else error.kind
    return ReasoningStepViolated(
        step.step_id,
        len(plan.bad) + 1,
        reason,
        tuple(call.id for call in turn.calls),
        tuple(call.name for call in turn.calls),
        after_untrusted=in_view(state)[1] == "untrusted",
    )
