"""A person signs a plan before it runs: the question, and what their word makes of it. Source: spec/planning.md, 12."""

from __future__ import annotations

from surefoot.core.plan.dag import Planning
from surefoot.core.state import Call, State
from surefoot.types.decisions import Ask
from surefoot.types.plan import PlanStep

PLAN = "plan"
"""What the question about a plan is called, where those about calls have the id of the call."""


def is_unsigned(planning: Planning | None) -> bool:
    """Whether a plan waits for its signature."""
    if planning is None or planning.phase != "running" or planning.rejected_by:
        return False
    return planning.needs_signature


def signature(state: State) -> tuple[Call, ...]:
    """The question about the plan, in the form of a call."""
    planning = state.planning
    if planning is None or not is_unsigned(planning):
        return ()
    steps = {planning.steps[name].step.step_id: told(planning.steps[name].step) for name in planning.live}
    asked = Ask(f"version {planning.version} of the plan is to be signed before it runs")
    return (Call(PLAN, PLAN, PLAN, steps, decision=asked),)


def told(step: PlanStep) -> str:
    """A step in one line: what it does, and with what."""
    what = f"{step.tool_id} {dict(step.parameters)}" if step.kind == "tool" else f"{step.kind}: {step.instruction}"
    after = f" after {', '.join(step.dependencies)}" if step.dependencies else ""
    return what + after
