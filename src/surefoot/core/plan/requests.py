"""What a model is asked for a plan: the template, what stands below it, and what the reply has to be.

The user's words, the developer's and our own figures stand plain; all other text is data between marks.
Source: seed 004; spec/planning.md, sections 2 and 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import assert_never, get_args

from surefoot.core.parse.frames import attribute, plain
from surefoot.core.plan.child import UnresolvedError, resolved
from surefoot.core.plan.choose import listed_names, previous_tools
from surefoot.core.plan.edits import superseded_by
from surefoot.core.plan.history import (
    cause_words,
    clipped,
    current_round,
    fields_of,
    framed,
    guidance_text,
    history,
    refusal_words,
    safe_name,
    suggestion_words,
    title_of,
)
from surefoot.core.plan.schemas import is_small, schema_for
from surefoot.core.state.plans import BLOCKED
from surefoot.core.state.state import Planning, State, subset
from surefoot.core.text import json_text
from surefoot.core.text.json import as_object
from surefoot.core.view.shape import required_only
from surefoot.types import reflection
from surefoot.types.dataclass import dataclass
from surefoot.types.plan import PlanStep, ProposalKind, StepExecutionResult
from surefoot.types.selection import ReplanningToolSelectionContext
from surefoot.types.task import Task
from surefoot.types.tools import ToolSpec, Trust

REDECOMPOSE = "plan/redecompose"
PLAN_TEMPLATES: tuple[str, ...] = (*(f"plan/{kind}" for kind in get_args(ProposalKind)), REDECOMPOSE)
"""The templates, by the names under which they are files and stand in a run's record."""

_DATA: Trust = "untrusted"
_BYTES_A_TOKEN = 4
_LONGEST_STEP = 4_000
_LONGEST_PLAN = 12_000
_LONGEST_TOOLS = 60_000
_MOST_REPEATS = 20
_LONGEST_CALL = 200


@dataclass(frozen=True, slots=True)
class PlanPrompt:
    """One request: its template by name, the user message, and the JSON Schema of the reply."""

    template: str
    text: str
    schema: Mapping[str, object]


def prompt_for(state: State, planning: Planning, kind: ProposalKind, about: str) -> PlanPrompt:
    """What is asked now. `about` is the step of a step's reflection."""
    is_again = kind == "decompose" and planning.phase == "redecomposing"
    match kind:
        case "select_initial":
            anchor = state.gate.known.words.anchor if state.gate is not None else None
            sketch = anchor.sketch.steps if anchor is not None and anchor.sketch is not None else ()
            steps = _lines(plain(attribute(one.description or one.step_type)) for one in sketch)
            effects = ", ".join(sorted(anchor.effects_asked)) if anchor is not None else ""
            own = [f"Effects that the words ask for: {effects}"] if effects else []
            own += [f"Sketch of the steps:\n{steps}"] if steps else []
            own.append(_tool_list(state, planning))
        case "decompose" if is_again:
            own = _again(state, planning)
        case "decompose":
            kind_of_task = planning.selection.task_type if planning.selection is not None else "general"
            known = [] if kind_of_task == "general" else [f"Kind of task: {attribute(clipped(kind_of_task, 40))}"]
            own = [*known, _declared(state, planning), *_notes(planning), *_used_ids(planning)]
        case "step_reflection":
            own = _of_step(state, planning, about)
        case "overall_reflection":
            own = _of_run(state, planning)
        case "select_corrective":
            context = selection_context(state, planning)
            trust = planning.words_trust
            used = [
                f"{attribute(one.tool_id)}: {one.execution_status}; {one.execution_summary}"
                for one in context.previous_tools
            ]
            failed = [one for one in context.previous_tools if one.failure_reason]
            why = "\n".join(f"{one.tool_id}: {one.failure_reason}" for one in failed)
            advice = "\n".join(
                part for part in (context.reflection_analysis, context.overall_reflection_guidance) if part
            )
            own = [
                f"What happened so far:\n{context.execution_history}",
                f"Tools chosen before:\n{_lines(used) or 'none'}",
                *([f"Why they failed:\n{framed(state, why, 'calls of tools', 'untrusted', 2_000)}"] if why else []),
                f"Advice of the reflection:\n{framed(state, advice, 'a reflection', trust, 3_000)}",
                _tool_list(state, planning),
                *_notes(planning),
            ]
        case _:
            assert_never(kind)
    parts = [*_of_task(state, planning), *own]
    if planning.refusal is not None and planning.refusal.kind == kind:
        parts.append(refusal_words(planning.refusal))
    parts.append("Reply with the JSON object alone.")
    template = REDECOMPOSE if is_again else f"plan/{kind}"
    return PlanPrompt(template, "\n\n".join(parts), schema_for(state, planning, kind, about))


