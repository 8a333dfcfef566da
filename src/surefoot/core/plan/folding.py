"""What events make of a plan that repairs itself. Part of the fold.

What happens inside a running step is folded into the step's own state; where that has come to something, the step has.
Source: spec/planning.md, sections 3, 5, 8 and 11.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from surefoot.core.plan.child import loops_of
from surefoot.core.plan.dag import (
    BLOCKED,
    Escalation,
    Planning,
    Shortlist,
    StepRecord,
    Tries,
    cause_of,
    changed,
    counted,
    having_done,
    laid_out,
    with_record,
)
from surefoot.core.plan.edits import applied
from surefoot.core.plan.iterating import ENGINE
from surefoot.core.plan.reflecting import idle_rounds, open_part, plain_cause
from surefoot.core.plan.stepping import Apply, failed, inside, started
from surefoot.core.state import State
from surefoot.core.state import changed as changed_state
from surefoot.types.config import LoopConfig
from surefoot.types.events import (
    InStep,
    Task,
    ToolsSelected,
    ToolsShortlisted,
)
from surefoot.types.plan import StepExecutionResult
from surefoot.types.plan_events import (
    Escalated,
    PlanEdited,
    PlanEvent,
    PlanMade,
    PlanSigned,
    ProposalMade,
    ProposalRefused,
    RunEvaluated,
    RunReflected,
    StepReflected,
)
from surefoot.types.planning import PlanConfig
from surefoot.types.reflection import FullReplan, ReflectionResult, ReplanFromStep
from surefoot.types.step_events import StepEnded, StepEvent, StepSkipped, StepStarted


def planning_of(task: Task, config: LoopConfig) -> Planning:
    """The planning of a run that begins."""
    plan = config.plan or PlanConfig()
    around = task.context.documents or task.context.conversation_history
    has_read = bool(around) or any(one.trust == "untrusted" for one in task.attachments)
    return Planning(plan, loops_of(config, plan), has_read=has_read)


def having_read(planning: Planning | None, message: str) -> Planning | None:
    """The planning once such a text, fetched or of a workspace, stands before the task that proposers read."""
    if planning is None or planning.has_read or not message:
        return planning
    return changed(planning, has_read=True)


def with_plan(
    state: State, event: PlanEvent | StepEvent | ToolsSelected | ToolsShortlisted | InStep, apply: Apply
) -> State:
    """The state once something has befallen its plan. `apply` folds what happens inside a step."""
    planning = state.planning
    seen = state.seen + 1
    if planning is None:
        return changed_state(state, seen=seen)
    if isinstance(event, InStep):
        return inside(state, planning, event, apply)
    if isinstance(event, StepStarted):
        begun = started(state, planning, event)
        made = event.step_id in begun.children and bool(begun.children[event.step_id].calls)
        elapsed_s, calls_made = max(state.elapsed_s, event.elapsed_s), state.calls_made + made
        return changed_state(state, seen=seen, planning=begun, elapsed_s=elapsed_s, calls_made=calls_made)
    if isinstance(event, ProposalMade):
        state = _having_proposed(state, event)
    elif isinstance(event, RunEvaluated | ToolsShortlisted):
        state = changed_state(state, elapsed_s=max(state.elapsed_s, event.elapsed_s))
    return changed_state(state, seen=seen, planning=_after(state, planning, event))


def _having_proposed(state: State, event: ProposalMade) -> State:
    return changed_state(
        state,
        usage=state.usage + event.message.usage,
        requests=state.requests + (event.requests if event.by == "model" else 0),
        elapsed_s=max(state.elapsed_s, event.elapsed_s),
        failure=None,
    )


def _after(
    state: State, planning: Planning, event: PlanEvent | StepEvent | ToolsSelected | ToolsShortlisted
) -> Planning:
    match event:
        case ProposalMade():
            return _proposed(planning, event)
        case ProposalRefused():
            return _refused(planning, event)
        case ToolsSelected(selection=selection) if selection is not None:
            return _selected(planning, event)
        case ToolsShortlisted(names, best):
            return changed(planning, shortlist=Shortlist(names, best))
        case PlanMade(plan):
            records = {step.step_id: StepRecord(step) for step in plan.steps}
            laid = laid_out(planning, records, records)
            return changed(laid, phase="running", plan=plan, original=plan.steps, **_DECIDED)
        case PlanEdited():
            return _edited(state, planning, event)
        case PlanSigned():
            return _signed(planning, event)
        case StepReflected():
            return _step_reflected(planning, event)
        case Escalated(step_id, cause):
            return changed(planning, escalation=Escalation(step_id, cause), queue=(), **_DECIDED)
        case RunReflected():
            return _run_reflected(planning, event)
        case RunEvaluated(evaluation):
            return changed(planning, evaluations=(*planning.evaluations, evaluation))
        case StepSkipped(step_id):
            record = planning.steps[step_id]
            ready = tuple(name for name in planning.ready if name != step_id)
            return having_done(changed(planning, ready=ready), replace(record, status="skipped"))
        case StepEnded(step_id, error=error, attempt=attempt):
            step = planning.steps[step_id].step
            result = StepExecutionResult(step_id, step.kind, "", error, attempt=attempt, tool_id=step.tool_id)
            record = replace(planning.steps[step_id], attempt=attempt)
            ready = tuple(name for name in planning.ready if name != step_id)
            due = tuple(name for name in planning.due if name != step_id)
            return failed(state, changed(planning, ready=ready, due=due), record, result)
        case _:
            return planning


_DECIDED: dict[str, object] = {"proposal": None, "tries": Tries(), "refusal": None}
"""What a decision puts an end to."""


def _proposed(planning: Planning, event: ProposalMade) -> Planning:
    if event.by != "model":
        return changed(planning, proposal=event)
    is_first = event.kind == "overall_reflection" and planning.tries == Tries()
    stats = counted(planning, llm_calls=event.requests, rounds=int(is_first))
    return changed(planning, proposal=event, stats=stats)


def _refused(planning: Planning, event: ProposalRefused) -> Planning:
    """A refusal counts as a try where it is all that came of the proposal."""
    refusals = (*planning.refusals, event)
    proposal = planning.proposal
    if event.what in _REMARKS or proposal is None:
        return changed(planning, refusals=refusals)
    malformed, refused = planning.tries
    if proposal.by == "model":
        is_malformed = event.what == "malformed_json"
        malformed, refused = malformed + is_malformed, refused + (not is_malformed)
    return changed(planning, refusals=refusals, refusal=event, proposal=None, tries=Tries(malformed, refused))


_REMARKS = frozenset(
    {"selection_fallback", "diff_corrected", "must_succeed_pending", "step_cannot_replan", "step_retry_limit"}
)
"""Refusals of a part, or of the engine's own: the proposal is decided about beside them."""


