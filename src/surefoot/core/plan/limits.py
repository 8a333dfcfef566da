"""What a planned run may use up, and what is kept of it for the answer. Source: spec/planning.md, section 11.

Requests side by side are counted before they have come back, so that their number is never passed. What a request will
cost nobody knows before: each one under way is reckoned to cost what requests of this run have cost on average. So
tokens and money can be passed by what the requests under way cost beyond that, of each step at most one.

A turn of calls that is made without a request counts as one. Requests of the judge and the sanitiser count; one that is
asked again because its reply did not fit may pass the number by that one. Ways to go on are part of the step that
follows, and asked for only where a request, or a turn without one, may follow.
"""

from __future__ import annotations

from collections.abc import Iterable

from surefoot.core.budget import turns_unasked
from surefoot.core.plan.dag import Planning
from surefoot.core.state import State
from surefoot.types.guard_events import BranchCommitted
from surefoot.types.moves import Act, Commit, Hypothesise, JudgeCall, Move, Propose, Record, Sanitise, Think, Within
from surefoot.types.planning import ANSWER


def spent(state: State, planning: Planning) -> str:
    """The limit at which nothing new begins, whatever it is (R17); "" while it is not reached."""
    times = [one for one in (planning.config.deadline_s, state.config.budget.max_seconds) if one is not None]
    return "deadline" if times and state.elapsed_s >= min(times) else ""


def turns_so_far(state: State, planning: Planning) -> int:
    """What counts against `max_llm_calls`: the requests of the whole run, and its turns made without one."""
    return planning.stats.llm_calls + turns_unasked(state)


def llm_spent(state: State, planning: Planning, *, last: bool = False, asked: int = 0) -> str:
    """Why no model may be asked, nor a turn be made unasked; one request is kept for the answer, where one is written.

    `asked` are the requests that have begun and not come back. With `last` it is the answer that is asked for.
    """
    config, budget, made = planning.config, state.config.budget, turns_so_far(state, planning)
    tokens = [limit for limit in (config.max_tokens, budget.max_tokens) if limit is not None]
    costs = [limit for limit in (config.max_cost_usd, budget.max_cost_usd) if limit is not None]
    share = 1 + asked / made if made else 1.0
    if tokens and state.usage.total_tokens * share >= min(tokens):
        return "token_budget"
    if costs and (state.usage.cost_usd or 0.0) * share >= min(costs):
        return "cost_budget"
    most = planning.config.max_llm_calls
    kept = 1 if config.answer == "auto" and not last else 0
    return "llm_budget" if most is not None and made + asked >= most - kept else ""


def limit_of(name: str, move: Move, state: State, planning: Planning, beside: tuple[Iterable[Move], list[Move]]) -> str:
    """Why a running step may not make a move, beside those under way and those that start now; "" where it may."""
    under_way, started = beside
    match move:
        case Think() | Hypothesise() | Commit() | JudgeCall() | Sanitise() | Record((BranchCommitted(direct=True),)):
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


_ASKING = (Think, Hypothesise, Commit, JudgeCall, Sanitise)


def asking(moves: Iterable[Move]) -> frozenset[str]:
    """The steps of which a model is asked, or is about to be, once ways to go on are known; "" for a reflection."""
    steps = {one.step_id for one in moves if isinstance(one, Within) and isinstance(one.move, _ASKING)}
    return frozenset(steps | {"" for one in moves if isinstance(one, Propose)})


def calls_left(planning: Planning) -> int | None:
    """The calls that may still be begun, those of tool steps that run and have not started theirs left out."""
    most = planning.config.max_tool_calls
    children = planning.children.values()
    to_come = sum(bool(child.calls) and not child.calls[0].attempts and not child.done for child in children)
    return None if most is None else most - planning.stats.tool_calls - to_come