def _of_task(state: State, planning: Planning) -> list[str]:
    task = state.task or Task("")
    context = task.context
    earlier = [line for one in state.earlier for line in (f"Asked: {one.task.text}", f"Answered: {one.answer}")]
    earlier += [f"Asked besides: {text}" for at, text in state.notes if at <= state.begun]
    materials: list[tuple[str, str, Trust]] = [
        *((f"attachment {one.name}", one.text, one.trust) for one in task.attachments),
        *(
            (f"document {one.name}", "\n".join((*filter(None, [one.description]), one.content)), _DATA)
            for one in context.documents
        ),
        *([("references", state.hydrated.message, _DATA)] if state.hydrated and state.hydrated.message else []),
        *((f"conventions {one.directory}", one.message, _DATA) for one in state.conventions if one.message),
        *(
            [("earlier conversation", text, _DATA)]
            if (text := "\n".join((*earlier, *context.conversation_history)))
            else []
        ),
    ]
    if context.additional_info:
        materials.append(("metadata", json_text(context.additional_info), "trusted"))
    most = planning.config.history_max_tokens * _BYTES_A_TOKEN // max(1, len(materials))
    return [
        *([f"Instructions:\n{state.instructions}"] if state.instructions else []),
        f"Task:\n{task.text}",
        *([f"The user has said since:\n{_lines(state.notes_of_run)}"] if state.notes_of_run else []),
        *([f"User preferences:\n{_lines(context.user_preferences)}"] if context.user_preferences else []),
        *(framed(state, text, source, trust, most) for source, text, trust in materials),
    ]


def _notes(planning: Planning) -> list[str]:
    """What a person has said about a plan: words of the user."""
    return [f"The user has rejected the last plan and says:\n{_lines(planning.noted)}"] if planning.noted else []


def _tool_list(state: State, planning: Planning) -> str:
    """Tools to choose from: id, category, what each does, and the names of its parameters."""

    def tell(tool: ToolSpec) -> Mapping[str, object]:
        category = {"category": tool.category} if tool.category else {}
        names = list(as_object(tool.parameters.get("properties")) or ())
        return {"tool_id": tool.name, **category, "does": tool.description, "parameters": names}

    return _of_tools(state, listed_names(state, planning), "Tools to choose from", tell)


def _declared(state: State, planning: Planning) -> str:
    """The selected tools with the schemas of their parameters, and the fields of their results where declared."""

    def tell(tool: ToolSpec) -> Mapping[str, object]:
        given = list(as_object((tool.output or {}).get("properties")) or ())
        result = {"result": given} if given else {}
        return {"tool_id": tool.name, "does": tool.description, "parameters": tool.parameters, **result}

    names = planning.selected if planning.selected is not None else state.offered.names
    return _of_tools(state, names, "Tools", tell)


