"""What a planned run may use up, and what is kept of it for the answer. Source: spec/planning.md, section 11.

Requests side by side are counted before they have come back, so that their number is never passed. What a request will
cost nobody knows before: each one under way is reckoned to cost what requests of this run have cost on average. So
tokens and money can be passed by what the requests under way cost beyond that, of each step at most one.
"""

from __future__ import annotations

from collections.abc import Iterable

from surefoot.core.plan.dag import Planning
from surefoot.core.state import State
from surefoot.types.config import Budget
from surefoot.types.moves import Act, Move, Propose, Think, Within
from surefoot.types.planning import ANSWER

_OF_A_STEP = Budget().max_steps
"""What a budget says where nobody has set it: that is for the loop of one step, and a plan has its own ceiling."""


def spent(state: State, planning: Planning) -> str:
    """The limit at which nothing new begins, whatever it is (R17); "" while it is not reached."""
    times = [one for one in (planning.config.deadline_s, state.config.budget.max_seconds) if one is not None]
    return "deadline" if times and state.elapsed_s >= min(times) else ""


def most_requests(state: State, planning: Planning) -> int | None:
    """The model requests of the whole run, those for proposals among them; None for no limit.

    A budget's own number of requests bounds a planned run, too, where it is not the default.
    """
    own, whole = planning.config.max_llm_calls, state.config.budget.max_steps
    given = (own, None if whole == _OF_A_STEP else whole)
    return min((limit for limit in given if limit is not None), default=None)


def llm_spent(state: State, planning: Planning, *, last: bool = False, asked: int = 0) -> str:
    """Why no model may be asked any more; one request is kept for the answer, where one is written.

    `asked` are the requests that have begun and not come back. With `last` it is the answer that is asked for.
    """
    config, budget, made = planning.config, state.config.budget, planning.stats.llm_calls
    tokens = [limit for limit in (config.max_tokens, budget.max_tokens) if limit is not None]
    costs = [limit for limit in (config.max_cost_usd, budget.max_cost_usd) if limit is not None]
    share = 1 + asked / made if made else 1.0
    if tokens and state.usage.total_tokens * share >= min(tokens):
        return "token_budget"
    if costs and (state.usage.cost_usd or 0.0) * share >= min(costs):
        return "cost_budget"
    most = most_requests(state, planning)
    kept = 1 if config.answer == "auto" and not last else 0
    return "llm_budget" if most is not None and made + asked >= most - kept else ""


def limit_of(within: Within, state: State, planning: Planning, under_way: Iterable[Move], started: list[Move]) -> str:
    """Why a running step may not make a move, beside those under way and those that start now; "" where it may."""
    name, move = within.step_id, within.move
    match move:
        case Think():
            return llm_spent(state, planning, last=name == ANSWER, asked=len(asking((*under_way, *started))))
        case Act(call_id):
            call = planning.children[name].call(call_id)
            if call is not None and call.attempts:
                return ""  # it was begun before a crash, and counted
            acting = sum(isinstance(one, Within) and isinstance(one.move, Act) for one in started)
            most = planning.config.max_tool_calls
            return "tool_budget" if most is not None and planning.stats.tool_calls + acting >= most else ""
        case _:
            return ""


def asking(moves: Iterable[Move]) -> frozenset[str]:
    """The steps of which a model is asked, or is about to be; "" for a reflection."""
    steps = {one.step_id for one in moves if isinstance(one, Within) and isinstance(one.move, Think)}
    return frozenset(steps | {"" for one in moves if isinstance(one, Propose)})


def calls_left(planning: Planning) -> int | None:
    """The calls that may still be begun, those of tool steps that run and have not started theirs left out."""
    most = planning.config.max_tool_calls
    children = planning.children.values()
    to_come = sum(bool(child.calls) and not child.calls[0].attempts and not child.done for child in children)
    return None if most is None else most - planning.stats.tool_calls - to_come
