"""What a reflection or a corrective selection is made from, as values; their prompts are rendered from these.

Source: seed 004; spec/planning.md, sections 2 and 9.
"""

from __future__ import annotations

from surefoot.core.plan.choosing import previous_tools
from surefoot.core.plan.dag import Planning
from surefoot.core.plan.history import history
from surefoot.core.plan.statistics import current_round
from surefoot.core.plan.wording import guidance_text
from surefoot.core.state import State
from surefoot.types.plan import StepExecutionResult
from surefoot.types.reflection import OverallReflectionContext, OverallReflectionGuidance, ReflectionContext
from surefoot.types.selection import ReplanningToolSelectionContext


def reflection_context(state: State, planning: Planning, step_id: str) -> ReflectionContext:
    """What a reflection on a failed step is made from."""
    record = planning.steps[step_id]
    failed = record.result or StepExecutionResult(step_id, record.step.kind)
    done = tuple(one.result for one in planning.steps.values() if one.status == "succeeded" and one.result is not None)
    words = state.task.text if state.task is not None else ""
    return ReflectionContext(words, done, failed, history(state, planning, step_id), planning.stats)


def overall_context(state: State, planning: Planning) -> OverallReflectionContext:
    """What an overall reflection is made from."""
    failed = [one for one in planning.evaluations if not one.passed]
    return OverallReflectionContext(
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
    return ReplanningToolSelectionContext(
        previous_tools(planning), history(state, planning, advice=False), analysis, guidance_text(guidance_of(planning))
    )


def guidance_of(planning: Planning) -> OverallReflectionGuidance | None:
    """What the last overall reflection hands on; None where there was none."""
    return OverallReflectionGuidance.of(planning.reflections[-1].reflection) if planning.reflections else None