def _of_tools(state: State, names: Sequence[str], title: str, tell: Callable[[ToolSpec], Mapping[str, object]]) -> str:
    """One line of JSON for each tool; the words of foreign servers stand in frames."""
    tools = subset(state.tools, tuple(names))
    if is_small(state):
        tools = tools.derived("required_only", required_only)
    lines: dict[str, list[str]] = {}
    for tool in tools.tools:
        server = (tool.server or "another place") if tool.is_foreign else ""
        lines.setdefault(server, []).append(json_text(tell(tool)))
    shown = [
        framed(state, "\n".join(some), f"tools of {server}", _DATA, _LONGEST_TOOLS) if server else "\n".join(some)
        for server, some in lines.items()
    ]
    return "\n".join((f"{title}:", *(shown or ["none"])))


def reflection_context(state: State, planning: Planning, step_id: str) -> reflection.ReflectionContext:
    """What a reflection on a failed step is made from."""
    record = planning.steps[step_id]
    failed = record.result or StepExecutionResult(step_id, record.step.kind)
    done = tuple(one.result for one in planning.steps.values() if one.status == "succeeded" and one.result is not None)
    words = state.task.text if state.task is not None else ""
    return reflection.ReflectionContext(words, done, failed, history(state, planning, step_id), planning.stats)


def overall_context(state: State, planning: Planning) -> reflection.OverallReflectionContext:
    """What an overall reflection is made from."""
    failed = [one for one in planning.evaluations if not one.passed]
    return reflection.OverallReflectionContext(
        history(state, planning),
        planning.stats.replans,
        current_round(planning),
        planning.original,
        "\n".join(f"{one.name}: not passed. {one.note}".strip() for one in failed),
        tuple(sorted(planning.answered)),
    )


def selection_context(state: State, planning: Planning) -> ReplanningToolSelectionContext:
    """What a corrective selection is made from."""
    reflected = planning.strategy or (planning.reflections[-1] if planning.reflections else None)
    analysis = reflected.reflection.diagnosis if reflected is not None else ""
    told = history(state, planning, advice=False)
    return ReplanningToolSelectionContext(previous_tools(planning), told, analysis, _last_guidance(planning))


def _last_guidance(planning: Planning) -> str:
    newest = planning.reflections[-1].reflection if planning.reflections else None
    return guidance_text(reflection.OverallReflectionGuidance.of(newest) if newest is not None else None)


def _of_step(state: State, planning: Planning, about: str) -> list[str]:
    context, record = reflection_context(state, planning, about), planning.steps[about]
    step, failed = record.step, context.failed_step
    told: list[str] = [f"step: {json_text(_shown_step(step))}"]
    if step.kind == "tool":
        try:
            values = json_text(resolved(step.parameters, planning))
        except UnresolvedError as missing:
            values = str(missing)
        told.append(f"parameters with their values: {values}")
    for one in record.failures:
        error = one.error
        with_ = f" with {json_text(one.parameters)}" if one.parameters else ""
        told.append(f"attempt {one.attempt}{with_}: " + (f"{error.cls} {error.code}: {error.message}" if error else ""))
        thought = next((after.reflection for after in record.reflected if after.attempt == one.attempt), None)
        if thought is not None:
            told.append(f"then: {thought.suggested_action.type}, because {thought.root_cause}")
    trust = "untrusted" if "untrusted" in (failed.trust, planning.words_trust) or failed.error else "trusted"
    cls = failed.error.cls if failed.error is not None else "unknown"
    text = "\n".join(clipped(one, _LONGEST_STEP) for one in told)
    return [
        f"What happened so far:\n{context.execution_history}",
        _declared(state, planning),
        f"The failed step is {safe_name(about)}, at attempt {record.attempt}; the class of its error is {cls}:\n"
        + framed(state, text, f"step {safe_name(about)}", trust, 3 * _LONGEST_STEP),
    ]


