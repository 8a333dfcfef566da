"""How a planned run ends: with its answer, written where a model may be asked. Source: spec/planning.md, section 10."""

from __future__ import annotations

from dataclasses import replace

from surefoot.core.plan.child import is_outdated
from surefoot.core.plan.dag import Planning
from surefoot.core.plan.deciding import MALFORMED
from surefoot.core.plan.limits import llm_spent, spent
from surefoot.core.plan.telling import answer_without
from surefoot.core.state import State
from surefoot.types.endings import Completed, CompletedPartial, Ending, Failed, Stopped
from surefoot.types.events import RunEnded
from surefoot.types.moves import Move, Record
from surefoot.types.planning import ANSWER
from surefoot.types.step_events import StepStarted

Moves = tuple[Move, ...]

STEP_LIMIT = "step_limit"
"""Why a run is no whole success in which a step came to a limit at which it is skipped."""


def stopped(planning: Planning) -> Ending:
    """The end that an overall reflection came to."""
    stop = planning.stop
    assert stop is not None  # noqa: S101  # asked only then
    return CompletedPartial("", stop.reason) if stop.ending == "completed_partial" else Stopped(stop.reason)


def done(planning: Planning) -> Completed | CompletedPartial:
    """The end of a run whose steps are all done; one of them may have come to a limit at which it is skipped."""
    return CompletedPartial("", STEP_LIMIT) if planning.is_limited else Completed("")


def concluded(state: State, planning: Planning, ending: Ending, *, may_write: bool = True) -> Moves:
    """The end, once the answer is written; where none can be, what there is is told."""
    if isinstance(ending, Failed):
        return (Record((RunEnded(failed(state, planning, ending)),)),)
    if (said := _response(planning)) and ending == done(planning):
        return (Record((RunEnded(replace(ending, answer=said)),)),)
    if may_write and planning.answer is None and _may_write(state, planning, ending):
        return () if ANSWER in planning.children else (Record((StepStarted(ANSWER),)),)
    reason = "" if isinstance(ending, Completed) else getattr(ending, "reason", "")
    told = planning.answer or ("" if planning.config.answer == "off" else answer_without(state, planning, reason))
    match ending:
        case Completed():
            return (Record((RunEnded(Completed(told)),)),)
        case CompletedPartial(_, why):
            return (Record((RunEnded(CompletedPartial(told, why)),)),)
        case Stopped(why):
            return (Record((RunEnded(Stopped(why, told)),)),)
        case _:
            return (Record((RunEnded(ending),)),)


def failed(state: State, planning: Planning, ending: Failed) -> Failed:
    """A failure, with what was done before it: what took effect stays, whatever is missing now."""
    refusal = planning.refusal
    is_unread = ending.reason == "invalid_plan" and refusal is not None and refusal.what == MALFORMED
    detail = "no reply could be read as a plan" if is_unread else ending.detail
    account = answer_without(state, planning, "")
    return replace(ending, detail="\n".join(one for one in (detail, account) if one))


def _may_write(state: State, planning: Planning, ending: Ending) -> bool:
    """Whether a model may be asked for the answer: there is something to tell, and budget left for it."""
    if planning.config.answer == "off" or spent(state, planning) or llm_spent(state, planning, last=True):
        return False
    has_results = any(record.status == "succeeded" for record in planning.steps.values())
    return has_results or isinstance(ending, Completed)


def _response(planning: Planning) -> str:
    """What the last response step of the plan has written, unless a repair has had more done since; "" for nothing."""
    for name in reversed(planning.live):
        record = planning.steps[name]
        is_said = record.step.kind == "response" and record.status == "succeeded"
        if is_said and record.result is not None and not is_outdated(planning, record):
            return record.result.output
    return ""
