"""The engine's own figures of a planned run, with one line of advice. Source: spec/planning.md, section 9."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from surefoot.core.plan.dag import Planning, Tries
from surefoot.core.plan.limits import turns_so_far
from surefoot.core.state import State
from surefoot.types.plan import StepStatus

_ROUNDS = ((11, "stop unless something new is known"), (6, "warning: many rounds, say what is new"), (4, "reconsider"))
_RETRIES = (
    (6, "escalate: trigger_overall_reflection"),
    (4, "warning: many retries, say what is new"),
    (3, "check whether a retry can help at all"),
)
"""From how many on, and what is said then; the highest first."""

NEW = "Each further reflection has to bring a new cause, a new approach or a new fact."


def statistics(state: State, planning: Planning, about: str = "") -> str:
    """Figures and advice, for a step's reflection those of that step too. Same events, same text."""
    stats, round_ = planning.stats, current_round(planning)
    counts = Counter(record.status for record in planning.steps.values())
    by_status = ", ".join(f"{counts[one]} {one}" for one in get_args(StepStatus) if counts[one])
    retries = retries_of(planning, about)
    mine = f", of this step {retries}" if about else ""
    lines = [
        f"- round {round_}, step retries {stats.step_retries}{mine}, replans {stats.replans}",
        f"- steps: {by_status or 'none'}; completed {planning.completion_percent} %",
        f"- {_calls(state, planning)}, {_used(state, planning)}",
    ]
    if planning.config.max_replans is not None:
        lines.append(f"- replans left: {max(0, planning.config.max_replans - stats.replans)}")
    advice = [text for text in (_advice(_ROUNDS, round_), _advice(_RETRIES, retries)) if text]
    lines.append(f"- advice: {'; '.join(advice) if advice else 'none'}. {NEW}")
    return "\n".join(lines)


def current_round(planning: Planning) -> int:
    """The overall reflection that is being made, or the last one; 0 before the first."""
    is_next = planning.phase == "running" and planning.escalation is not None and planning.tries == Tries()
    return planning.stats.rounds + is_next


def retries_of(planning: Planning, step_id: str) -> int:
    """How often a step was tried again, by the engine or by its reflection."""
    record = planning.steps.get(step_id)
    if record is None:
        return 0
    return record.transient + sum(one.decision == "retry" for one in record.reflected)


def _advice(table: tuple[tuple[int, str], ...], count: int) -> str:
    return next((text for least, text in table if count >= least), "")


def _of(used: int, most: int | None) -> str:
    return f"{used}" if most is None else f"{used} of {most}"


def _calls(state: State, planning: Planning) -> str:
    stats = planning.stats
    tools = _of(stats.tool_calls, planning.config.max_tool_calls)
    models = _of(turns_so_far(state, planning), planning.config.max_llm_calls)
    return f"tool calls {tools}, model calls {models}"


def _used(state: State, planning: Planning) -> str:
    """Tokens, seconds and money, each with its ceiling where there is one."""
    config, budget = planning.config, state.config.budget
    tokens = _least(config.max_tokens, budget.max_tokens)
    seconds = _least(config.deadline_s, budget.max_seconds)
    cost = _least(config.max_cost_usd, budget.max_cost_usd)
    parts = [f"tokens {state.usage.total_tokens}" + (f" of {tokens:.0f}" if tokens is not None else "")]
    parts.append(f"seconds {state.elapsed_s:.0f}" + (f" of {seconds:.0f}" if seconds is not None else ""))
    if cost is not None:
        parts.append(f"US dollars {state.usage.cost_usd or 0.0:.2f} of {cost:.2f}")
    return ", ".join(parts)


def _least(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)
