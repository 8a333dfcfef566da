"""What events make of a plan that repairs itself. Part of the fold.

Attempts at steps are folded in `core/plan/attempt.py`. Source: spec/planning.md, sections 3, 5, 8 and 11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from surefoot.core.plan.attempt import Apply, counted, failed, having_done, inside, started, with_record, without
from surefoot.core.plan.child import in_words, loop_of, loops_of
from surefoot.core.plan.edits import applied, laid_out, needs_planning
from surefoot.core.plan.forms import MALFORMED
from surefoot.core.plan.limits import ENGINE
from surefoot.core.plan.reflect import idle_rounds, open_part, plain_cause
from surefoot.core.state.plans import BLOCKED, Escalation, Loops, Shortlist, StepRecord, Tries
from surefoot.core.state.roles import goes_on
from surefoot.core.state.state import Call, Planning, State
from surefoot.core.state.turn import changed
from surefoot.types import plan_events
from surefoot.types.config import LoopConfig
from surefoot.types.events import InStep, Speaker, ToolsSelected, ToolsShortlisted
from surefoot.types.plan import PlanConfig, StepExecutionResult
from surefoot.types.reflection import FullReplan, ReflectionResult
from surefoot.types.task import Task

_REMARKS = frozenset(
    {"selection_fallback", "diff_corrected", "must_succeed_pending", "step_cannot_replan", "step_retry_limit"}
)
"""Refusals of a part, or of the engine's own: the proposal is decided about beside them."""

_DECIDED: dict[str, object] = {"proposal": None, "tries": Tries(), "refusal": None}  # what a decision puts an end to


def planning_of(task: Task, config: LoopConfig) -> Planning:
    """The planning of a run that begins."""
    plan = config.plan or PlanConfig()
    around = task.context.documents or task.context.conversation_history
    has_read = bool(around) or any(one.trust == "untrusted" for one in task.attachments)
    return Planning(plan, loops_of(config, plan), has_read=has_read)


def having_read(planning: Planning | None, message: str) -> Planning | None:
    """The planning once such a text, fetched or of a workspace, stands before the task that proposers read."""
    return changed(planning, has_read=True) if planning is not None and message else planning


def with_plan(
    state: State,
    event: plan_events.PlanEvent | plan_events.StepEvent | ToolsSelected | ToolsShortlisted | InStep,
    apply: Apply,
) -> State:
    """The state once something has befallen its plan. `apply` folds what happens inside a step."""
    planning = state.planning
    if planning is None:
        return state
    if isinstance(event, InStep):
        return inside(state, planning, event, apply)
    if isinstance(event, plan_events.ProposalMade):
        requests = state.requests + (event.requests if event.by == "model" else 0)
        state = changed(state, usage=state.usage + event.message.usage, requests=requests, failure=None)
    made = _after(state, planning, event)
    if isinstance(event, plan_events.StepStarted):
        has_call = event.step_id in made.children and bool(made.children[event.step_id].calls)
        state = changed(state, calls_made=state.calls_made + has_call)
    return changed(state, planning=made)


def _after(
    state: State,
    planning: Planning,
    event: plan_events.PlanEvent | plan_events.StepEvent | ToolsSelected | ToolsShortlisted,
) -> Planning:
    match event:
        case plan_events.StepStarted():
            return started(state, planning, event)
        case plan_events.ProposalMade(kind, by=by):
            is_first = kind == "overall_reflection" and planning.tries == Tries()
            stats = counted(planning, llm_calls=event.requests, rounds=int(is_first)) if by == "model" else None
            return changed(planning, proposal=event, stats=stats or planning.stats)
        case plan_events.ProposalRefused():
            planning = changed(planning, refusals=(*planning.refusals, event))
            if event.what in _REMARKS or (proposal := planning.proposal) is None:
                return planning
            malformed, refused = planning.tries  # it counts as a try where it is all that came of the proposal
            if proposal.by == "model":
                is_malformed = event.what == MALFORMED
                malformed, refused = malformed + is_malformed, refused + (not is_malformed)
            return changed(planning, refusal=event, proposal=None, tries=Tries(malformed, refused))
        case ToolsSelected(selection=selection) if selection is not None:
            new = frozenset(selection.selected_tool_ids) - frozenset(planning.selected or ())
            is_late = planning.has_read and event.reason in ("predictive", "corrective")
            return changed(
                planning,
                phase="redecomposing" if planning.phase == "reselecting" else "decomposing",
                selected=selection.selected_tool_ids,
                selection=selection,
                late_tools=planning.late_tools | new if is_late else planning.late_tools,
                **_DECIDED,
            )
        case ToolsShortlisted(names, best):
            return changed(planning, shortlist=Shortlist(names, best))
        case plan_events.PlanMade(plan):
            records = {step.step_id: StepRecord(step) for step in plan.steps}
            laid = laid_out(planning, records, records)
            return changed(laid, phase="running", plan=plan, original=plan.steps, **_DECIDED)
        case plan_events.PlanEdited():
            return _edited(state, planning, event)
        case plan_events.PlanSigned():
            return _signed(planning, event)
        case plan_events.StepReflected():
            return _step_reflected(planning, event)
        case plan_events.Escalated(step_id, cause):
            return changed(planning, escalation=Escalation(step_id, cause), queue=(), **_DECIDED)
        case plan_events.RunReflected():
            return _run_reflected(planning, event)
        case plan_events.RunEvaluated(evaluation):
            return changed(planning, evaluations=(*planning.evaluations, evaluation))
        case plan_events.StepSkipped(step_id):
            record = replace(planning.steps[step_id], status="skipped")
            return having_done(without(planning, step_id), record)
        case plan_events.StepEnded(step_id, error=error, attempt=attempt):
            step = planning.steps[step_id].step
            result = StepExecutionResult(step_id, step.kind, "", error, attempt=attempt, tool_id=step.tool_id)
            record = replace(planning.steps[step_id], attempt=attempt)
            return failed(state, without(planning, step_id), record, result)
        case _:
            return planning


