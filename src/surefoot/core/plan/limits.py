"""What a planned run may use up, and what is kept of it for the answer. Source: spec/planning.md, section 11."""

from __future__ import annotations

from surefoot.core.plan.dag import Planning
from surefoot.core.state import State


def spent(state: State, planning: Planning) -> str:
    """The limit at which nothing new begins, whatever it is (R17); "" while it is not reached."""
    times = [one for one in (planning.config.deadline_s, state.config.budget.max_seconds) if one is not None]
    return "deadline" if times and state.elapsed_s >= min(times) else ""


def llm_spent(state: State, planning: Planning, *, last: bool = False) -> str:
    """Why no model may be asked any more; one request is kept for the answer, where one is written."""
    config, budget = planning.config, state.config.budget
    tokens = [limit for limit in (config.max_tokens, budget.max_tokens) if limit is not None]
    costs = [limit for limit in (config.max_cost_usd, budget.max_cost_usd) if limit is not None]
    if tokens and state.usage.total_tokens >= min(tokens):
        return "token_budget"
    if costs and (state.usage.cost_usd or 0.0) >= min(costs):
        return "cost_budget"
    most = config.max_llm_calls
    kept = 1 if config.answer == "auto" and not last else 0
    return "llm_budget" if most is not None and planning.stats.llm_calls >= most - kept else ""
