"""What the fold keeps of a run's progress: the trail of its turns, its failed calls, and the limit that is to be told.

Without a plan each distinct call is a step of its own, and a call that changes something begins all of them anew.
Source: spec/primitives.md, 2.4 and 2.5.
"""

from __future__ import annotations

from dataclasses import replace

from surefoot.core.state.lookup import Lookup
from surefoot.core.state.roles import ACTOR
from surefoot.core.state.state import Call, DueLimit, Known, State, Turn
from surefoot.core.state.stuck import NO_STEPS, Steps, ahead, count, denied, record_and_check, reset
from surefoot.core.state.trail import (
    NO_TRAIL,
    SeenCall,
    Trail,
    blocked,
    progress_note,
    proposed,
    round_ended,
    silent,
    standing,
    turn,
)
from surefoot.core.state.turn import changed
from surefoot.core.text import json_text
from surefoot.types.events import StepLimitReached
from surefoot.types.outcomes import Ask, Deny
from surefoot.types.progress import CONTINUE, LimitAction, StepDecision, StepIterationConfig
from surefoot.types.tools import ToolResult

RULE = "stuck"
"""Under which the gate denies a call that has come to its limit."""

RUN = "run"
"""The step that the run is as a whole: what goes in circles, or only talks."""

_LONGEST_NAME = 64
_DIGITS = 12
_DEFAULT = StepIterationConfig()


def config_of(state: State) -> StepIterationConfig:
    """The limits of the run."""
    return state.config.step_iteration or _DEFAULT


def reached(due: DueLimit, action: LimitAction) -> StepLimitReached:
    """A limit that is due, with what is to be done about it."""
    told = due.decision
    return StepLimitReached(
        due.step_id,
        due.attempts,
        told.reason,
        told.kind or "",
        told.pattern or "",
        action,
        told.similarity,
        tuple(told.evidence),
    )


def step_of(call: Call) -> str:
    """The step that a call is, in a run without a plan: its tool, and what tells its arguments from others."""
    return f"{call.name[:_LONGEST_NAME]}-{call.asked.hex()[:_DIGITS]}"


def with_reply(state: State, made: Turn) -> State:
    """After a reply: one with neither a call nor an answer is counted, and its model told when there are too many.

    With one model that plans and acts (`mono`), words are a round like any other. With two, a report ends a round.
    """
    if made.role == ACTOR and made.outcome == "answer" and made.want != "answer":
        state = _round_ended(state, made)
    if made.want != "any":
        return state
    silences = ("fault", "empty", *(() if state.reasoner == "mono" else ("no_step",)))
    if made.outcome in silences or (made.outcome == "calls" and not made.parsed.calls):
        return _traced(state, silent(state.trail, state.seen - 1))
    return _not_silent(state)


def _round_ended(state: State, made: Turn) -> State:
    called: list[Call] = []
    for turn_before in reversed(state.done):
        if (instruction := turn_before.parsed.instruction) is not None:
            break
        called += turn_before.calls
    else:
        return state
    if any(call.result is not None and call.result.infrastructure for call in called):
        return state
    told = json_text([instruction.text, instruction.input, instruction.tool])
    ended = [_seen(call, call.result) for call in called if call.result is not None]
    report = made.parsed.final or made.parsed.content or made.message.content
    return _traced(state, round_ended(state.trail, told, ended, report, state.seen - 1))


def with_settled(state: State) -> State:
    """After the last call of a turn has its result: the turn is one entry of the trail.

    A turn with a failure of infrastructure is none, so that nobody is called stuck for it.
    """
    made, config = state.turn, config_of(state)
    if made is None or made.want != "any":  # calls in a step without tools are counted there
        return state
    asked = [call for call in made.calls if call.fault is None]
    is_blocked = False
    for call in asked:
        if call.rule == RULE:
            is_blocked = True
            step_id = step_of(call)
            state = _decided(state, step_id, *denied(state.tried, config, step_id, number=state.seen - 1))
    if any(call.result is not None and call.result.infrastructure for call in asked):
        return _not_silent(state)
    ended = [_seen(call, call.result) for call in asked if call.result is not None]
    is_blocked = is_blocked and all(isinstance(call.decision, Deny) for call in asked)
    return _traced(state, (blocked if is_blocked else turn)(state.trail, config, ended, state.seen - 1))


def with_result(state: State, call: Call, result: ToolResult) -> State:
    """After a call has run: a failure is an attempt of its step, and a change begins every step anew."""
    if not result.is_error:
        has_changed = call.spec is not None and call.spec.effect != "read"
        return changed(state, tried=NO_STEPS) if has_changed and state.tried is not NO_STEPS else state
    step_id = step_of(call)
    tried, decision = record_and_check(
        state.tried,
        config_of(state),
        step_id,
        result.content,
        call=call.asked,
        infrastructure=result.infrastructure,
        number=state.seen - 1,
    )
    return _decided(state, step_id, tried, decision)


