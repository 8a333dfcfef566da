"""A call that was made before, and turns that go in circles: what answers them, and what counts against them.

Without a plan each distinct call is a step of its own, and a call that changes something begins all of them anew.
Source: spec/primitives.md, 2.4 and 2.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import takewhile

from surefoot.core.gate.roles import as_meant
from surefoot.core.state import trail
from surefoot.core.state.lookup import Lookup
from surefoot.core.state.state import Call, DueLimit, Known, State, Turn
from surefoot.core.state.stuck import NO_STEPS, Steps, ahead, count, denied, record_and_check, reset
from surefoot.core.state.turn import ACTOR, changed
from surefoot.core.text import json_text
from surefoot.types.events import StepLimitReached
from surefoot.types.outcomes import Ask, Deny
from surefoot.types.progress import CONTINUE, LimitAction, StepDecision, StepIterationConfig
from surefoot.types.tools import ToolResult, ToolSpec


def fingerprint(actor: str, arguments: object) -> str:
    """SHA-256 of a tool and its parameters, or a kind of step and its instruction, as JSON (spec/planning.md, 8)."""
    return sha256(f"{actor}\0{json_text(arguments, sort_keys=True)}".encode("utf-8", "replace")).hexdigest()


def call_fingerprint(name: str, arguments: Mapping[str, object], spec: ToolSpec | None) -> str:
    """The fingerprint of a call. What it leaves out counts as said where the tool's schema names a default.

    Else a call that has had its effect would be another one as soon as a model restates what holds anyway. It is made
    anew in each fold and stands in no journal.
    """
    return fingerprint(name, arguments if spec is None else as_meant(arguments, (), spec))


NOTHING_KNOWN = Lookup[str, Known]()


def known_after(known: Lookup[str, Known], call: Call, result: ToolResult) -> Lookup[str, Known]:
    """What is still known after a call has ended. One with an effect may have changed whatever was known before.

    A failure may be tried again once; when it comes back word for word, it is known too.
    """
    spec = call.spec
    if spec is None:
        return known
    kept = NOTHING_KNOWN if call.has_effect else known
    if spec.polling or (result.infrastructure and result.kind != "in_doubt"):
        return kept
    if not result.is_error or (result.kind == "in_doubt" and not spec.may_repeat):
        return kept.plus({call.key: Known(call.id, result, spec.may_repeat)})
    before = known.get(call.key)
    answers = before is not None and before.result.content == result.content
    return kept.plus({call.key: Known(call.id, result, may_repeat=True, answers=answers)})


def result_of(state: State, call_id: str, known_id: str) -> ToolResult | None:
    """What a call is answered with: the result of another, which in a plan may be one of another step."""
    call, other = state.call(call_id), state.call(known_id)
    if other is not None or call is None:
        return other.result if other is not None else None
    known = state.known.get(call.key)
    return known.result if known is not None and known.call_id == known_id else None


def having_told(state: State, call_id: str) -> State:
    """The state once a call was answered with what is known; what has an effect runs when it is asked for again."""
    call = state.call(call_id)
    known = state.known.get(call.key) if call is not None and call.is_told_once else None
    if call is None or known is None:
        return state
    return changed(state, known=state.known.plus({call.key: replace(known, answers=False)}))


def answered_by(state: State, call: Call) -> str:
    """The call whose result answers this one, "" for none: one of the same reply, even if it failed, or a known one.

    A step of a plan that is one call with an effect was ordered as it stands, and always runs.
    """
    if call.spec is None or call.spec.polling:
        return ""
    twin, key = "", call.key
    for other in state.calls:
        if other.id == call.id:
            break
        if other.result is not None and other.key == key:
            twin = other.known or other.id
        elif other.result is not None and other.has_effect and other.attempts:
            twin = ""
    known = state.known.get(key)
    if twin or known is None or not known.answers:
        return twin
    step = state.running_step
    return "" if step is not None and step.kind == "tool" and call.has_effect else known.call_id


def is_unsure(state: State, still_open: Sequence[Call], call: Call) -> bool:
    """Whether a call before it in the reply, still open, may answer it, or change what it would be answered with.

    What an agent will do counts for limits, and is known when it has done it.
    """
    before = list(takewhile(lambda one: one.id != call.id, still_open))
    if state.gate is not None and any(one.spec and one.spec.delegates and one.has_effect for one in before):
        return True
    alike = [one for one in before if one.name == call.name and one.arguments == call.arguments]
    if alike and any(one.key == call.key for one in alike):  # as JSON, where 1 and true differ
        return True
    return any(one.has_effect for one in before) and bool(answered_by(state, call))


def is_beside(state: State, call_id: str, steps: Mapping[str, State]) -> bool:
    """Whether another step of a plan is at what a verdict on the call waits for.

    That is the very call that an agent of this step asks for: what comes of it there answers it here. Or it is an agent
    that may change something: what that does counts for limits, and is known when it has done it.
    """
    call, step = state.call(call_id), state.running_step
    if call is None or not call.has_effect:
        return False
    is_agents, has_gate = step is not None and step.kind != "tool", state.gate is not None
    begun = (one for child in steps.values() if child.scope != state.scope for one in child.calls if one.attempts)
    return any(
        (is_agents and one.key == call.key)
        or (has_gate and one.has_effect and one.spec and one.spec.delegates and not one.asks)
        for one in begun
        if one.is_open
    )


RULE = "stuck"  # under which the gate denies a call that has come to its limit
RUN = "run"  # the step that the run is as a whole: what goes in circles, or only talks
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
    return f"{call.name[:_LONGEST_NAME]}-{call.trail_key.hex()[:_DIGITS]}"


def with_reply(state: State, made: Turn) -> State:
    """After a reply: one with neither a call nor an answer is counted, and its model told when there are too many.

    With one model that plans and acts (`mono`), words are a round like any other. With two, a report ends a round.
    """
    if made.role == ACTOR and made.outcome == "answer" and made.want != "answer":
        state = _round_ended(state, made)
    if made.want != "any":
        return state
    is_silent = not made.parsed.calls if made.outcome == "calls" else made.outcome in ("fault", "empty", "no_step")
    if is_silent and not (made.outcome == "no_step" and state.reasoner == "mono"):
        return _traced(state, trail.silent(state.trail, state.seen - 1))
    return _not_silent(state) if state.trail.silent else state


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
    ended = [_trail_entry(call, call.result) for call in called if call.result is not None]
    report = made.parsed.final or made.parsed.content or made.message.content
    return _traced(state, trail.round_ended(state.trail, told, ended, report, state.seen - 1))


def with_settled(state: State) -> State:
    """After the last call of a turn: one entry of the trail, but none where infrastructure failed."""
    made, config = state.turn, config_of(state)
    if made is None or made.want != "any":  # calls in a step without tools are counted there
        return state
    if state.scope and state.running_step is not None and state.running_step.kind == "tool":
        return state  # it is over with its one call
    calls: list[trail.SeenCall] = []
    is_blocked = is_broken = False
    for call in made.calls:
        if call.rule == RULE:
            is_blocked, step_id = True, step_of(call)
            state = _decided(state, step_id, *denied(state.tried, config, step_id, number=state.seen - 1))
        if call.fault is None and call.result is not None:
            is_broken = is_broken or call.result.infrastructure
            calls.append(_trail_entry(call, call.result))
    if is_broken:
        return _not_silent(state) if state.trail.silent else state
    is_blocked = is_blocked and all(isinstance(call.decision, Deny) for call in made.calls if call.fault is None)
    return _traced(state, (trail.blocked if is_blocked else trail.turn)(state.trail, config, calls, state.seen - 1))


def with_result(state: State, call: Call, result: ToolResult) -> State:
    """After a call has run: a failure is an attempt of its step, and a change begins every step anew."""
    if state.scope and state.running_step is not None and state.running_step.kind == "tool":
        return state  # the same
    if not result.is_error:
        if not state.tried:
            return state
        if call.spec is not None and call.spec.effect != "read":
            return changed(state, tried=NO_STEPS)
        step = step_of(call)
        return changed(state, tried=reset(state.tried, step)) if count(state.tried, step) else state
    return having_failed(state, step_of(call), result.content, call.trail_key, infrastructure=result.infrastructure)


def having_failed(state: State, step_id: str, error: str, call: bytes, *, infrastructure: bool) -> State:
    """After an attempt of a step has failed; `call` is the digest of what was called."""
    number = state.seen - 1
    tried, decision = record_and_check(
        state.tried, config_of(state), step_id, error, call=call, infrastructure=infrastructure, number=number
    )
    return _decided(state, step_id, tried, decision)


_CIRCLES = ("repeat", "cycle", "monologue")


def limited(state: State, event: StepLimitReached) -> State:
    """A limit is on record. A run that goes in circles ends, whatever is done about a single step."""
    due = tuple(one for one in state.limit_due if one.step_id != event.step_id)
    state = changed(state, limit_due=due)
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
    """A person has spoken about a call or a limit: its step begins anew, and what came round before is forgotten.

    A limit that stands by a person's word leaves its step stopped, and ends a run that goes in circles.
    """
    meant = next((one for one in state.asked if one.step_id == call_id), None)
    state = changed(state, trail=trail.NO_TRAIL, asked=tuple(one for one in state.asked if one is not meant))
    if meant is not None and is_refused:
        return changed(state, stuck=_reason(meant)) if meant.pattern in _CIRCLES else state
    call = state.call(call_id)
    step_id = step_of(call) if meant is None and call is not None else call_id
    due = tuple(one for one in state.limit_due if one.step_id != step_id)
    return changed(state, tried=reset(state.tried, step_id), limit_due=due, known=_without_failures(state))


def anew(state: State) -> State:
    """After somebody has taken up a run that ended because it was stuck: what came before is not a sign any more."""
    known = _without_failures(state)
    return changed(state, trail=trail.NO_TRAIL, tried=NO_STEPS, limit_due=(), asked=(), stuck="", known=known)


def verdict(state: State, call: Call) -> StepDecision:
    """What there is against a call that is proposed: its step has stopped, or the turn goes on in a circle."""
    config = config_of(state)
    if not config.enabled:
        return CONTINUE
    if state.tried or not config.max_reattempts_per_step:
        sign = ahead(state.tried, config, step_of(call))
        if sign.decision != "continue":
            return sign
    if not state.trail.entries:
        return CONTINUE
    return trail.proposed(state.trail, config, [c.trail_key for c in state.calls if c.fault is None])


def _without_failures(state: State) -> Lookup[str, Known]:
    """What is known but failures that came twice, so that a call which begins anew does run."""
    return Lookup({key: one for key, one in state.known.items() if not (one.may_repeat and one.result.is_error)})


def _reason(event: StepLimitReached) -> str:
    return "stuck" if event.kind == "stuck" else "step limit"


def _trail_entry(call: Call, result: ToolResult) -> trail.SeenCall:
    # that it was not made is news
    whole = "told" if call.known and call.is_told_once else result.outcome or result.blob or ""
    text = "" if whole or call.rule == RULE else result.content  # that refusal counts, and so never reads the same
    polling = call.spec is not None and call.spec.polling
    return trail.SeenCall(call.name, call.trail_key, not result.is_error, text, whole, polling)


def _not_silent(state: State) -> State:
    return changed(state, trail=replace(state.trail, silent=()))


def _decided(state: State, step_id: str, tried: Steps, decision: StepDecision) -> State:
    """A step's limit is due once, when it is reached; the model is told once that errors come round."""
    state = changed(state, tried=tried)
    if decision.decision == "correct" and state.turn is not None:
        return state.with_turn(progress_note=trail.progress_note(decision))
    if decision.decision != "stop" or not decision.first:
        return state
    return changed(state, limit_due=(*state.limit_due, DueLimit(step_id, count(tried, step_id), decision)))


def _traced(state: State, now: trail.Trail) -> State:
    """With the trail as it is now. A circle is told once, when it is noticed: what a role sees only grows."""
    config = config_of(state)
    sign = trail.standing(now, config)
    if sign.decision == "continue":
        return changed(state, trail=now)
    if trail.standing(state.trail, config).decision == "continue":
        state = state.with_turn(progress_note=trail.progress_note(sign))
    due = state.limit_due
    if sign.decision == "stop" and not state.stuck and not any(one.step_id == RUN for one in (*due, *state.asked)):
        due = (*due, DueLimit(RUN, len(sign.evidence), sign))
    return changed(state, trail=now, limit_due=due)