def _selected(planning: Planning, event: ToolsSelected) -> Planning:
    selection = event.selection
    assert selection is not None  # noqa: S101  # asked only then
    new = frozenset(selection.selected_tool_ids) - frozenset(planning.selected or ())
    late = planning.late_tools | new if planning.has_read and event.reason in ("predictive", "corrective") else None
    return changed(
        planning,
        phase="redecomposing" if planning.phase == "reselecting" else "decomposing",
        selected=selection.selected_tool_ids,
        selection=selection,
        late_tools=planning.late_tools if late is None else late,
        **_DECIDED,
    )


def _edited(state: State, planning: Planning, event: PlanEdited) -> Planning:
    cause = planning.escalation.cause if planning.escalation is not None else None
    held = {name: replace(planning.steps[name], due="") for name in planning.due}  # a retry that R7 has held up
    planning = changed(planning, steps={**planning.steps, **held}, due=())
    made = applied(planning, event.operations, state.seen + 1, event.strategy.type)
    return changed(
        made,
        phase="running",
        edits=(*planning.edits, event),
        answered=planning.answered | {cause} if cause is not None else planning.answered,
        stats=counted(planning, replans=int(event.by != ENGINE)),  # what a limit of the user's takes out is none
        escalation=None,
        strategy=None,
        shortlist=None,
        queue=(),
        evaluations=(),
        has_moved=False,
        **_DECIDED,
    )


def _signed(planning: Planning, event: PlanSigned) -> Planning:
    match event.decision:
        case "approved":
            return changed(planning, signed=event.version)
        case "rejected":
            return changed(planning, rejected_by=event.by)
        case "revise":
            noted = (*planning.noted, event.note)
            if planning.edits:  # what has run stays: the note is answered by another repair of the plan
                first = RunReflected("replan", BLOCKED, ReflectionResult())  # of a repair that nobody has reflected on
                anew = replace((first, *planning.reflections)[-1], strategy=FullReplan())
                return changed(planning, noted=noted, phase="redecomposing", strategy=anew, **_DECIDED)
            return changed(planning, noted=noted, phase="decomposing", plan=None, **_DECIDED)
        case _:
            assert_never(event.decision)


def _step_reflected(planning: Planning, event: StepReflected) -> Planning:
    record = planning.steps[event.step_id]
    queue = tuple(name for name in planning.queue if name != event.step_id)
    reflected = (*record.reflected, event)
    if event.decision == "escalate":
        record = replace(record, reflected=reflected)
        escalation = planning.escalation or Escalation(event.step_id, cause_of(record))
        return with_record(planning, record, queue=(), escalation=escalation, **_DECIDED)
    step = record.step
    if event.parameters is not None:
        marked = step.unanchored or event.unanchored
        step = replace(step, tool_id=event.tool_id or step.tool_id, parameters=event.parameters, unanchored=marked)
    elif event.instruction:
        step = replace(step, instruction=event.instruction)
    record = replace(record, step=step, status="pending", reflected=reflected, due="retry")
    stats = counted(planning, step_retries=1)
    return with_record(planning, record, queue=queue, due=(*planning.due, event.step_id), stats=stats, **_DECIDED)


def _run_reflected(planning: Planning, event: RunReflected) -> Planning:
    told = changed(planning, reflections=(*planning.reflections, event), **_DECIDED)
    if event.decision == "stop":
        return changed(told, stop=event)
    told = changed(
        told,
        idle_rounds=idle_rounds(planning, event.cause),
        tried_open=planning.tried_open | {open_part(planning)},
        seen_causes=planning.seen_causes | {plain_cause(event.cause)},
    )
    is_asked = isinstance(event.strategy, FullReplan | ReplanFromStep)
    if not is_asked and event.strategy is not None:
        suggestions = getattr(event.strategy, "suggestions", ())
        is_asked = any(isinstance(one, str) for one in suggestions)
    return changed(told, strategy=event, phase="reselecting", shortlist=None) if is_asked else told
