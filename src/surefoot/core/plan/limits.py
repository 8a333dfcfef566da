"""What a planned run may use up, how often a step may be tried, and how the run ends.

**What is used up.** Requests side by side are counted before they have come back, so that their number is never passed.
What a request will cost nobody knows before: each one under way is reckoned to cost what requests of this run have cost
on average. So tokens and money can be passed by what the requests under way cost beyond that, of each step at most one.
A turn of calls that is made without a request counts as one. Requests of the judge and the sanitiser count; one that is
asked again because its reply did not fit may pass the number by that one. Ways to go on are part of the step that
follows, and asked for only where a request, or a turn without one, may follow. An agent that a step asks may use what
is left when it begins, or its part where several are asked at once; what other steps ask meanwhile comes on top.

**How often a whole step may be tried**, where the user has said so, and what follows at that limit:

a failure                → it is counted, unless what lies between has failed
the limit                → it is put on record, with what is to be done
AbortTask, AnswerNow     → the run ends, as does one that goes in circles; AnswerNow has an answer written first
Escalate                 → a person is asked; "go on" begins the step anew, "no" has the run thought about
SkipStep                 → an edit that skips it, where R11 allows one; else the run is thought about
Replan                   → the run is thought about
an edit reopens the step → it begins anew

Source: spec/planning.md, sections 8, 10 and 11; spec/primitives.md, 2.2 and 2.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from surefoot.core.plan.accept import edit_faults, edited
from surefoot.core.plan.edits import edit_of
from surefoot.core.plan.forms import MALFORMED
from surefoot.core.state.plans import StepRecord
from surefoot.core.state.repeats import having_failed, limited
from surefoot.core.state.roles import turns_unasked
from surefoot.core.state.state import Planning, State
from surefoot.core.state.stuck import reset
from surefoot.core.state.turn import changed
from surefoot.core.text import shortened
from surefoot.types.events import Event, InStep, RunEnded, StepLimitReached
from surefoot.types.guard_events import BranchCommitted
from surefoot.types.moves import Act, Ask, Move, Record, Think, Within
from surefoot.types.outcomes import Completed, CompletedPartial, Ending, Failed, Stopped
from surefoot.types.plan import ANSWER, Reopen, StepErrorClass
from surefoot.types.plan_events import Escalated, PlanEdited, ProposalRefused, StepEnded, StepStarted
from surefoot.types.progress import LimitAction, StepIterationConfig
from surefoot.types.reflection import SkipSteps

ENGINE = "engine"
"""Who edits the plan where a limit has it done; such an edit is not a replan, so no limit of replans counts it."""

STEP_LIMIT = "step_limit"  # why a run is no whole success in which a step came to a limit at which it is skipped
_LONGEST_RESULT = 300  # characters of one result that are told where no model writes the answer

_BETWEEN: frozenset[StepErrorClass] = frozenset({"transient", "timeout", "server"})
"""Errors of what lies between a tool and what it reaches: they say nothing about the step."""


def spent(state: State, planning: Planning) -> str:
    """The limit at which nothing new begins, whatever it is (R17); "" while it is not reached."""
    most_s = planning.loops.budget.max_seconds
    return "deadline" if most_s is not None and state.elapsed_s >= most_s else ""


def turns_so_far(state: State, planning: Planning) -> int:
    """What counts against `max_llm_calls`: the requests of the whole run, and its turns made without one."""
    return planning.stats.llm_calls + turns_unasked(state)


def turns_left(state: State, planning: Planning, *, last: bool = False) -> float:
    """What `max_llm_calls` leaves for the steps, or with `last` for the answer, which one is kept for."""
    config = planning.config
    most = math.inf if config.max_llm_calls is None else config.max_llm_calls
    return most - turns_so_far(state, planning) - (config.answer == "auto" and not last)


def llm_spent(state: State, planning: Planning, *, last: bool = False, asked: int = 0) -> str:
    """Why no model may be asked, nor a turn be made unasked; one request is kept for the answer, where one is written.

    `asked` are the requests that have begun and not come back. With `last` it is the answer that is asked for.
    """
    budget, made = planning.loops.budget, turns_so_far(state, planning)
    share = 1 + asked / made if made else 1.0
    if budget.max_tokens is not None and state.usage.total_tokens * share >= budget.max_tokens:
        return "token_budget"
    if budget.max_cost_usd is not None and (state.usage.cost_usd or 0.0) * share >= budget.max_cost_usd:
        return "cost_budget"
    return "llm_budget" if turns_left(state, planning, last=last) <= asked else ""


def limit_of(name: str, move: Move, state: State, planning: Planning, beside: tuple[Iterable[Move], list[Move]]) -> str:
    """Why a running step may not make a move, beside those under way and those that start now; "" where it may."""
    under_way, started = beside
    match move:
        case Think() | Ask() | Record((BranchCommitted(direct=True),)):
            return llm_spent(state, planning, last=name == ANSWER, asked=len(asking((*under_way, *started))))
        case Act(call_id):
            call = planning.children[name].call(call_id)
            if call is not None and call.attempts:
                return ""  # it was begun before a crash, and counted
            is_agent = call is not None and call.spec is not None and bool(call.spec.delegates)
            if is_agent and (limit := llm_spent(state, planning, asked=len(asking((*under_way, *started))))):
                return limit
            acting = sum(isinstance(one, Within) and isinstance(one.move, Act) for one in started)
            most = planning.config.max_tool_calls
            return "tool_budget" if most is not None and planning.stats.tool_calls + acting >= most else ""
        case _:
            return ""


def asking(moves: Iterable[Move]) -> frozenset[str]:
    """The steps of which a model is asked, or is about to be, once ways to go on are known; "" for a reflection."""
    steps = {one.step_id for one in moves if isinstance(one, Within) and isinstance(one.move, Think | Ask)}
    return frozenset(steps | {"" for one in moves if isinstance(one, Ask) and one.proposal is not None})


def calls_left(planning: Planning) -> int | None:
    """The calls that may still be begun, those of tool steps that run and have not started theirs left out."""
    most = planning.config.max_tool_calls
    children = planning.children.values()
    to_come = sum(bool(child.calls) and not child.calls[0].attempts and not child.done for child in children)
    return None if most is None else most - planning.stats.tool_calls - to_come


def set_limits(state: State) -> StepIterationConfig | None:
    """The limits of whole steps; None where the user has set none, since R5 stands in for their defaults."""
    config = state.config.step_iteration
    return config if config is not None and config.enabled else None


def with_tries(before: State, after: State, event: Event) -> State:
    """The state in which a failure is counted that an event has brought, or steps begin anew that an edit reopens."""
    if after.planning is None or set_limits(after) is None:
        return after
    match event:
        case PlanEdited(operations=operations):
            tried = after.tried
            for one in operations:
                tried = reset(tried, one.step_id) if isinstance(one, Reopen) else tried
            failed = {name for name, one in after.planning.steps.items() if one.status == "failed"}
            asked = tuple(one for one in after.asked if one.step_id in failed)
            due = tuple(one for one in after.limit_due if one.step_id in failed)
            return changed(after, tried=tried, asked=asked, limit_due=due)
        case InStep(step_id) | StepEnded(step_id):
            old = before.planning.steps.get(step_id) if before.planning is not None else None
            new = after.planning.steps.get(step_id)
            has_failed = old is not None and new is not None and len(new.failures) > len(old.failures)
            if new is None or not has_failed or (error := new.failures[-1].error) is None:
                return after
        case _:
            return after
    told, call = error.message or error.code, new.failures[-1].fingerprint.encode()
    return having_failed(after, step_id, told, call, infrastructure=error.cls in _BETWEEN)


def with_limit(state: State, event: StepLimitReached) -> State:
    """The state once a limit is on record: R5's own and `Replan` end nothing by themselves."""
    if event.action == LimitAction.Replan:
        due = tuple(one for one in state.limit_due if one.step_id != event.step_id)
        return changed(state, limit_due=due)
    told = limited(state, event)
    if event.action != LimitAction.SkipStep or told.planning is None:
        return told
    return changed(told, planning=changed(told.planning, is_limited=True))


