"""What the fold keeps of a run's progress: the trail of its turns, its failed calls, and the limit that is to be told.

Without a plan each distinct call is a step of its own, and a call that changes something begins all of them anew.
Source: spec/primitives.md, 2.4 and 2.5.
"""

from __future__ import annotations

from surefoot.core.state import Call, DueLimit, State, Turn, changed
from surefoot.core.stuck import NO_STEPS, count, record_and_check
from surefoot.core.text import json_text
from surefoot.core.trail import (
    NO_TRAIL,
    Trail,
    blocked,
    call_digest,
    progress_note,
    proposed,
    seen,
    silent,
    standing,
    turn,
)
from surefoot.types.events import StepLimitReached
from surefoot.types.progress import CONTINUE, LimitAction, StepDecision, StepIterationConfig
from surefoot.types.tools import ToolResult

RULE = "stuck"
"""Under which the gate denies a call that has come to its limit."""

RUN = "run"
"""The step that the run is as a whole: what goes in circles, or only talks."""

_DEFAULT = StepIterationConfig()


def config_of(state: State) -> StepIterationConfig:
    """The limits of the run."""
    return state.config.step_iteration or _DEFAULT


def step_of(call: Call) -> str:
    """The step that a call is, in a run without a plan."""
    return f"{call.name}({json_text(call.arguments, sort_keys=True)})"


def with_reply(state: State, made: Turn) -> State:
    """After a reply: one with neither a call nor an answer is counted, and its model told when there are too many."""
    silences = ("fault", "empty", "no_step", "narrated")
    if made.want != "any" or not (made.outcome in silences or (made.outcome == "calls" and not made.parsed.calls)):
        return state
    return _traced(state, silent(state.trail, state.seen - 1))


def with_settled(state: State) -> State:
    """After the last call of a turn has its result: the turn is one entry of the trail."""
    made, config = state.turn, config_of(state)
    if made is None:
        return state
    asked = [call for call in made.calls if call.fault is None]
    if any(call.rule == RULE for call in asked):
        digests = [call_digest(call.name, call.arguments) for call in asked]
        return _traced(state, blocked(state.trail, config, digests, state.seen - 1))
    ended = [
        seen(
            call.name,
            call.arguments,
            ok=not call.result.is_error,
            result=call.result.content,
            polling=call.spec is not None and call.spec.polling,
            whole=call.result.blob,
        )
        for call in asked
        if call.result is not None and not call.result.infrastructure
    ]
    return _traced(state, turn(state.trail, config, ended, state.seen - 1))


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
        call=call_digest(call.name, call.arguments),
        infrastructure=result.infrastructure,
        number=state.seen - 1,
    )
    if decision.decision != "stop" or not decision.first:
        return changed(state, tried=tried)
    return changed(state, tried=tried, limit_due=DueLimit(step_id, count(tried, step_id), decision))


_CIRCLES = ("repeat", "cycle", "monologue")


def limited(state: State, event: StepLimitReached) -> State:
    """A limit is on record. A run that goes in circles ends, whatever is done about a single step."""
    ends = event.pattern in _CIRCLES or event.action in (
        LimitAction.AbortTask,
        LimitAction.Replan,
        LimitAction.AnswerNow,
    )
    reason = ("stuck" if event.kind == "stuck" else "step limit") if ends else ""
    return changed(state, seen=state.seen + 1, limit_due=None, stuck=reason)


def anew(state: State) -> State:
    """After somebody has spoken: what came before is no sign any more."""
    if state.trail is NO_TRAIL and state.tried is NO_STEPS and state.limit_due is None and not state.stuck:
        return state
    return changed(state, trail=NO_TRAIL, tried=NO_STEPS, limit_due=None, stuck="")


def verdict(state: State, call: Call) -> StepDecision:
    """What there is against a call that is proposed: its step has stopped, or the turn goes on in a circle."""
    config = config_of(state)
    if not config.enabled:
        return CONTINUE
    tried = state.tried.by_id.get(step_of(call)) if state.tried.by_id else None
    if tried is not None and tried.stop is not None:
        return tried.stop
    if not state.trail.entries:
        return CONTINUE
    return proposed(state.trail, config, [call_digest(c.name, c.arguments) for c in state.calls if c.fault is None])


def _traced(state: State, trail: Trail) -> State:
    config = config_of(state)
    sign = standing(trail, config)
    if sign.decision == "continue":
        return changed(state, trail=trail)
    made = state.turn
    noted = changed(made, progress_note=progress_note(trail, config), _memo={}) if made is not None else None
    due = state.limit_due
    if sign.decision == "stop" and due is None and not state.stuck:
        due = DueLimit(RUN, len(sign.evidence), sign)
    return changed(state, trail=trail, turn=noted, limit_due=due)
