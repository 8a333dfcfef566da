"""How a planned run ends: with its answer, written where a model may be asked. Source: spec/planning.md, section 10."""

from __future__ import annotations

from surefoot.core.plan.dag import Planning
from surefoot.core.plan.limits import llm_spent, spent
from surefoot.core.plan.telling import answer_without
from surefoot.core.state import State
from surefoot.types.endings import Completed, CompletedPartial, Ending, Failed, Stopped
from surefoot.types.moves import (
    End,
    Move,
    TellPlan,
)
from surefoot.types.planning import ANSWER
from surefoot.types.step_events import StepStarted

Moves = tuple[Move, ...]


def stopped(planning: Planning) -> Ending:
    """The end that an overall reflection came to."""
    stop = planning.stop
    assert stop is not None  # noqa: S101  # asked only then
    return CompletedPartial("", stop.reason) if stop.ending == "completed_partial" else Stopped(stop.reason)


def concluded(state: State, planning: Planning, ending: Ending) -> Moves:
    """The end, once the answer is written; where none can be, what there is is told."""
    if isinstance(ending, Failed):
        return (End(ending),)
    if isinstance(ending, Completed) and (said := _response(planning)):
        return (End(Completed(said)),)
    if planning.answer is None and _may_write(state, planning, ending):
        return () if ANSWER in planning.children else (TellPlan((StepStarted(ANSWER),)),)
    reason = "" if isinstance(ending, Completed) else getattr(ending, "reason", "")
    told = planning.answer or ("" if planning.config.answer == "off" else answer_without(state, planning, reason))
    match ending:
        case Completed():
            return (End(Completed(told)),)
        case CompletedPartial(_, why):
            return (End(CompletedPartial(told, why)),)
        case Stopped(why):
            return (End(Stopped(why, told)),)
        case _:
            return (End(ending),)


def _may_write(state: State, planning: Planning, ending: Ending) -> bool:
    """Whether a model may be asked for the answer: there is something to tell, and budget left for it."""
    if planning.config.answer == "off" or spent(state, planning) or llm_spent(state, planning, last=True):
        return False
    has_results = any(record.status == "succeeded" for record in planning.steps.values())
    return has_results or isinstance(ending, Completed)


def _response(planning: Planning) -> str:
    """What a response step of the plan has written."""
    said = [one.result.output for one in planning.steps.values() if one.step.kind == "response" and one.result]
    return said[-1] if said else ""
