"""What happens to a plan and its steps, as lines for a person."""

from __future__ import annotations

from typing import assert_never

from surefoot.cli.lines import Style, brief_parameters, count
from surefoot.core.plan.edits import needs_planning
from surefoot.core.state.state import State
from surefoot.core.text import json_text
from surefoot.types.events import ToolsShortlisted
from surefoot.types.plan import Operation, PlanStep
from surefoot.types.plan_events import (
    Escalated,
    PlanEdited,
    PlanEvent,
    PlanMade,
    PlanSigned,
    ProposalMade,
    ProposalRefused,
    ReasoningStepCompleted,
    ReasoningStepViolated,
    RunEvaluated,
    RunReflected,
    StepEnded,
    StepEvent,
    StepReflected,
    StepSkipped,
    StepStarted,
)

_SIGNED = {"approved": "signed", "rejected": "rejected", "revise": "sent back"}

Told = list[tuple[str, Style]]


def plan_lines(event: PlanEvent | ToolsShortlisted) -> Told:
    """The lines of one event."""
    match event:
        case ProposalMade(by=by):
            return [] if by == "model" else [("a plan was given", "dim")]
        case ToolsShortlisted(names):
            return [(f"{count(len(names), 'tool')} to choose from", "dim")]
        case ProposalRefused(kind, what, detail):
            return [(f"! {kind} refused: {what} {detail}".rstrip(), "warn")]
        case PlanMade(plan):
            what = f": {plan.description}" if plan.description else ""
            head = f"plan v{plan.version} of {count(len(plan.steps), 'step')}{what}"
            return [(head, "head"), *((f"  {step_told(step)}", "dim") for step in plan.steps)]
        case PlanEdited():
            return [(f"plan {edit_line(event)}", "head")]
        case PlanSigned(version, decision, by, note):
            return [(f"plan v{version} {_SIGNED[decision]} by {by}" + (f": {note}" if note else ""), "head")]
        case StepReflected(step_id, _, decision, reflection, tool_id, parameters, instruction, why):
            cause = f": {reflection.root_cause}" if reflection is not None and reflection.root_cause else ""
            if decision == "escalate":
                return [(f"~ step {step_id}: the run is to be thought about ({why}){cause}", "warn")]
            again = f"{tool_id} {brief_parameters(parameters)}" if parameters is not None else instruction
            return [(f"~ step {step_id} is tried again: {again.strip()}{cause}", "warn")]
        case Escalated(step_id, cause):
            return [(f"! {step_id or 'the run'} is to be thought about: {' '.join(filter(None, cause))}", "warn")]
        case RunReflected(decision, _, reflection, _, reason, strategy, percent):
            done = f"{reflection.completion_percent} % done, by the engine's count {percent} %"
            if decision == "stop" or strategy is None:
                return [(f"~ stop: {reason} ({done})", "warn")]
            first = " after another selection" if needs_planning(strategy) else ""
            return [(f"~ replan: {strategy.type}{first} ({done})", "warn")]
        case RunEvaluated(evaluation):
            if evaluation.passed:
                return []
            return [(f"! {evaluation.name}: {evaluation.note}", "warn")]
        case _:
            assert_never(event)


def step_told(step: PlanStep) -> str:
    """A step of a plan that is still to be done: what it calls with what, after which others."""
    what = brief_parameters(step.parameters) if step.kind == "tool" else step.instruction
    after = f"  after {', '.join(step.dependencies)}" if step.dependencies else ""
    must = "  must succeed" if step.must_succeed else ""
    return f"{step.step_id}  {step.tool_id or step.kind}  {what}{after}{must}"


def edit_line(event: PlanEdited) -> str:
    """An edit in one line, with the strategy that it follows."""
    return f"v{event.base_version} → v{event.version} {event.strategy.type}: {edit_told(event.operations)}"


def edit_told(operations: tuple[Operation, ...]) -> str:
    """An edit in one line."""
    parts: list[str] = []
    before = {one.before for one in operations if one.op == "add"}
    for one in operations:
        match one.op:
            case "add":
                where = f" before {one.before}" if one.before else f" after {one.after}" if one.after else ""
                parts.append(f"+ {one.step.step_id}{where}")
            case "supersede":
                parts.append(f"- {one.step_id}")
            case "skip":
                parts.append(f"skip {one.step_id}")
            case "set_dependencies":
                if one.step_id not in before:  # what is put in before it, it depends on
                    parts.append(f"{one.step_id} after {', '.join(one.dependencies) or 'nothing'}")
            case "set_parameters":
                parts += [f"{one.step_id}.{name} = {_written(value)}" for name, value in one.parameters.items()]
            case "mark":
                parts.append(f"{one.step_id} asks first")
            case "reopen":
                pass
            case _:
                assert_never(one.op)
    return "; ".join(parts)


def _written(value: object) -> str:
    """A value; a text without marks around it, as references are read."""
    return value if isinstance(value, str) else json_text(value)


def steps_of(state: State) -> tuple[PlanStep, ...]:
    """The steps of the plan of a run, as it is now."""
    if state.planning is not None:
        return tuple(record.step for record in state.planning.steps.values())
    return state.plan.steps if state.plan is not None else ()


def step_lines(event: StepEvent, state: State) -> list[tuple[str, Style]]:
    """The lines of one event. Of a step that went well its words are told, since later steps rest on them."""
    steps = steps_of(state) or (PlanStep(event.step_id, tool_id="?"),)
    step = next((one for one in steps if one.step_id == event.step_id), steps[0])
    is_last = step is steps[-1]  # what it said is the answer, which is told at the end, once
    match event:
        case StepStarted():
            goal = f": {step.instruction}" if step.instruction else ""
            return [(f"step {step.step_id} ({step.kind}) {step.step_name}".rstrip() + goal, "head")]
        case StepEnded(error=error, output=output):
            if error is not None:
                return [(f"✗ step {step.step_id} failed: {error.code}: {error.message}", "bad")]
            return [(f"= {output}", "")] if output and not is_last else []
        case StepSkipped(_, reason, by):
            return [(f"step {step.step_id} skipped by {by}: {reason}", "dim")]
        case ReasoningStepCompleted(_, output, tries, isolated, sources, trust):
            how = f"{count(tries, 'try', 'tries')}{', out of fresh messages' if isolated else ''}"
            rests = f"; rests on {', '.join(sources)} ({trust})" if sources else ""
            lines: list[tuple[str, Style]] = [] if is_last else [(f"= {output}", "")]
            return [*lines, (f"✓ step {step.step_id} completed without tools after {how}{rests}", "dim")]
        case ReasoningStepViolated(_, attempt, reason, _, tools, after_untrusted):
            called = f"{count(len(tools), 'call')} refused: {', '.join(dict.fromkeys(tools))}" if tools else reason
            seen = "; untrusted text was in view" if after_untrusted and tools else ""
            return [(f"! step {step.step_id} has no tools: try {attempt} is none ({called}){seen}", "warn")]
        case _:
            assert_never(event)