_CIRCLES = ("repeat", "cycle", "monologue")


def limited(state: State, event: StepLimitReached) -> State:
    """A limit is on record. A run that goes in circles ends, whatever is done about a single step."""
    due = tuple(one for one in state.limit_due if one.step_id != event.step_id)
    state = changed(state, seen=state.seen + 1, limit_due=due)
    if event.action == LimitAction.Escalate:
        return changed(state, asked=(*state.asked, event))
    if event.pattern not in _CIRCLES and event.action == LimitAction.SkipStep:
        return state
    return changed(state, stuck=_reason(event))


def questions(state: State) -> tuple[Call, ...]:
    """The limits about which a person is asked, in the form of calls that wait, each with the id of its step."""
    return tuple(
        Call(one.step_id, "", "go on", {"although": one.reason}, decision=Ask(one.reason)) for one in state.asked
    )


def answered(state: State, call_id: str, *, is_refused: bool) -> State:
    """A person has spoken about a call or a limit: its step begins anew, and what came round before is no sign now.

    A limit that stands by a person's word leaves its step stopped, and ends a run that goes in circles.
    """
    meant = next((one for one in state.asked if one.step_id == call_id), None)
    state = changed(state, trail=NO_TRAIL, asked=tuple(one for one in state.asked if one is not meant))
    if meant is not None and is_refused:
        return changed(state, stuck=_reason(meant)) if meant.pattern in _CIRCLES else state
    call = state.call(call_id)
    step_id = step_of(call) if meant is None and call is not None else call_id
    due = tuple(one for one in state.limit_due if one.step_id != step_id)
    return changed(state, tried=reset(state.tried, step_id), limit_due=due, known=_without_failures(state))


def anew(state: State) -> State:
    """After somebody has taken up a run that ended because it was stuck: what came before is no sign any more."""
    known = _without_failures(state)
    return changed(state, trail=NO_TRAIL, tried=NO_STEPS, limit_due=(), asked=(), stuck="", known=known)


def verdict(state: State, call: Call) -> StepDecision:
    """What there is against a call that is proposed: its step has stopped, or the turn goes on in a circle."""
    config = config_of(state)
    if not config.enabled:
        return CONTINUE
    if state.tried.by_id or not config.max_reattempts_per_step:
        sign = ahead(state.tried, config, step_of(call))
        if sign.decision != "continue":
            return sign
    if not state.trail.entries:
        return CONTINUE
    return proposed(state.trail, config, [c.asked for c in state.calls if c.fault is None])


def _without_failures(state: State) -> Lookup[str, Known]:
    """What is known but failures that came twice, so that a call which begins anew does run."""
    return Lookup({key: one for key, one in state.known.items() if not (one.may_repeat and one.result.is_error)})


def _reason(event: StepLimitReached) -> str:
    return "stuck" if event.kind == "stuck" else "step limit"


def _seen(call: Call, result: ToolResult) -> SeenCall:
    whole = "told" if call.is_told_once else result.outcome or result.blob or ""  # that it was not made is news
    text = "" if whole or call.rule == RULE else result.content  # that refusal counts, and so never reads the same
    polling = call.spec is not None and call.spec.polling
    return SeenCall(call.name, call.asked, not result.is_error, text, whole, polling)


def _not_silent(state: State) -> State:
    return changed(state, trail=replace(state.trail, silent=())) if state.trail.silent else state


def _decided(state: State, step_id: str, tried: Steps, decision: StepDecision) -> State:
    """A step's limit is due once, when it is reached; the model is told once that errors come round."""
    state = changed(state, tried=tried)
    if decision.decision == "correct" and state.turn is not None:
        return changed(state, turn=changed(state.turn, progress_note=progress_note(decision), _memo={}))
    if decision.decision != "stop" or not decision.first:
        return state
    return changed(state, limit_due=(*state.limit_due, DueLimit(step_id, count(tried, step_id), decision)))


def _traced(state: State, trail: Trail) -> State:
    """With the trail as it is now. A circle is told once, when it is noticed: what a role sees only grows."""
    config = config_of(state)
    sign = standing(trail, config)
    if sign.decision == "continue":
        return changed(state, trail=trail)
    made = state.turn
    if made is not None and standing(state.trail, config).decision == "continue":
        made = changed(made, progress_note=progress_note(sign), _memo={})
    due = state.limit_due
    if sign.decision == "stop" and not state.stuck and not any(one.step_id == RUN for one in (*due, *state.asked)):
        due = (*due, DueLimit(RUN, len(sign.evidence), sign))
    return changed(state, trail=trail, turn=made, limit_due=due)
