"""What a run may use up, and what is left of it."""

from __future__ import annotations

from typing import Literal

from surefoot.core.roles import ROLES, round_limit, rounds
from surefoot.core.state import State

Limit = Literal["steps", "tokens", "cost", "time", "round_limit", "stuck"]


def spent_limit(state: State, *, reserve: bool = False) -> Limit | None:
    """The first limit that is reached. With `reserve`, also counts what is kept back for the last request."""
    budget = state.config.budget
    share = 1 - budget.reserve if reserve else 1.0
    if budget.max_steps is not None and steps_so_far(state) >= _last_but_one(budget.max_steps, reserve=reserve):
        return "steps"
    if budget.max_tokens is not None and state.usage.total_tokens >= budget.max_tokens * share:
        return "tokens"
    if budget.max_cost_usd is not None and (state.usage.cost_usd or 0.0) >= budget.max_cost_usd * share:
        return "cost"
    if budget.max_seconds is not None and state.elapsed_s >= budget.max_seconds * share:
        return "time"
    return None


def steps_so_far(state: State) -> int:
    """The steps of a run, or of a step of a plan that has a state of its own: requests for a reply, and turns of calls
    that were made without one. The fold keeps both, so whoever takes a run up counts as it was counted.
    """  # noqa: D205  # one sentence
    return state.requests + turns_unasked(state)


def turns_unasked(state: State) -> int:
    """The turns of calls that were made without a request: of a run all, of a step with a state of its own its own."""
    if state.gate is None:
        return 0
    kept = state.gate.choosing
    own = kept.values() if not state.scope else (kept[state.scope],) if state.scope in kept else ()
    return sum(one.turns for one in own)


def limit_for(state: State, role: str) -> Limit | None:
    """The limit for which the answer is asked for in place of another step of that role, if one is reached.

    Rounds are counted where they begin, so that the last one is not broken off in the middle.
    """
    if state.stuck:
        return "stuck"
    limit = spent_limit(state, reserve=True) or _spent_share(state)
    if limit is not None or role != ROLES[state.reasoner][0]:
        return limit
    most = round_limit(state)
    return "round_limit" if most is not None and rounds(state) >= most else None


def reached_limit(state: State) -> Limit | None:
    """The limit for which no further round is begun."""
    return limit_for(state, ROLES[state.reasoner][0])


def _spent_share(state: State) -> Limit | None:
    """The limit of which some role has used up its share."""
    budget = state.config.budget
    for role, share in budget.shares.items():
        if (speaker := state.speakers.get(role)) is None:
            continue
        if budget.max_tokens is not None and speaker.usage.total_tokens >= budget.max_tokens * share:
            return "tokens"
        if budget.max_cost_usd is not None and (speaker.usage.cost_usd or 0.0) >= budget.max_cost_usd * share:
            return "cost"
    return None


def _last_but_one(max_steps: int, *, reserve: bool) -> int:
    """One request is kept for the last word, unless there is only one."""
    return max(1, max_steps - 1) if reserve else max_steps


def seconds_left(state: State, *, last: bool = False) -> float | None:
    """How long the next move may take, in seconds; the last request may use the reserve. None: no limit."""
    budget = state.config.budget
    if budget.max_seconds is None:
        return None
    share = 1.0 if last else 1 - budget.reserve
    return max(0.0, budget.max_seconds * share - state.elapsed_s)
