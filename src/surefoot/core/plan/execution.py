"""How far a planned run is, as an evaluator sees it: a view of the state, never stored."""

from __future__ import annotations

from surefoot.core.plan.dag import Planning
from surefoot.core.plan.limits import turns_so_far
from surefoot.core.state import State
from surefoot.types.plan import StepExecutionResult
from surefoot.types.planning import Plan
from surefoot.types.reflection import ExecutionContext


def execution_context(state: State, planning: Planning) -> ExecutionContext:
    """The plan, what came of its steps in plan order, and what is left of the budget (None: no limit)."""
    config, stats = planning.config, planning.stats
    results: list[StepExecutionResult] = []
    for name in planning.order:
        record = planning.steps[name]
        results += record.failures
        if record.status == "succeeded" and record.result is not None:
            results.append(record.result)
    most = planning.config.max_llm_calls
    deadline_s = planning.loops.words.budget.max_seconds
    left: dict[str, float | None] = {
        "llm_calls": None if most is None else most - turns_so_far(state, planning),
        "tool_calls": None if config.max_tool_calls is None else config.max_tool_calls - stats.tool_calls,
        "seconds": None if deadline_s is None else max(0.0, deadline_s - state.elapsed_s),
    }
    return ExecutionContext(
        planning.plan or Plan(()),
        tuple(results),
        planning.selected or (),
        stats,
        left,
        planning.failed_calls,
        frozenset(planning.completed_effects),
        tuple(sorted(planning.answered)),
    )
