"""What follows from a reflection: on a step (R6), and on the run (R8). Models propose; these rules dispose.

Source: seed 004; spec/planning.md, sections 6, 7 and 11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Literal

from surefoot.core.fingerprint import fingerprint
from surefoot.core.plan.accept import LONGEST_FAULT, draft_faults, listed, made_before
from surefoot.core.plan.dag import Planning, StepRecord
from surefoot.core.plan.edits import Edit, edit_of, needs_planning
from surefoot.core.plan.planned import edit_faults, edited, marked
from surefoot.core.plan.reading import (
    Object,
    is_true,
    object_of,
    percent_of,
    reflection_result,
    root_cause_of,
    strategy_name,
    strategy_of,
    suggested_steps,
    text_of,
    texts_of,
)
from surefoot.core.plan.references import references_in
from surefoot.core.state import State
from surefoot.core.text import json_text
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.plan_events import PlanEdited, ProposalRefused, RunReflected, StepReflected
from surefoot.types.reflection import (
    AddRemediationSteps,
    Cause,
    FullReplan,
    ReflectionResult,
    ReplanEntireTask,
    ReplanningStrategy,
    RetryWithAdjustedParams,
    RetryWithAlternativeTool,
    StepAction,
    StepReflection,
    TriggerOverallReflection,
)

_DISPUTED = 25
"""Per cent between the model's figure of completion and the engine's."""

_VARYING = re.compile(r"(?:0x)?[0-9a-f]{6,}|[0-9]+", re.IGNORECASE)

_AGREEING: Mapping[str, str] = {"parameter_error": "retry_with_params", "tool_error": "retry_with_tool"}


# ------------------------------------------------------------------ of a step


@dataclass(frozen=True, slots=True)
class _Refused:
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class _Retry:
    tool_id: str
    parameters: dict[str, object]
    instruction: str


def step_reflected(
    state: State, planning: Planning, step_id: str, given: Object
) -> tuple[ProposalRefused | StepReflected, ...]:
    """What follows from a reflection on a step: a retry, an escalation, or a refusal for which it is asked again."""
    record = planning.steps[step_id]
    suggested = object_of(given.get("suggested_action")) or {}
    name = text_of(suggested.get("type"))
    data = suggested.get("data")
    match name:
        case "trigger_overall_reflection":
            return (_told(record, given, TriggerOverallReflection(text_of(data)), None),)
        case "replan_entire_task":
            refused = ProposalRefused("step_reflection", "step_cannot_replan", step_id, step_id)
            return (refused, _told(record, given, ReplanEntireTask(text_of(data)), None))
        case "retry_with_params":
            action, made = _adjusted(record, object_of(data))
        case "retry_with_tool" if record.step.kind == "tool":
            action, made = _exchanged(state, planning, record, object_of(data) or {"tool_id": data})
        case _:
            action, made = None, _Refused("unknown_action", name)
    if isinstance(made, _Retry):
        made = _repeated(state, planning, record, made) or made
    if isinstance(made, _Refused) or action is None:
        assert isinstance(made, _Refused)  # noqa: S101  # without an action there is a reason
        return (ProposalRefused("step_reflection", made.what, made.detail[:LONGEST_FAULT], step_id),)
    told = _told(record, given, action, made)
    if record.step.kind != "tool":
        return (told,)
    retried = replace(record.step, tool_id=made.tool_id, parameters=made.parameters)
    return (replace(told, unanchored=marked(state, planning, retried).unanchored),)


def _adjusted(record: StepRecord, data: Object | None) -> tuple[StepAction | None, _Retry | _Refused]:
    step = record.step
    if not data:
        return None, _Refused("empty_params", step.step_id)
    if step.kind != "tool":
        instruction = text_of(data.get("instruction"))
        if not instruction.strip():
            return None, _Refused("empty_params", step.step_id)
        return RetryWithAdjustedParams(data), _Retry("", {}, instruction)
    merged = {key: value for key, value in {**step.parameters, **data}.items() if value is not None or key not in data}
    return RetryWithAdjustedParams(data), _Retry(step.tool_id, merged, "")


def _exchanged(
    state: State, planning: Planning, record: StepRecord, data: Object
) -> tuple[StepAction | None, _Retry | _Refused]:
    tool_id = text_of(data.get("tool_id"))
    if state.tools.get(tool_id) is None:
        return None, _Refused("unknown_tool", tool_id)
    if planning.selected is not None and tool_id not in planning.selected:
        return None, _Refused("tool_not_selected", tool_id)
    given = object_of(data.get("parameters"))
    parameters = dict(given if given is not None else record.step.parameters)
    return RetryWithAlternativeTool(tool_id, given), _Retry(tool_id, parameters, "")


def _repeated(state: State, planning: Planning, record: StepRecord, retry: _Retry) -> _Refused | None:
    """Why a proposed call is refused: it was made before in this run, in vain or with its effect (section 8, a)."""
    step = record.step
    if step.kind != "tool":
        has_failed = fingerprint(step.kind, retry.instruction) in planning.failed_calls
        return _Refused("repeat_failure", f"{step.step_id}:{step.kind}") if has_failed else None
    before = made_before(planning, state.tools, retry.tool_id, retry.parameters)
    if "failed" in before:
        return _Refused("repeat_failure", f"{step.step_id}:{retry.tool_id}")
    return _Refused("repeats_completed_call", f"{step.step_id}:{retry.tool_id}") if "completed" in before else None


def _told(record: StepRecord, given: Object, action: StepAction, retry: _Retry | None) -> StepReflected:
    category = root_cause_of(given.get("root_cause_category"))
    reflection = StepReflection(
        action,
        text_of(given.get("history_review")),
        text_of(given.get("error_analysis")),
        text_of(given.get("proposal")),
        category,
        text_of(given.get("root_cause")),
        is_true(given.get("is_recoverable")),
        percent_of(given.get("confidence")),
        text_of(given.get("analysis")),
        texts_of(given.get("alternative_solutions")),
    )
    notes = _contradictions(reflection)
    if retry is None:
        return StepReflected(record.step.step_id, record.attempt, "escalate", reflection, notes=notes)
    return StepReflected(
        record.step.step_id,
        record.attempt,
        "retry",
        reflection,
        retry.tool_id,
        retry.parameters if record.step.kind == "tool" else None,
        retry.instruction,
        notes=notes,
    )


def _contradictions(reflection: StepReflection) -> tuple[str, ...]:
    """Where category, recoverability and action do not agree; the action decides."""
    action, category = reflection.suggested_action.type, reflection.root_cause_category
    found: list[str] = []
    if category is not None and _AGREEING.get(category, "trigger_overall_reflection") != action:
        found.append(f"{category} beside {action}")
    if reflection.is_recoverable != action.startswith("retry"):
        found.append(f"is_recoverable={str(reflection.is_recoverable).lower()} beside {action}")
    return tuple(found)


# ------------------------------------------------------------------ of the run

Stop = tuple[Literal["stopped", "completed_partial"], str]


def run_reflected(
    state: State, planning: Planning, given: Object
) -> tuple[ProposalRefused | RunReflected | PlanEdited, ...]:
    """R8, in its order, also when the model is asked again: stop, or one of the five strategies."""
    escalation = planning.escalation
    assert escalation is not None  # noqa: S101  # it is asked for because of one
    read = strategy_of(given.get("replanning_strategy"))
    reflection = reflection_result(given, None if read == "unknown" else read)
    refused: tuple[ProposalRefused, ...] = ()
    pending = [n for n in planning.open_steps if planning.steps[n].step.must_succeed]
    is_enough = reflection.completion_percent >= planning.config.completion_threshold
    if is_enough and pending and not _is_repeated(planning, escalation.cause, reflection):
        refused = (ProposalRefused("overall_reflection", "must_succeed_pending", ",".join(pending)),)
    stop = _stop(planning, escalation.cause, reflection, is_enough=is_enough and not pending)
    if stop is not None:
        return (*refused, _reflected(planning, escalation.cause, reflection, stop, None))
    if read == "unknown":
        name = strategy_name(given.get("replanning_strategy"))
        return (*refused, _invalid([f"unknown_strategy:{name}"]))
    strategy = read if read is not None else FullReplan()
    edit = _edit(state, planning, strategy, given.get("replanning_strategy"))
    if edit.faults:
        return (*refused, _invalid(edit.faults))
    told = _reflected(planning, escalation.cause, reflection, None, strategy)
    if needs_planning(strategy):
        return (*refused, told)
    return (*refused, told, edited(state, planning, strategy, edit.operations))


def _edit(state: State, planning: Planning, strategy: ReplanningStrategy, proposed: object) -> Edit:
    """The edit of a strategy, held to its own rules and, as any draft, to those of R1; or all that is wrong with it."""
    draft = suggested_steps(proposed) if isinstance(strategy, AddRemediationSteps) else ()
    found = draft_faults(planning, draft, state.tools) if draft else []
    if len(draft) > planning.config.max_steps:
        return Edit(faults=tuple(found))
    found += [f"bad_kind:{one.step_id}" for one in draft if one.step is None]
    edit = edit_of(planning, strategy)
    faults = list(dict.fromkeys((*edit.faults, *found)))
    if not faults and not needs_planning(strategy):
        faults = edit_faults(state, planning, edit.operations)
    return Edit(faults=tuple(faults)) if faults else edit


def _is_repeated(planning: Planning, cause: Cause, reflection: ReflectionResult) -> bool:
    return reflection.repeated_failure or cause in planning.answered


def _stop(planning: Planning, cause: Cause, reflection: ReflectionResult, *, is_enough: bool) -> Stop | None:
    """The first row of R8 that ends the run."""
    partial = "completed_partial"
    is_evaluation = cause[0] == "evaluation"
    found: Stop | None = None
    if _is_repeated(planning, cause, reflection):
        found = ("stopped", "repeated_failure")
    elif is_enough:
        found = (partial, "completion_threshold")
    elif reflection.problem_class in ("external", "server"):
        found = ("stopped", "external_error")
    elif not reflection.should_replan:
        found = ("stopped", "reflector_stop")
    elif planning.config.max_replans is not None and planning.stats.replans >= planning.config.max_replans:
        found = ("stopped", "replan_budget")
    elif idle_rounds(planning, cause) >= planning.config.no_progress_rounds:
        found = ("stopped", "no_progress")
    return (partial, "evaluation") if found is not None and is_evaluation else found


def _reflected(
    planning: Planning,
    cause: Cause,
    reflection: ReflectionResult,
    stop: Stop | None,
    strategy: ReplanningStrategy | None,
) -> RunReflected:
    percent = planning.completion_percent
    return RunReflected(
        "stop" if stop is not None else "replan",
        cause,
        reflection,
        stop[0] if stop is not None else "",
        stop[1] if stop is not None else "",
        strategy,
        percent,
        abs(percent - reflection.completion_percent) >= _DISPUTED,
    )


def _invalid(faults: Sequence[str]) -> ProposalRefused:
    return ProposalRefused("overall_reflection", "invalid_strategy", listed(faults))


# ------------------------------------------------------------------ progress


def idle_rounds(planning: Planning, cause: Cause) -> int:
    """Rounds in a row without progress, with this one counted in. Source: spec/planning.md, section 11."""
    is_new_plan = open_part(planning) not in planning.tried_open
    is_new_cause = plain_cause(cause) not in planning.seen_causes
    has_progress = is_new_plan and (planning.has_moved or is_new_cause)
    return 0 if has_progress else planning.idle_rounds + 1


def plain_cause(cause: Cause) -> Cause:
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