def _edited(state: State, planning: Planning, event: plan_events.PlanEdited) -> Planning:
    cause = planning.escalation.cause if planning.escalation is not None else None
    held = {name: replace(planning.steps[name], due="") for name in planning.due}  # a retry that R7 has held up
    planning = changed(planning, steps={**planning.steps, **held}, due=())
    return changed(
        applied(planning, event.operations, state.seen, event.strategy.type),
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


def _signed(planning: Planning, event: plan_events.PlanSigned) -> Planning:
    match event.decision:
        case "approved":
            return changed(planning, signed=event.version)
        case "rejected":
            return changed(planning, rejected_by=event.by)
        case "revise":
            noted = (*planning.noted, event.note)
            if planning.edits:  # what has run stays: the note is answered by another repair of the plan
                first = plan_events.RunReflected(
                    "replan", BLOCKED, ReflectionResult()
                )  # of a repair that nobody has reflected on
                anew = replace((first, *planning.reflections)[-1], strategy=FullReplan())
                return changed(planning, noted=noted, phase="redecomposing", strategy=anew, **_DECIDED)
            return changed(planning, noted=noted, phase="decomposing", plan=None, **_DECIDED)
        case _:
            assert_never(event.decision)


def _step_reflected(planning: Planning, event: plan_events.StepReflected) -> Planning:
    record, name = planning.steps[event.step_id], event.step_id
    record = replace(record, reflected=(*record.reflected, event))
    if event.decision == "escalate":
        escalation = planning.escalation or Escalation(name, record.cause)
        return with_record(planning, record, queue=(), escalation=escalation, **_DECIDED)
    step = record.step
    if event.parameters is not None:
        marked = step.unanchored or event.unanchored
        step = replace(step, tool_id=event.tool_id or step.tool_id, parameters=event.parameters, unanchored=marked)
    elif event.instruction:
        step = replace(step, instruction=event.instruction)
    record = replace(record, step=step, status="pending", due="retry")
    queue, stats = tuple(one for one in planning.queue if one != name), counted(planning, step_retries=1)
    return with_record(planning, record, queue=queue, due=(*planning.due, name), stats=stats, **_DECIDED)


def _run_reflected(planning: Planning, event: plan_events.RunReflected) -> Planning:
    told = changed(planning, reflections=(*planning.reflections, event), **_DECIDED)
    if event.decision == "stop":
        return changed(told, stop=event)
    told = changed(
        told,
        idle_rounds=idle_rounds(planning, event.cause),
        tried_open=planning.tried_open | {open_part(planning)},
        seen_causes=planning.seen_causes | {plain_cause(event.cause)},
    )
    if event.strategy is None or not needs_planning(event.strategy):
        return told
    return changed(told, strategy=event, phase="reselecting", shortlist=None)


def taken_up(
    planning: Planning | None, config: LoopConfig, speakers: Mapping[str, Speaker], *, has_ended: bool
) -> Planning | None:
    """The planning when somebody takes the run up again; `speakers` are those who speak from now on, by role.

    What was cancelled may run, and what is in doubt is asked about. A run that had ended is thought about anew; after
    a crash all that was decided still holds.
    """
    if planning is None:
        return None
    plan = config.plan or planning.config
    steps = dict(planning.steps)
    loops = loops_of(config, plan)
    children = {name: _anew(child, loops, speakers) for name, child in planning.children.items()}
    for name, record in planning.steps.items():
        if record.status in ("cancelled", "in_doubt"):
            steps[name] = replace(record, status="pending" if record.status == "cancelled" else "running")
    laid = laid_out(planning, steps, planning.order) if steps != planning.steps else planning
    taken = changed(laid, config=plan, loops=loops, children=children)
    return changed(taken, stop=None, rejected_by="", answer=None, tries=Tries()) if has_ended else taken


def _anew(child: State, loops: Loops, speakers: Mapping[str, Speaker]) -> State:
    """A step's own state when the run is taken up: failures and doubts are open again, for whoever speaks now."""

    def anew(call: Call) -> Call:
        is_doubtful = call.doubt == "unknown" or (call.result is not None and call.result.kind == "in_doubt")
        return changed(call, result=None, doubt="") if is_doubtful else call

    child, step = child.with_calls(anew), child.running_step
    config = loop_of(loops, step) if step is not None else child.config
    now = {role: goes_on(kept, speakers.get(role)) for role, kept in child.speakers.items()}
    return in_words(changed(child, config=config, speakers=now, failure=None, ending=None, heads={}))


def in_children(planning: Planning, change: Callable[[State], State]) -> Planning:
    """The planning with a change in the states of its running steps."""
    return changed(planning, children={name: change(child) for name, child in planning.children.items()})