def after_limit(state: State, planning: Planning) -> PlanEdited | Escalated | None:
    """What is done about the first failed step that has come to its limit, once that is on record; None for no such."""
    if (config := set_limits(state)) is None:
        return None
    asked = {one.step_id for one in state.asked}
    for name in planning.queue:
        tried = state.tried.get(name)
        if tried is None or tried.stop is None or name in asked:
            continue
        if config.on_limit_reached == LimitAction.SkipStep:
            strategy = SkipSteps((name,), tried.stop.reason)
            edit = edit_of(planning, strategy)
            if not (edit.faults or edit_faults(state, planning, edit.operations)):
                return replace(edited(state, planning, strategy, edit.operations), by=ENGINE)
        return Escalated(name, planning.steps[name].cause)
    return None


def same_error(record: StepRecord) -> tuple[ProposalRefused, StepLimitReached, Escalated]:
    """R5: a step that has failed so often in one way is not thought about by itself any more."""
    name = record.step.step_id
    actor, cls, _ = record.signature
    code = record.error.code if record.error is not None else ""
    told = f"{actor} has failed {record.times_failed_so} times with {cls} {code}".rstrip()
    return (
        ProposalRefused("step_reflection", "step_retry_limit", f"{name}:{cls}", name),
        StepLimitReached(name, record.attempt, told, "max", action=LimitAction.Replan),
        Escalated(name, record.cause),
    )


