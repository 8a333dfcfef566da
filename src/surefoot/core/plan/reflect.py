"""What follows from a proposal, and from there being none: events that say why. Models propose; rules dispose.

A reflection on a step (R6) leads to a retry or to the run; one on the run (R8) stops it or repairs its plan. R16: a
reply without a whole JSON object is asked for again, and then: a step's reflection escalates, an overall reflection
ends the run, a selection takes its fallback, a plan fails. Source: seed 004; spec/planning.md, sections 3, 4, 6, 7, 11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from surefoot.core.plan import accept, forms
from surefoot.core.plan.child import references_in
from surefoot.core.plan.choose import fallback, selection_given
from surefoot.core.plan.edits import edit_of, needs_planning
from surefoot.core.state.plans import StepRecord
from surefoot.core.state.repeats import fingerprint
from surefoot.core.state.state import Planning, State
from surefoot.core.text import json_text
from surefoot.core.text.json import as_object
from surefoot.types import reflection
from surefoot.types.events import Event
from surefoot.types.outcomes import Failed
from surefoot.types.plan_events import PlanEdited, ProposalMade, ProposalRefused, RunReflected, StepReflected

_DISPUTED = 25  # per cent between the model's figure of completion and the engine's
_VARYING = re.compile(r"(?:0x)?[0-9a-f]{6,}|[0-9]+", re.IGNORECASE)
_AGREEING: Mapping[str, str] = {"parameter_error": "retry_with_params", "tool_error": "retry_with_tool"}


def decided(state: State, planning: Planning, proposal: ProposalMade) -> tuple[Event, ...]:
    """What is put on record about a proposal."""
    given = forms.decision_in(proposal.message.content, proposal.kind)
    if given is None:
        return (ProposalRefused(proposal.kind, forms.MALFORMED, proposal.kind, proposal.about),)
    match proposal.kind:
        case "select_initial" | "select_corrective":
            return selection_given(state, planning, given)
        case "decompose":
            return (accept.plan_given(state, planning, given, by=proposal.by),)
        case "step_reflection":
            return step_reflected(state, planning, proposal.about, given)
        case "overall_reflection":
            return run_reflected(state, planning, given)


def after_all_tries(state: State, planning: Planning, about: str) -> tuple[Event, ...] | Failed | None:
    """What follows when proposals have come to nothing as often as they may; None while another may be asked for."""
    malformed, refused = planning.tries
    most_malformed, most_refused = planning.config.llm_repairs, planning.config.reasks
    told = planning.refusal.detail if planning.refusal is not None else ""
    if planning.phase in ("decomposing", "redecomposing"):
        return Failed("invalid_plan", told) if malformed + refused > most_malformed else None
    if planning.phase == "selecting" and refused:
        return fallback(state, planning)  # it is not asked for again
    if malformed <= most_malformed and refused <= most_refused:
        return None
    if planning.phase in ("selecting", "reselecting"):
        return fallback(state, planning)
    if about:
        why = "malformed" if malformed > most_malformed else "refused"
        return (StepReflected(about, planning.steps[about].attempt, "escalate", why=why),)
    if malformed > most_malformed:
        return Failed("reflection_unparseable", "no reply of an overall reflection could be read")
    return Failed("invalid_strategy", told)


def step_reflected(
    state: State, planning: Planning, step_id: str, given: forms.Object
) -> tuple[ProposalRefused | StepReflected, ...]:
    """A retry, an escalation, or a refusal, after which it is asked again; of what was made before, too (8, a)."""
    record, step = planning.steps[step_id], planning.steps[step_id].step
    suggested = as_object(given.get("suggested_action")) or {}
    name, data = forms.text_of(suggested.get("type")), suggested.get("data")
    new = as_object(data) or {}

    def refused(what: str, detail: str) -> tuple[ProposalRefused]:
        return (ProposalRefused("step_reflection", what, detail[: accept.LONGEST_FAULT], step_id),)

    action: reflection.StepAction
    match name:
        case "trigger_overall_reflection":
            return (_decision(record, given, reflection.TriggerOverallReflection(forms.text_of(data))),)
        case "replan_entire_task":
            return (
                *refused("step_cannot_replan", step_id),
                _decision(record, given, reflection.ReplanEntireTask(forms.text_of(data))),
            )
        case "retry_with_params" if not new:
            return refused("empty_params", step_id)
        case "retry_with_params" if step.kind != "tool":
            instruction = forms.text_of(new.get("instruction"))
            if not instruction.strip():
                return refused("empty_params", step_id)
            if fingerprint(step.kind, instruction) in planning.failed_calls:
                return refused("repeat_failure", f"{step_id}:{step.kind}")
            return (
                replace(_decision(record, given, reflection.RetryWithAdjustedParams(new)), instruction=instruction),
            )
        case "retry_with_params":
            merged = {**step.parameters, **new}
            made = {key: value for key, value in merged.items() if value is not None or key not in new}
            action, tool_id = reflection.RetryWithAdjustedParams(new), step.tool_id
        case "retry_with_tool" if step.kind == "tool":
            new = new or {"tool_id": data}
            tool_id, parameters = forms.text_of(new.get("tool_id")), as_object(new.get("parameters"))
            if state.tools.get(tool_id) is None:
                return refused("unknown_tool", tool_id)
            if planning.selected is not None and tool_id not in planning.selected:
                return refused("tool_not_selected", tool_id)
            made = dict(parameters if parameters is not None else step.parameters)
            action = reflection.RetryWithAlternativeTool(tool_id, parameters)
        case _:
            return refused("unknown_action", name)
    before = accept.made_before(planning, state.tools, tool_id, made)
    if "failed" in before:
        return refused("repeat_failure", f"{step_id}:{tool_id}")
    if before:
        return refused("repeats_completed_call", f"{step_id}:{tool_id}")
    unanchored = accept.marked(state, planning, replace(step, tool_id=tool_id, parameters=made)).unanchored
    told = _decision(record, given, action)
    return (replace(told, tool_id=tool_id, parameters=made, unanchored=unanchored),)


def _decision(record: StepRecord, given: forms.Object, action: reflection.StepAction) -> StepReflected:
    """The decision about a step, with what in its reflection contradicts the action, which decides."""
    thought = forms.read_form(reflection.StepReflection, forms.STEP_REFLECTION, given, suggested_action=action)
    category, notes = thought.root_cause_category, list[str]()
    if category is not None and _AGREEING.get(category, "trigger_overall_reflection") != action.type:
        notes.append(f"{category} beside {action.type}")
    is_retry = action.type.startswith("retry")
    if thought.is_recoverable != is_retry:
        notes.append(f"is_recoverable={str(thought.is_recoverable).lower()} beside {action.type}")
    name, decision = record.step.step_id, "retry" if is_retry else "escalate"
    return StepReflected(name, record.attempt, decision, thought, notes=tuple(notes))


def run_reflected(
    state: State, planning: Planning, given: forms.Object
) -> tuple[ProposalRefused | RunReflected | PlanEdited, ...]:
    """R8, in its order, also when the model is asked again: stop, or one of the five strategies."""
    assert planning.escalation is not None  # noqa: S101  # it is asked for because of one
    cause = planning.escalation.cause
    proposed = given.get("replanning_strategy")
    read = forms.strategy_of(proposed)
    own = None if read == "unknown" else read
    thought = forms.read_form(reflection.ReflectionResult, forms.OVERALL_REFLECTION, given, replanning_strategy=own)
    refused: tuple[ProposalRefused, ...] = ()
    pending = [n for n in planning.open_steps if planning.steps[n].step.must_succeed]
    config = planning.config
    is_repeated = thought.repeated_failure or cause in planning.answered
    is_enough = thought.completion_percent >= config.completion_threshold
    if is_enough and pending and not is_repeated:
        refused = (ProposalRefused("overall_reflection", "must_succeed_pending", ",".join(pending)),)
    percent = planning.completion_percent
    is_disputed = abs(percent - thought.completion_percent) >= _DISPUTED
    stops = {
        "repeated_failure": is_repeated,
        "completion_threshold": is_enough and not pending,
        "external_error": thought.problem_class in ("external", "server"),
        "reflector_stop": not thought.should_replan,
        "replan_budget": config.max_replans is not None and planning.stats.replans >= config.max_replans,
        "no_progress": idle_rounds(planning, cause) >= config.no_progress_rounds,
    }
    if reason := next((name for name, applies in stops.items() if applies), ""):
        reason = "evaluation" if cause[0] == "evaluation" else reason
        ending = "completed_partial" if reason in ("evaluation", "completion_threshold") else "stopped"
        return (*refused, RunReflected("stop", cause, thought, ending, reason, None, percent, is_disputed))
    if read == "unknown":
        members = as_object(proposed)
        name = forms.text_of(proposed if members is None else members.get("type"))
        return (*refused, _invalid([f"unknown_strategy:{name}"]))
    strategy = read if read is not None else reflection.FullReplan()
    # The edit of a strategy, held to its own rules and, as any draft, to those of R1; or all that is wrong with it.
    draft = forms.suggested_steps(proposed) if isinstance(strategy, reflection.AddRemediationSteps) else ()
    faults = accept.draft_faults(planning, draft, state.tools) if draft else []
    edit = edit_of(planning, strategy)
    if len(draft) <= planning.config.max_steps:
        unreadable = [f"bad_kind:{one.step_id}" for one in draft if one.step is None]
        faults = [*edit.faults, *faults, *unreadable]
        if not (edit.faults or unreadable or needs_planning(strategy)):
            faults += accept.edit_faults(state, planning, edit.operations)
    if faults:
        return (*refused, _invalid(tuple(dict.fromkeys(faults))))
    told = RunReflected("replan", cause, thought, "", "", strategy, percent, is_disputed)
    if needs_planning(strategy):
        return (*refused, told)
    return (*refused, told, accept.edited(state, planning, strategy, edit.operations))


def _invalid(faults: Sequence[str]) -> ProposalRefused:
    return ProposalRefused("overall_reflection", "invalid_strategy", accept.faults_text(faults))


def idle_rounds(planning: Planning, cause: reflection.Cause) -> int:
    """Rounds in a row without progress, with this one counted in. Source: spec/planning.md, section 11."""
    is_new_plan = open_part(planning) not in planning.tried_open
    is_new_cause = plain_cause(cause) not in planning.seen_causes
    has_progress = is_new_plan and (planning.has_moved or is_new_cause)
    return 0 if has_progress else planning.idle_rounds + 1


def plain_cause(cause: reflection.Cause) -> reflection.Cause:
    """A cause in whose code times, ids and numbers do not count."""
    return cause[0], cause[1], _VARYING.sub("#", cause[2])


def open_part(planning: Planning) -> str:
    """What is still to be done, with ids and wording aside."""
    places = {name: str(at) for at, name in enumerate(planning.open_steps)}
    parts: list[object] = []
    for name in planning.open_steps:
        step = planning.steps[name].step
        text = json_text(step.parameters, sort_keys=True)
        for one in references_in(step.parameters):
            text = text.replace(one.text, f"<{places.get(one.step_id, 'done')}.{'.'.join(one.path)}>")
        needs = sorted(places[needed] for needed in step.dependencies if needed in places)
        parts.append([step.kind, step.tool_id, sorted(step.allowed_tools), text, needs])
    return sha256(json_text(parts).encode("utf-8", "replace")).hexdigest()
