"""What happens to the steps of a plan, as lines for a person."""

from __future__ import annotations

from typing import assert_never

from surefoot.cli.lines import Style, count
from surefoot.core.state import State
from surefoot.types.plan import PlanStep
from surefoot.types.step_events import (
    ReasoningStepCompleted,
    ReasoningStepViolated,
    StepEnded,
    StepEvent,
    StepSkipped,
    StepStarted,
)


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
