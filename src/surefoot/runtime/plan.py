"""The hands of a plan that repairs itself: find tools to choose from, wait, evaluate, make a move of a step.

What a running step asks for is made as it would be in a run of its own. Source: spec/planning.md, sections 3, 5, 9, 10.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

from surefoot.core.plan.child import with_whole
from surefoot.core.plan.choose import index_of, queries_of, shortlisted
from surefoot.core.plan.history import execution_context
from surefoot.core.plan.limits import turns_left
from surefoot.core.select.shortlist import CANDIDATES, Hit, blended, meanings, ranked
from surefoot.core.state.state import Planning, State
from surefoot.core.text import clean
from surefoot.tools.call import call_function, is_async, is_stopping
from surefoot.types.events import Event, InStep, ToolsShortlisted
from surefoot.types.moves import Evaluate, PlanMove, Shortlist, Wait, Within
from surefoot.types.plan_events import RunEvaluated, StepStarted
from surefoot.types.reflection import EvaluationResult

if TYPE_CHECKING:
    from surefoot.runtime.world import World

NOTHING_DONE = "nothing_done"


async def plan_move(world: World, move: PlanMove, state: State) -> Sequence[Event]:
    """Make one move of a plan and say what happened. See `Hands`."""
    planning = state.planning
    assert planning is not None  # noqa: S101  # the move was made from this state
    match move:
        case Within():
            child = planning.children.get(move.step_id)
            assert child is not None  # noqa: S101  # the same
            calls = (call for one in planning.children.values() for call in one.calls)
            asked = sum(call.is_open and call.spec is not None and bool(call.spec.delegates) for call in calls)
            if asked and (left := turns_left(state, planning)) < math.inf:
                most = world.budget.max_steps or math.inf
                left = min(most, child.requests + max(0, left))
                world = replace(world, budget=replace(world.budget, max_steps=max(1, int(left))))
            hands = replace(world, asked=asked) if asked > 1 else world
            events = await hands.do(move.move, with_whole(child, state))
            return tuple(InStep(move.step_id, move.attempt, event) for event in events)  # pyright: ignore[reportArgumentType]  # of a step's moves
        case Shortlist():
            found = None
            if world.encoder is not None:  # it ranks the tools that fit each part of the task
                index, found = index_of(state), dict[str, tuple[Hit, ...]]()
                for query in queries_of(state, planning):
                    hits = ranked(index, query, CANDIDATES)
                    asked, texts = meanings(index, query, hits)
                    likeness = await world.encoder.likeness(asked, texts) if hits else ()
                    found[query] = blended(index, query, hits, likeness) if hits else ()
            names, best = shortlisted(state, planning, found)
            return (ToolsShortlisted(names, best, world.elapsed_s),)
        case Wait(step_id, attempt, wait_s):
            await world.sleep(min(wait_s, _seconds_left(world, planning)))
            return (StepStarted(step_id, attempt, world.elapsed_s),)
        case Evaluate(name):
            return (RunEvaluated(await _evaluated(world, name, state, planning), world.elapsed_s),)
        case _:
            assert_never(move)


def _seconds_left(world: World, planning: Planning) -> float:
    deadline_s = planning.loops.words.budget.max_seconds
    return float("inf") if deadline_s is None else max(0.0, deadline_s - world.elapsed_s)


async def _evaluated(world: World, name: str, state: State, planning: Planning) -> EvaluationResult:
    """What an evaluator says, within the run's time. One that breaks, or says nothing, has not passed the run."""
    if name == NOTHING_DONE:
        return nothing_done(planning)
    evaluator = world.evaluators.get(name)
    if evaluator is None:
        return EvaluationResult(name, passed=False, note=f"this agent has no evaluator {name!r}")
    left_s = _seconds_left(world, planning)
    clock = asyncio.timeout(None if left_s == float("inf") else left_s)
    try:
        async with clock:
            asked = partial(evaluator, execution_context(state, planning))
            found = await call_function(asked, {}, on_loop=is_async(evaluator))
            told = ""
    except BaseException as error:  # it is the developer's code
        if is_stopping(error):
            raise
        found, told = None, f"it broke: {type(error).__name__}: {error}"
    if clock.expired() or not _seconds_left(world, planning):  # one that blocks the loop cannot be cut off
        told = f"it gave no word within {left_s:g} s, when the run's time was over"
    if told:
        return EvaluationResult(name, passed=False, note=clean(told)[:500])
    if not isinstance(found, EvaluationResult):
        return EvaluationResult(name, passed=False, note=f"it gave a {type(found).__name__}, and no EvaluationResult")
    return replace(found, name=name)


def nothing_done(planning: Planning) -> EvaluationResult:
    """Fails a run in which steps were skipped and none but responses has succeeded."""
    records = planning.steps.values()
    was_skipped = any(one.status == "skipped" for one in records)
    has_done = any(one.status == "succeeded" and one.step.kind != "response" for one in records)
    is_bad = was_skipped and not has_done
    return EvaluationResult(NOTHING_DONE, not is_bad, note="all steps were skipped" if is_bad else "")
