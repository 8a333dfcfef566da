"""What has happened: events added up into one frozen state.

`fold` is incremental: in parts it gives what it gives in one go. A turn is one reply of a model with the calls it asked
for. What a reply *was* (`Outcome`) is decided here, once, and the counters of faults, nudges and empty replies follow
from it. Source of the rules: spec/react.md, sections 7, 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from surefoot.core.modes import mode_for
from surefoot.core.state import EMPTY, Call, Known, Outcome, State, Turn, changed, subset
from surefoot.types.decisions import Allow, Ask, Deny
from surefoot.types.events import (
    CallEnded,
    CallJudged,
    CallReused,
    CallStarted,
    DoubtSettled,
    Event,
    ModelFailed,
    ModelReplied,
    ModelTraitLearnt,
    RunEnded,
    RunForked,
    RunResumed,
    RunStarted,
    ToolsSelected,
)
from surefoot.types.tools import ToolResult


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
            return _with_call(state, call_id, attempts=attempt)
        case CallEnded():
            return _ended(state, event)
        case CallReused(call_id, known_id):
            known = state.call(known_id)
            return _with_call(state, call_id, known=known_id, decision=Allow(), result=known.result if known else None)
        case RunStarted():
            return _started(state, event)
        case ToolsSelected(visible):
            return changed(state, seen=state.seen + 1, offered=subset(state.tools, visible))
        case ModelTraitLearnt():
            return _learnt(state, event)
        case ModelFailed():
            return _failed(state, event)
        case DoubtSettled():
            return _settled(state, event)
        case RunResumed() | RunForked():
            return _taken_up(state, event)
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
        model=event.model,
        tools=event.tools,
        offered=event.tools,
        prompts=event.prompts,
        instructions=event.instructions,
        reasoner=event.reasoner,
        config=event.config,
        start_mode=event.call_mode,
        mode=event.call_mode,
        traits=event.traits,
        heads={},
    )


def _taken_up(state: State, event: RunResumed | RunForked) -> State:
    mode = event.call_mode or state.mode
    return changed(
        state,
        seen=state.seen + 1,
        model=event.model or state.model,
        traits=event.traits if event.model else state.traits,
        mode=mode,
        start_mode=event.call_mode or state.start_mode,
        failure=None,
        ending=None,
        faults_running=0,
        empty_running=0,
        overflows=0,
        config=event.config or state.config,
        run_id=event.run_id if isinstance(event, RunForked) else state.run_id,
    )


def _learnt(state: State, event: ModelTraitLearnt) -> State:
    traits = {**state.traits, event.trait: event.value}
    mode = mode_for(state.start_mode, traits)
    counters = {} if mode == state.mode else {"faults_running": 0, "empty_running": 0, "nudges_running": 0}
    return changed(state, seen=state.seen + 1, traits=traits, mode=mode, **counters)


def _failed(state: State, event: ModelFailed) -> State:
    overflow = event.kind == "context_overflow"
    turns = len(state.done) + (state.turn is not None)
    return changed(
        state,
        seen=state.seen + 1,
        failure=event,
        usage=state.usage + event.usage,
        elapsed_s=max(state.elapsed_s, event.elapsed_s),
        overflows=state.overflows + overflow,
        # a quarter of the steps that are still shown, oldest first, so that two tries make real room
        dropped=state.dropped + max(1, (turns - state.dropped) // 4) if overflow else state.dropped,
    )


def _replied(state: State, event: ModelReplied) -> State:
    outcome = outcome_of(state, event)
    calls, ids = _calls(state, event)
    is_fault = outcome == "fault" or (outcome == "calls" and not event.parsed.calls)
    is_leak = event.mode == "native" and bool(event.parsed.calls) and not event.message.calls
    return changed(
        state,
        seen=state.seen + 1,
        done=(*state.done, state.turn) if state.turn else state.done,
        turn=Turn(event.step, event.message, event.parsed, event.mode, event.want, event.role, outcome, calls),
        wire_ids=state.wire_ids | ids if ids else state.wire_ids,
        usage=state.usage + event.message.usage,
        requests=state.requests + 1,
        elapsed_s=max(state.elapsed_s, event.elapsed_s),
        faults_running=state.faults_running + 1 if is_fault else 0,
        empty_running=state.empty_running + 1 if outcome == "empty" else 0,
        nudges_running=state.nudges_running + 1 if outcome == "no_step" else 0,
        cuts_running=state.cuts_running + 1 if outcome == "cut" else 0,
        narrated=state.narrated + (outcome == "narrated"),
        leaks=state.leaks + is_leak,
        calls_made=state.calls_made + len(event.parsed.calls),
        failure=None,
        overflows=0,
    )


def outcome_of(state: State, event: ModelReplied) -> Outcome:
    """What a reply was. Decided by what stands in it, never by `finish_reason` alone (spec/react.md, section 7.6)."""
    parsed, message = event.parsed, event.message
    if parsed.calls or parsed.errors:
        return "fault" if event.want == "answer" else "calls"
    if message.finish_reason == "content_filter":
        return "refused"
    text = parsed.final if parsed.final is not None else None if parsed.error else parsed.content
    if text is not None and text.strip():
        if message.finish_reason == "length":
            return "cut"
        is_plain = parsed.final is None and event.mode == "native" and event.want == "any"
        if is_plain and not state.calls_made and any(tool.name in text for tool in state.offered.tools):
            return "narrated"
        return "answer"
    if parsed.error is None or parsed.error.kind == "empty":
        return "empty"
    return "no_step" if parsed.error.kind in ("no_step", "no_call") else "fault"


def _calls(state: State, event: ModelReplied) -> tuple[tuple[Call, ...], frozenset[str]]:
    """The calls of a reply in document order, faulty ones among them, each with an id that is new in this run."""
    if event.want == "answer":
        return (), frozenset()
    ids: set[str] = set()

    def wire_id(received: str, position: int) -> str:
        minted = f"call_{event.step}_{position}"
        chosen = minted if not received or received in ids or received in state.wire_ids else received
        while chosen in ids or chosen in state.wire_ids:
            chosen += "_"
        ids.add(chosen)
        return chosen

    found = [
        Call(f"{event.step}.{c.position}", wire_id(c.id, c.position), c.name, c.arguments, state.tools.get(c.name))
        for c in event.parsed.calls
    ]
    found += [
        Call(f"{event.step}.{e.position}", wire_id(e.id, e.position), e.name, {}, None, e.error)
        for e in event.parsed.errors
    ]
    if event.parsed.errors:
        found.sort(key=lambda call: call.position)
    return tuple(found), frozenset(ids)


def _judged(state: State, event: CallJudged) -> State:
    decision = event.decision
    changes: dict[str, object] = {"decision": decision, "rule": event.rule}
    match decision:
        case Deny(reason):  # a refusal is a result that the model can read
            changes["result"] = ToolResult(reason, kind="denied", source="gate", trust="trusted")
        case Allow():
            call = next((c for c in state.calls if c.id == event.call_id), None)
            if call and call.spec and call.spec.finish:  # a finish tool does nothing but say that it is over
                changes["result"] = ToolResult("accepted", source="surefoot", trust="trusted")
        case Ask():
            pass
        case _:
            assert_never(decision)
    return _with_call(state, event.call_id, **changes)


def _ended(state: State, event: CallEnded) -> State:
    state = _with_call(state, event.call_id, result=event.result)
    call = next((c for c in state.calls if c.id == event.call_id), None)
    if call is None:
        return state
    return changed(
        state,
        known=_known_after(state.known, call),
        elapsed_s=max(state.elapsed_s, event.elapsed_s),
        has_cut_result=state.has_cut_result or event.result.blob is not None,
    )


def _settled(state: State, event: DoubtSettled) -> State:
    match event.outcome:
        case "done":
            result = event.result or ToolResult(f"done, as {event.by} says", source=event.by, trust="trusted")
            return _with_call(state, event.call_id, result=result)
        case "not_done":
            return _with_call(state, event.call_id, attempts=0, doubted=False)
        case "unknown":
            return _with_call(state, event.call_id, doubted=True)
        case _:
            assert_never(event.outcome)


def _known_after(known: Mapping[str, Known], call: Call) -> Mapping[str, Known]:
    """What is still known after a call has ended, for identical calls to be answered with.

    A call with an effect may have changed whatever was read before, and may have undone what an idempotent call did:
    both may be asked for again. What a call that is not idempotent did stays known for the whole run, so that it
    never runs twice. Failures are never known: trying again may be right.
    """
    result = call.result
    spec = call.spec
    if spec is None or result is None:
        return known
    kept = known if spec.effect == "read" else {key: one for key, one in known.items() if not one.may_repeat}
    if result.is_error or spec.polling:
        return kept
    return {**kept, call.key: Known(call.id, result, spec.may_repeat)}


def _with_call(state: State, call_id: str, **changes: object) -> State:
    turn = state.turn
    if turn is None:
        return changed(state, seen=state.seen + 1)
    calls = tuple([changed(call, **changes) if call.id == call_id else call for call in turn.calls])
    return changed(state, seen=state.seen + 1, turn=changed(turn, calls=calls, _memo={}))
