"""What has happened: events added up into one frozen state.

`fold` is incremental: in parts it gives what it gives in one go. A turn is one reply of a model with the calls it asked
for. What a reply *was* (`Outcome`) is decided here, once, and the counters of faults, nudges and empty replies follow
from it. Source of the rules: spec/react.md, sections 7, 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from surefoot.core.context import window_of
from surefoot.core.gate.judge import REASONING_STEP
from surefoot.core.guarded import forked, guard_of, heard, selected, with_answer, with_stage, with_start, with_verdict
from surefoot.core.modes import mode_for
from surefoot.core.plan.record import PlanRecord
from surefoot.core.plan.steps import taken_up, with_step
from surefoot.core.reasoners.shown import droppable, fit_of
from surefoot.core.replied import calls_of, outcome_of
from surefoot.core.roles import PREFETCH, rounds_to_tell
from surefoot.core.running import guidance
from surefoot.core.state import EMPTY, Call, Known, Outcome, SpeakerState, State, Turn, changed, subset
from surefoot.core.touched import ROOT
from surefoot.core.tracked import anew, answered, limited, with_reply, with_result, with_settled
from surefoot.core.window import Fit, limit_in, stretched
from surefoot.types.decisions import Allow, Ask, Deny
from surefoot.types.events import (
    CallEnded,
    CallJudged,
    CallReused,
    CallStarted,
    ConventionsRead,
    DoubtSettled,
    Event,
    IntentAnchored,
    ModelFailed,
    ModelReplied,
    ModelTraitLearnt,
    PreHydrationComplete,
    ReferencesFound,
    RunEnded,
    RunForked,
    RunResumed,
    RunStarted,
    Speaker,
    StepLimitReached,
    ToolsSelected,
    ValuesEndorsed,
)
from surefoot.types.guard_events import JudgementMade, PerceptionSanitised
from surefoot.types.messages import ModelMessage
from surefoot.types.moves import Think
from surefoot.types.reply import Parsed
from surefoot.types.step_events import OfStep
from surefoot.types.tools import ToolResult

PROBE = "probe"
"""Who settles a doubt when it is not a person."""

MOST_PROBED_ATTEMPTS = 3
"""Attempts of one call after which a probe that says "not done" no longer lets it run again."""

_ENDLESS = 10**12


def fold(events: Iterable[Event], start: State = EMPTY) -> State:
    """Add events up into a state. Same events, same state; in one go or in parts."""
    for event in events:
        start = _apply(start, event)
    return start


def _apply(state: State, event: Event) -> State:
    match event:
        case ModelReplied():
            return _replied(state, event)
        case CallJudged():
            return _judged(state, event)
        case CallStarted(call_id, attempt):
            call = state.call(call_id)
            origin = (call.origin if call else "") or state.run_id
            return with_start(_with_call(state, call_id, attempts=attempt, doubt="", origin=origin), call_id)
        case IntentAnchored() | ValuesEndorsed():
            return heard(state, event)
        case CallEnded():
            return _ended(state, event)
        case CallReused(call_id, known_id):
            known = state.call(known_id)
            return _with_call(state, call_id, known=known_id, decision=Allow(), result=known.result if known else None)
        case RunStarted():
            return _started(state, event)
        case ToolsSelected(visible):
            offered = subset(state.tools, visible)
            return selected(changed(state, seen=state.seen + 1, offered=offered, heads={}), event)
        case ModelTraitLearnt():
            return _learnt(state, event)
        case ModelFailed():
            return _failed(state, event)
        case DoubtSettled():
            return _settled(state, event)
        case RunResumed() | RunForked():
            return _taken_up(state, event)
        case ReferencesFound():
            return _found(state, event)
        case PreHydrationComplete():
            return changed(state, seen=state.seen + 1, turn=None, hydrated=event, heads={})
        case ConventionsRead():
            return _conventions(state, event)
        case StepLimitReached():
            return limited(state, event)
        case OfStep():
            return with_step(state, event)
        case PerceptionSanitised() | JudgementMade():
            return with_stage(state, event)
        case RunEnded(ending):
            return changed(state, seen=state.seen + 1, ending=ending)
        case _:
            assert_never(event)


def _started(state: State, event: RunStarted) -> State:
    return changed(
        state,
        seen=state.seen + 1,
        run_id=event.run_id,
        task=event.task,
        speakers={role: _speaking(speaker) for role, speaker in event.speakers.items()},
        tools=event.tools,
        offered=event.tools,
        prompts=event.prompts,
        instructions=event.instructions,
        reasoner=event.reasoner,
        config=event.config,
        plan=PlanRecord(event.task.steps) if event.task.steps else None,
        heads={},
    )


def _speaking(speaker: Speaker) -> SpeakerState:
    mode = mode_for(speaker.call_mode, speaker.traits)
    return SpeakerState(speaker.model, speaker.call_mode, mode, speaker.traits)


def _taken_up(state: State, event: RunResumed | RunForked) -> State:
    taken = changed(
        state,
        seen=state.seen + 1,
        run_id=event.run_id if isinstance(event, RunForked) else state.run_id,
        speakers={role: _goes_on(kept, event.speakers.get(role)) for role, kept in state.speakers.items()},
        config=replace(event.config, guard=guard_of(state, event.config)) if event.config else state.config,
        failure=None,
        plan=taken_up(state.plan),
        ending=None,
    )
    turn = taken.turn
    if turn is not None and turn.outcome == "refused":  # whoever takes it up wants it asked again
        taken = changed(taken, turn=changed(turn, outcome="empty", _memo={}))
    taken = _ask_probes_again(forked(taken) if isinstance(event, RunForked) else taken)
    return anew(taken) if state.ending is not None and state.stuck else taken


def _goes_on(kept: SpeakerState, speaker: Speaker | None) -> SpeakerState:
    """A speaker when the run is taken up: what counts in a row begins anew, and so does all of another model."""
    if speaker is not None and speaker.model != kept.model:
        # what the other model did says nothing about this one
        return changed(_speaking(speaker), usage=kept.usage, replies=kept.replies)
    start = speaker.call_mode if speaker else kept.start_mode
    mode = mode_for(start, kept.traits)
    nothing_learnt = frozenset[tuple[str, str]]()
    return changed(kept, start_mode=start, mode=mode, learnt=nothing_learnt, overflows=0, **_NO_COUNTERS)


_NO_COUNTERS: dict[str, object] = {"faults_running": 0, "empty_running": 0, "nudges_running": 0, "cuts_running": 0}


def _ask_probes_again(state: State) -> State:
    turn = state.turn
    if turn is None or not any(call.doubt == "unknown" for call in turn.calls):
        return state
    calls = tuple([changed(call, doubt="") if call.doubt == "unknown" else call for call in turn.calls])
    return changed(state, turn=changed(turn, calls=calls, _memo={}))


def _learnt(state: State, event: ModelTraitLearnt) -> State:
    speakers = {
        role: _knowing(speaker, event) if speaker.model == event.model and event.role in ("", role) else speaker
        for role, speaker in state.speakers.items()
    }
    return changed(state, seen=state.seen + 1, speakers=speakers)


def _knowing(speaker: SpeakerState, event: ModelTraitLearnt) -> SpeakerState:
    traits = {**speaker.traits, event.trait: event.value}
    mode = mode_for(speaker.start_mode, traits)
    counters = {} if mode == speaker.mode else _NO_COUNTERS
    learnt = speaker.learnt | {(event.trait, event.value)}
    return changed(speaker, traits=traits, mode=mode, learnt=learnt, **counters)


def _found(state: State, event: ReferencesFound) -> State:
    calls = tuple(
        Call(f"0.{call.position}", f"prefetch_{call.position}", call.name, call.arguments, state.tools.get(call.name))
        for call in event.calls
    )
    spoken = Turn(0, ModelMessage("assistant"), Parsed(event.calls), "native", "any", PREFETCH, "calls", calls)
    elapsed_s = max(state.elapsed_s, event.elapsed_s)
    return changed(state, seen=state.seen + 1, found=event, turn=spoken if calls else None, elapsed_s=elapsed_s)


def _conventions(state: State, event: ConventionsRead) -> State:
    """What was told of the root stands before the task and is replaced there; the rest goes with the turn."""
    told, turn = state.conventions, state.turn
    state = changed(state, seen=state.seen + 1, conventions=(*told, event), heads={})
    if told and event.scope == ROOT and event.message:
        root = replace(told[0], files=event.files, message=event.message)  # the root is read first
        return changed(state, conventions=(root, *told[1:], replace(event, files=(), message="")))
    if turn is None or not event.message:
        return state
    message = f"{turn.conventions}\n\n{event.message}".strip()
    return changed(state, turn=changed(turn, conventions=message, _memo={}))


def _failed(state: State, event: ModelFailed) -> State:
    speaker = state.speakers[event.role]
    spent = speaker.usage + event.usage
    if event.kind == "context_overflow":
        speaker = changed(speaker, usage=spent, overflows=speaker.overflows + 1, fit=_overflown(state, event))
    else:
        speaker = changed(speaker, usage=spent)
    return changed(
        state,
        seen=state.seen + 1,
        failure=event,
        speakers={**state.speakers, event.role: speaker},
        usage=state.usage + event.usage,
        elapsed_s=max(state.elapsed_s, event.elapsed_s),
    )


def _overflown(state: State, event: ModelFailed) -> Fit:
    """What is shown after an overflow: less by a known window, else a quarter less of the turns, oldest first."""
    speaker = state.speakers[event.role]
    fit = replace(speaker.fit, limit=_limit(speaker.fit, event))
    if (window := window_of(_with_fit(state, event.role, fit), event.role)) is None:
        dropped = fit.dropped + max(1, (state.steps - fit.dropped) // 4)  # so that two tries make real room
        return replace(fit, dropped=max(fit.dropped, min(droppable(state, event.role), dropped)), counted=0, turns=0)
    before = _with_fit(state, event.role, replace(fit, limit=speaker.fit.limit or _ENDLESS))
    sent = fit_of(before, Think(state.steps + 1, event.role, event.want)).request
    return replace(fit, stretch=max(fit.stretch, window / sent))


def _with_fit(state: State, role: str, fit: Fit) -> State:
    return changed(state, speakers={**state.speakers, role: changed(state.speakers[role], fit=fit)})


def _limit(fit: Fit, event: ModelFailed) -> int | None:
    """The least window that a server has named in its complaints."""
    limits = [limit for limit in (fit.limit, limit_in(event.message)) if limit]
    return min(limits, default=None)


def _replied(state: State, event: ModelReplied) -> State:
    outcome = outcome_of(state, event)
    calls, ids = calls_of(state, event)
    speaker = state.speakers[event.role]
    fit = fit_of(state, Think(event.step, event.role, event.want))
    step, told = state.running_step, guidance(state)
    state = changed(
        state,
        seen=state.seen + 1,
        done=(*state.done, state.turn) if state.turn else state.done,
        speakers={**state.speakers, event.role: _having_said(speaker, event, outcome, fit)},
        wire_ids=state.wire_ids | ids if ids else state.wire_ids,
        usage=state.usage + event.message.usage,
        requests=state.requests + event.requests,
        elapsed_s=max(state.elapsed_s, event.elapsed_s),
        calls_made=state.calls_made + len(event.parsed.calls),
        failure=None,
    )
    left = rounds_to_tell(state, event.role)
    turn = Turn(event.step, event.message, event.parsed, event.mode, event.want, event.role, outcome, calls, left)
    if step is not None:
        turn = changed(turn, step_id=step.step_id, guidance=told)
    return with_reply(changed(state, turn=turn), turn)


def _having_said(speaker: SpeakerState, event: ModelReplied, outcome: Outcome, fit: Fit) -> SpeakerState:
    parsed, message = event.parsed, event.message
    is_fault = outcome == "fault" or (outcome == "calls" and not parsed.calls)
    is_good = outcome in ("answer", "instruction", "refused") or (outcome == "calls" and not is_fault)
    is_leak = event.mode == "native" and event.want == "any" and bool(parsed.calls) and not message.calls

    def running(counted: int, *, more: bool) -> int:
        return 0 if is_good else counted + more  # kinds of trouble may take turns: none hides another

    return changed(
        speaker,
        usage=speaker.usage + message.usage,
        replies=speaker.replies + 1,
        rounds=speaker.rounds + (event.want != "answer"),
        faults_running=running(speaker.faults_running, more=is_fault),
        empty_running=running(speaker.empty_running, more=outcome == "empty"),
        nudges_running=running(speaker.nudges_running, more=outcome == "no_step"),
        cuts_running=running(speaker.cuts_running, more=outcome == "cut"),
        narrated=speaker.narrated + (outcome == "narrated"),
        leaks=speaker.leaks + is_leak,
        calls_natively=speaker.calls_natively or bool(message.calls),
        overflows=0,
        fit=stretched(fit, message.usage, event.requests, message.attempts),
    )


def _judged(state: State, event: CallJudged) -> State:
    decision = event.decision
    changes: dict[str, object] = {"decision": decision, "rule": event.rule}
    if event.grounds.digest:
        changes["digest"] = event.grounds.digest
    match decision:
        case Deny(reason):  # a refusal is a result that the model can read
            kind = "ReasoningStepViolation" if event.rule == REASONING_STEP else "denied"
            changes["result"] = ToolResult(reason, kind, source="gate", trust="trusted")
        case Allow():
            call = next((c for c in state.calls if c.id == event.call_id), None)
            if call and call.spec and call.spec.finish:  # a finish tool does nothing but say that it is over
                changes["result"] = ToolResult("accepted", source="surefoot", trust="trusted")
        case Ask():
            pass
        case _:
            assert_never(decision)
    state = with_verdict(_with_call(state, event.call_id, **changes), event)
    return answered(state, event.call_id, is_refused=isinstance(decision, Deny)) if event.by else state


def _ended(state: State, event: CallEnded) -> State:
    state = changed(state, elapsed_s=max(state.elapsed_s, event.elapsed_s))
    return _with_result(state, event.call_id, event.result)


def _settled(state: State, event: DoubtSettled) -> State:
    state = changed(state, elapsed_s=max(state.elapsed_s, event.elapsed_s))
    call = state.call(event.call_id)
    match event.outcome:
        case "done":
            result = event.result or ToolResult(f"done, as {event.by} says", source=event.by, trust="trusted")
            return _with_result(state, event.call_id, result)
        case "not_done":
            # a probe that says no again and again is not believed for ever
            is_doubtful = event.by == PROBE and call is not None and call.attempts >= MOST_PROBED_ATTEMPTS
            return _with_call(state, event.call_id, doubt="unknown" if is_doubtful else "not_done")
        case "unknown":
            return _with_call(state, event.call_id, doubt="unknown")
        case _:
            assert_never(event.outcome)


def _with_result(state: State, call_id: str, result: ToolResult) -> State:
    """The call has had its effect: it has a result, and what was known before may have changed."""
    state = with_answer(_with_call(state, call_id, result=result), call_id)
    call = next((c for c in state.calls if c.id == call_id), None)
    if call is None or (state.turn is not None and state.turn.role == PREFETCH):
        return state
    known = _known_after(state.known, call)
    state = with_result(state, call, result)
    return changed(state, known=known, has_cut_result=state.has_cut_result or result.blob is not None)


def _known_after(known: Mapping[str, Known], call: Call) -> Mapping[str, Known]:
    """What is still known after a call has ended, for identical calls to be answered with.

    A call with an effect may have changed whatever was read before, and may have undone what an idempotent call did:
    both may be asked for again. What a call that is not idempotent did stays known for the whole run, so that it
    never runs twice. A failure may be tried again once; when it comes back word for word, it is known too.
    """
    result = call.result
    spec = call.spec
    if spec is None or result is None:
        return known
    kept = known if spec.effect == "read" else {key: one for key, one in known.items() if not one.may_repeat}
    if spec.polling or result.infrastructure:
        return kept
    if not result.is_error or (result.kind == "in_doubt" and not spec.may_repeat):
        return {**kept, call.key: Known(call.id, result, spec.may_repeat)}
    before = known.get(call.key)
    is_certain = before is not None and before.result.content == result.content
    return {**kept, call.key: Known(call.id, result, may_repeat=True, is_certain=is_certain)}


def _with_call(state: State, call_id: str, **changes: object) -> State:
    turn = state.turn
    if turn is None:
        return changed(state, seen=state.seen + 1)
    calls = tuple([changed(call, **changes) if call.id == call_id else call for call in turn.calls])
    state = changed(state, seen=state.seen + 1, turn=changed(turn, calls=calls, _memo={}))
    is_settled = "result" in changes and not any(call.is_open for call in calls)
    return with_settled(state) if is_settled and turn.role != PREFETCH else state