def _of_run(state: State, planning: Planning) -> list[str]:
    context, trust = overall_context(state, planning), planning.words_trust
    escalation = planning.escalation
    cause = escalation.cause if escalation is not None else BLOCKED
    at = f" at step {safe_name(escalation.step_id)}" if escalation is not None and escalation.step_id else ""
    answered = [cause_words(one) for one in context.causes_already_replanned]
    current = [planning.steps[name].step for name in planning.live]
    plans = [("Plan at first", context.original_plan)] if planning.version > 1 and context.original_plan else []
    parts = [f"What happened so far:\n{context.execution_history}"]
    for title, steps in (*plans, ("Plan now", current)):
        text = "\n".join(json_text(_shown_step(step)) for step in steps)
        parts.append(f"{title}:\n{framed(state, text, 'the plan', trust, _LONGEST_PLAN)}")
    if context.evaluation:
        parts.append(f"Evaluation:\n{framed(state, context.evaluation, 'evaluators', trust, 1_000)}")
    parts.append("Causes for which the plan was repaired before: " + ("; ".join(answered) or "none"))
    return [*parts, f"Why the run is thought about{at}: {cause_words(cause)}"]


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _shown_step(step: PlanStep) -> dict[str, object]:
    """A step as a plan has it, without what says nothing."""
    own = {"tool_id": step.tool_id, "parameters": step.parameters} if step.kind == "tool" else {}
    words = {} if step.kind == "tool" else {"instruction": step.instruction}
    return {
        "step_id": step.step_id,
        **({"step_name": step.step_name} if step.step_name else {}),
        "kind": step.kind,
        **own,
        **words,
        "dependencies": list(step.dependencies),
        **({"must_succeed": True} if step.must_succeed else {}),
    }


def _again(state: State, planning: Planning) -> list[str]:
    strategy = planning.strategy.strategy if planning.strategy is not None else None
    out = frozenset(superseded_by(planning, strategy)) if strategy is not None else frozenset(planning.open_steps)
    trust = planning.words_trust
    kept = [planning.steps[name] for name in planning.live if name not in out]
    lines = [f"{title_of(one)}{fields_of(one) if one.is_done else ''}" for one in kept]
    records = [planning.steps[name] for name in planning.order]  # the calls with their effect, and those that failed
    done = [f"done: {effect}" for record in records for effect in record.effects]
    for record in records:
        spec, result = state.tools.get(record.step.tool_id), record.result
        if spec is not None and not spec.may_repeat and result is not None and result.is_success:
            done.append(f"done: {result.tool_id} {json_text(result.parameters)}")
    failures = (one for record in records for one in record.failures if one.tool_id)
    failed = (f"failed: {one.tool_id} {json_text(one.parameters)}" for one in failures)
    calls = list(dict.fromkeys((*done, *failed)))[:_MOST_REPEATS]
    joined = "\n".join(clipped(one, _LONGEST_CALL) for one in calls)
    wanted = "all that is still missing for the task"
    if isinstance(strategy, reflection.AddRemediationSteps):
        words = _lines(suggestion_words(one) for one in strategy.suggestions if isinstance(one, str))
        words = framed(state, words, "a reflection", trust, 2_000)
        wanted = f"only the steps that do this, put in before or after steps that stay:\n{words}"
    elif isinstance(strategy, reflection.ReplanFromStep):
        wanted = f"what takes the place of the steps {_ids(name for name in planning.order if name in out)}"
    advice = _last_guidance(planning)
    cause = planning.escalation.cause if planning.escalation is not None else None
    return [
        f"What happened so far:\n{history(state, planning, advice=False)}",
        *([f"Why the plan has to change: {cause_words(cause)}"] if cause is not None else []),
        f"Advice of the reflection:\n{framed(state, advice, 'a reflection', trust, 3_000)}",
        _declared(state, planning),
        f"Steps that stay:\n{_lines(lines) or 'none'}",
        *_used_ids(planning),
        *([f"Calls not to make again:\n{framed(state, joined, 'calls', trust, 4_000)}"] if joined else []),
        *_notes(planning),
        f"Plan now: {wanted}",
    ]


def _used_ids(planning: Planning) -> list[str]:
    return [f"Step ids that were used before, so take others: {_ids(planning.order)}"] if planning.order else []


def _ids(names: Iterable[str]) -> str:
    """Ids of steps, which are of a model's making, in plain text."""
    return ", ".join(safe_name(name) for name in names)
