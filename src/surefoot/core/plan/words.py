"""What is said to a model about proposals: why its own was refused, in words that it can act on, and what others hold.

Source: spec/planning.md, sections 3, 4, 6, 7 and 14.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import assert_never

from surefoot.core.plan.accept import MOST_FAULTS
from surefoot.core.plan.choose import EMPTY_SELECTION
from surefoot.core.state.plans import BLOCKED
from surefoot.core.text import json_text
from surefoot.types import reflection
from surefoot.types.plan_events import ProposalRefused

FAULTS: Mapping[str, str] = {
    "duplicate_step_id": "the step id {0} is used twice, or was used before in this run: give the step another id",
    "reserved_step_id": "the step id {0} means something else to whoever runs the plan: give the step another id",
    "repeats_completed_step": "step {0} makes a call that was made already and has had its effect: leave it out",
    "repeats_failed_call": "step {0} makes a call that has failed in this run: change its parameters or its tool",
    "empty_plan": "the plan has no steps: give at least one",
    "too_many_steps": "the plan has too many steps: give fewer",
    "must_succeed_dropped": "step {0} must succeed and was taken out: give must_succeed true to the step in its place",
    "unknown_tool": "step {0} names the tool {1}, which does not exist: take a listed tool",
    "tool_not_selected": "step {0} names the tool {1}, which is not listed: take a listed tool",
    "outside_intent": "step {0} uses the tool {1} for what the user has forbidden: do without it",
    "unknown_dependency": "step {0} depends on {1}, which is not a step: remove it, or add that step",
    "cycle": "step {0} depends on itself, directly or through others: break the circle",
    "reference_not_a_dependency": "step {0} refers to {1} and does not depend on it: put {1} into its dependencies",
    "bad_kind": "the fields of step {0} do not fit its kind: a tool step has a tool_id, any other an instruction, "
    "and an id is at most 64 letters, digits, _ and -",
    "bad_parameters": "step {0}: the parameter {1} does not fit the tool: see what the tool takes",
    "unknown_step": "{0} is not a step of the plan: name one of the listed steps",
    "already_succeeded": "step {0} has succeeded and cannot be changed: name a step that is still open",
    "must_succeed": "step {0} must succeed and cannot be skipped: choose another strategy",
    "already_skipped": "{0} is skipped already",
    "no_steps": "no steps are named: name at least one",
    "bad_adjustment": "step {0} cannot be adjusted so: it must be open, and something must change",
    "no_adjustments": "no adjustments are given: give at least one",
    "unknown_strategy": "unknown strategy {0}: take one of those in the rules",
    "more_faults": "and {0} faults more",
}
"""The faults of plans and strategies, by the word before the first colon; the places are what stands behind it."""

REFUSALS: Mapping[str, str] = {
    "malformed_json": "it holds no whole JSON object: reply with the JSON object alone, and keep its texts short",
    "invalid_plan": "the plan has faults:",
    "invalid_strategy": "the strategy has faults:",
    "empty_params": "retry_with_params came without parameters: give them in data",
    "unknown_action": "unknown action {0} for this step: take one of those in the rules",
    "repeat_failure": "this very call has failed before in this run: give other values, or trigger_overall_reflection",
    "repeats_completed_call": "this very call was made before in this run and has had its effect: "
    "give other values, or trigger_overall_reflection",
    "unknown_tool": "unknown tool {0}: take listed tools alone",
    "tool_not_selected": "the tool {0} is not listed: take a listed tool",
}
"""The refusals after which a proposal is asked for again; the place is what was refused of it."""

_WITH_FAULTS = frozenset({"invalid_plan", "invalid_strategy"})
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}")

NO_GUIDANCE = "No overall reflection has been made."


def named(name: str) -> str:
    """A name that a model may have made up, where it reads as a name; anything else could be a sentence."""
    return name if _NAME.fullmatch(name) else "(a name that is not shown)"


def refusal_words(refused: ProposalRefused) -> str:
    """Why the last proposal was refused, and what to do about it."""
    said = REFUSALS.get(refused.what, named(refused.what))
    said = said.format(", ".join(named(one) for one in refused.detail.split(",")))
    if refused.detail == EMPTY_SELECTION:
        said = "no tools are chosen: choose at least one"
    faults = refused.detail.split(";") if refused.what in _WITH_FAULTS and refused.detail else []
    lines = [f"- {fault_words(one)}" for one in faults[: MOST_FAULTS + 1]]
    return "\n".join((f"Your last reply was refused: {said}", *lines))


def fault_words(fault: str) -> str:
    """One fault in words."""
    code, *places = fault.split(":", 2)
    shown = [*(named(one) for one in places), "", ""]
    return FAULTS[code].format(*shown) if code in FAULTS else named(code)


def cause_words(cause: reflection.Cause) -> str:
    """Why a round of overall reflection began."""
    actor, cls, code = cause
    if cause == BLOCKED:
        return "nothing can go on, although steps are open"
    if actor == "evaluation":
        return f"the evaluation {named(cls)} was not passed"
    return f"{named(actor)} failed with {cls}{f' {code}' if _NAME.fullmatch(code) else ''}"


def guidance_text(guidance: reflection.OverallReflectionGuidance | None) -> str:
    """Guidance in its order; a fixed line where there was no overall reflection."""
    if guidance is None:
        return NO_GUIDANCE
    parts = (
        ("Root causes", guidance.root_causes),
        ("Incorrect assumptions", guidance.incorrect_assumptions),
        ("Alternative approaches", guidance.alternative_approaches),
        ("Lessons learned", guidance.lessons_learned),
    )
    lines = [f"{title}: {'; '.join(texts) or 'none'}" for title, texts in parts]
    strategy = guidance.replanning_strategy
    return "\n".join((*lines, f"Strategy: {strategy_words(strategy) if strategy is not None else 'none'}"))


def strategy_words(strategy: reflection.ReplanningStrategy) -> str:
    """A strategy on one line."""
    match strategy:
        case reflection.FullReplan():
            return strategy.type
        case reflection.ReplanFromStep(step_id, reason):
            words = f"{strategy.type} {step_id}"
        case reflection.SkipSteps(step_ids, reason):
            words = f"{strategy.type} {', '.join(step_ids)}"
        case reflection.AddRemediationSteps(suggestions):
            return f"{strategy.type}: {'; '.join(suggestion_words(one) for one in suggestions)}"
        case reflection.AdjustDependencies(adjustments):
            parts = (
                f"{one.step_id}"
                + (f" depends on {', '.join(one.depends_on) or 'nothing'}" if one.depends_on is not None else "")
                + (f" parameters {json_text(one.parameters)}" if one.parameters is not None else "")
                for one in adjustments
            )
            return f"{strategy.type}: {'; '.join(parts)}"
        case _:
            assert_never(strategy)
    return f"{words}: {reason}" if reason else words


def suggestion_words(suggestion: reflection.RemediationStep | str) -> str:
    """A suggestion on one line."""
    if isinstance(suggestion, str):
        return suggestion
    step = suggestion.step
    at = f" before {suggestion.insert_before}" if suggestion.insert_before else ""
    at = at or (f" after {suggestion.insert_after}" if suggestion.insert_after else "")
    return f"{step.step_id} {step.tool_id or step.instruction}{at}"