def done(planning: Planning) -> Completed | CompletedPartial:
    """The end of a run whose steps are all done; one of them may have come to a limit at which it is skipped."""
    return CompletedPartial("", STEP_LIMIT) if planning.is_limited else Completed("")


def concluded(state: State, planning: Planning, ending: Ending, *, may_write: bool = True) -> tuple[Move, ...]:
    """The end, once the answer is written where a model may be asked; else what there is is told."""
    if isinstance(ending, Failed):  # with what was done before it: what took effect stays, whatever is missing now
        refusal = planning.refusal
        is_unread = ending.reason == "invalid_plan" and refusal is not None and refusal.what == MALFORMED
        detail = "no reply could be read as a plan" if is_unread else ending.detail
        parts = (detail, answer_without(planning, ""))
        return (Record((RunEnded(replace(ending, detail="\n".join(one for one in parts if one))),)),)
    responses = [planning.steps[name] for name in planning.live if planning.steps[name].step.kind == "response"]
    responses = [one for one in responses if one.status == "succeeded" and not planning.is_outdated(one)]
    said = responses[-1].result if responses else None  # what the last one has written, unless more was done since
    if said is not None and said.output and ending == done(planning):
        return (Record((RunEnded(replace(ending, answer=said.output)),)),)
    has_results = any(record.status == "succeeded" for record in planning.steps.values())
    is_asked = may_write and planning.answer is None and planning.config.answer != "off"
    is_asked = is_asked and (has_results or isinstance(ending, Completed))
    if is_asked and not (spent(state, planning) or llm_spent(state, planning, last=True)):
        return () if ANSWER in planning.children else (Record((StepStarted(ANSWER),)),)
    reason = "" if isinstance(ending, Completed) else getattr(ending, "reason", "")
    told = planning.answer or ("" if planning.config.answer == "off" else answer_without(planning, reason))
    if isinstance(ending, Completed | CompletedPartial | Stopped):
        ending = replace(ending, answer=told)
    return (Record((RunEnded(ending),)),)


def answer_without(planning: Planning, reason: str) -> str:
    """The results so far and what is left of the plan, told without asking a model; "" where nothing was done.

    What a step had done before it was taken out of the plan stays done.
    """
    records = [planning.steps[name] for name in planning.order]
    lines: list[str] = []
    for one in records:
        is_done = one.status == "succeeded" or (one.status == "superseded" and bool(one.done_calls))
        if one.result is None or not is_done:
            continue
        lines = lines or ["Done:"]
        if not planning.is_outdated(one):
            output = " ".join(one.result.output.split())
            lines.append(f"- {one.step.title}: {shortened(output, _LONGEST_RESULT + 1)}")
    if not lines:
        return ""
    if left := [one for one in records if one.status not in ("succeeded", "skipped", "superseded")]:
        lines.append("Not done:")
    for one in left:
        why = f" ({one.error.cls}: {one.error.code})" if one.error is not None else ""
        lines.append(f"- {one.step.title}: {one.status.replace('_', ' ')}{why}")
    return "\n".join([*lines, *([f"The run is over because of: {reason}"] if reason else [])])
