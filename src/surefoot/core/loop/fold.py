"""What has happened: events added up into one frozen state.

In parts it gives what it gives in one go. Source of the rules: spec/react.md, sections 7, 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import assert_never

from surefoot.core.guard import ledger
from surefoot.core.guard.judge import REASONING_STEP
from surefoot.core.guard.resume import followed, judged_again, with_config, with_effects
from surefoot.core.loop.slices import fit_of, fit_overflown
from surefoot.core.loop.steps import retried, with_step
from surefoot.core.plan.fold import having_read, in_children, planning_of, taken_up, with_plan
from surefoot.core.plan.limits import with_limit, with_tries
from surefoot.core.state import repeats
from surefoot.core.state.plans import PlanRecord
from surefoot.core.state.roles import NO_COUNTERS, PREFETCH, ROUNDED, goes_on, mode_for, rounds_to_tell, speaking
from surefoot.core.state.state import EMPTY, Call, SpeakerState, State, Turn, subset
from surefoot.core.state.turn import MOST_ATTEMPTS, Outcome, changed
from surefoot.core.state.window import Fit, stretched
from surefoot.core.view.step import calls_of, guidance, outcome_of
from surefoot.types import events
from surefoot.types.guard_events import JudgementMade, OfTree, PerceptionSanitised
from surefoot.types.inner import CallPaused
from surefoot.types.knowledge import ROOT
from surefoot.types.messages import ModelMessage
from surefoot.types.outcomes import Allow, Ask, Deny
from surefoot.types.plan_events import OfPlan, OfStep
from surefoot.types.reply import Parsed
from surefoot.types.tools import ToolResult

PROBE = "probe"  # who settles a doubt when it is not a person


def fold(given: Iterable[events.Event], start: State = EMPTY) -> State:
    """Add events up into a state. Same events, same state; in one go or in parts."""
    for event in given:
        start = _apply(start, event)
    return start


def _apply(state: State, event: events.Event) -> State:
    also = {"seen": state.seen + 1, "elapsed_s": max(state.elapsed_s, getattr(event, "elapsed_s", 0.0))}
    match event:  # those of every step count together with what they change
        case events.ModelReplied():
            return _replied(state, event, also)
        case events.CallJudged():
            return _judged(state, event, also)
        case events.CallStarted(call_id, attempt):
            call = state.call(call_id)
            origin = (call.origin if call else "") or state.run_id
            state = _with_call(state, call_id, also, attempts=attempt, doubt="", origin=origin)
            return ledger.with_start(state, call_id) if state.gate is not None else state
        case events.CallEnded(inner=inner):
            state = ledger.with_inner(state, event.call_id, inner) if inner is not None else state
            return _with_result(state, event.call_id, event.result, also)
        case _:
            state = changed(state, **also)
    match event:
        case events.RunEnded(ending):
            return changed(state, ending=ending)
        case events.IntentAnchored() | events.ValuesEndorsed():
            return ledger.hear(state, event)
        case CallPaused(call_id, inner):
            return ledger.with_inner(state, call_id, inner)
        case events.CallReused(call_id, known_id):
            result = repeats.result_of(state, call_id, known_id)
            told = _with_call(state, call_id, {}, known=known_id, decision=Allow(), result=result)
            return repeats.having_told(told, call_id)
        case events.RunStarted():
            return _started(state, event)
        case events.ToolsSelected(visible, selection=None):
            return ledger.selected(changed(state, offered=subset(state.tools, visible), heads={}), event)
        case events.ModelTraitLearnt():
            return having_learnt(state, event)
        case events.ModelFailed():
            return having_failed(state, event)
        case events.DoubtSettled():
            return _settle(state, event)
        case events.RunResumed() | events.RunForked() | events.DriverChanged() | events.RunNoted():
            return _taken_up(state, event)
        case events.ReferencesFound():
            return _add_references(state, event)
        case events.PreHydrationComplete():
            planning = having_read(state.planning, event.message)
            return changed(state, turn=None, hydrated=event, planning=planning, heads={})
        case events.ConventionsRead():
            return _conventions(state, event)
        case events.StepLimitReached():
            return repeats.limited(state, event) if state.planning is None else with_limit(state, event)
        case OfStep() if state.planning is None:
            return with_step(state, event)
        case OfStep() | OfPlan() | events.ToolsSelected() | events.ToolsShortlisted() | events.InStep():
            after = with_plan(state, event, _apply)
            return after if state.config.step_iteration is None else with_tries(state, after, event)
        case PerceptionSanitised() | JudgementMade():
            return ledger.with_stage(state, event)
        case OfTree():
            return ledger.with_tree(state, event)
        case _:
            assert_never(event)


def _started(state: State, event: events.RunStarted) -> State:
    """The state of a run that begins. One that follows another has its turns before it, and what the gate knows."""
    begun = changed(
        followed(state, event) if event.follows else state,
        run_id=event.run_id,
        task=event.task,
        speakers={role: speaking(speaker) for role, speaker in event.speakers.items()},
        tools=event.tools,
        offered=event.tools,
        prompts=event.prompts,
        instructions=event.instructions,
        reasoner=event.reasoner,
        config=event.config,
        plan=PlanRecord(event.task.steps) if event.task.steps and event.reasoner != "plan" else None,
        planning=planning_of(event.task, event.config) if event.reasoner == "plan" else None,
        outer=event.outer,
        recipe=event.recipe,
        heads={},
    )
    if not event.follows:
        return begun
    fits: dict[str, SpeakerState] = {}
    for role, one in begun.speakers.items():
        if (before := state.speakers.get(role)) is not None:
            fit = before.fit  # what an overflow said holds for its model alone
            fits[role] = changed(one, fit=fit if one.model == before.model else replace(fit, limit=None, stretch=1.0))
    return changed(begun, speakers={**begun.speakers, **fits})


def _with_note(state: State, text: str) -> State:
    """The state once the user has said more, for the next reply of a run and of each step that runs."""
    planning = state.planning and in_children(state.planning, partial(_with_note, text=text))
    return changed(state, notes=(*state.notes, (state.steps + 1, text)), planning=planning)


def _taken_up(
    state: State, event: events.RunResumed | events.RunForked | events.DriverChanged | events.RunNoted
) -> State:
    if isinstance(event, events.DriverChanged | events.RunNoted):  # the run goes on as it is
        return state if isinstance(event, events.DriverChanged) else _with_note(state, event.text)
    taken = changed(
        with_config(state, event.config),
        run_id=event.run_id if isinstance(event, events.RunForked) else state.run_id,
        speakers={role: goes_on(kept, event.speakers.get(role)) for role, kept in state.speakers.items()},
        failure=None,
        plan=retried(state.plan),
        planning=taken_up(
            state.planning, event.config or state.config, event.speakers, has_ended=state.ending is not None
        ),
        ending=None,
    )
    if taken.turn is not None and taken.turn.outcome == "refused":  # whoever takes it up wants it asked again
        taken = taken.with_turn(outcome="empty")
    if event.journal or isinstance(event, events.RunForked):
        taken = judged_again(taken, event)
        if taken.planning is not None:
            own = in_children(taken.planning, lambda child: changed(judged_again(child, event), run_id=taken.run_id))
            is_own = event.journal == "own" and isinstance(event, events.RunResumed)
            taken = changed(taken, planning=own if is_own else changed(own, signed=0))  # it was signed for another
    if event.effects:
        taken = with_effects(taken, event.effects)
        if taken.planning is not None:
            taken = changed(taken, planning=in_children(taken.planning, partial(with_effects, effects=event.effects)))
    taken = taken.with_calls(lambda call: changed(call, doubt="") if call.doubt == "unknown" else call)  # asked again
    return repeats.anew(taken) if state.ending is not None and state.stuck else taken


def _add_references(state: State, event: events.ReferencesFound) -> State:
    calls = tuple(
        Call(f"0.{call.position}", f"prefetch_{call.position}", call.name, call.arguments, state.tools.get(call.name))
        for call in event.calls
    )
    spoken = Turn(0, ModelMessage("assistant"), Parsed(event.calls), "native", "any", PREFETCH, "calls", calls)
    return changed(state, found=event, turn=spoken if calls else None)


def _conventions(state: State, event: events.ConventionsRead) -> State:
    """What was told of the root stands before the task and is replaced there; the rest goes with the turn."""
    told, turn = state.conventions, state.turn
    planning = having_read(state.planning, event.message)
    state = changed(state, conventions=(*told, event), planning=planning, heads={})
    if told and event.scope == ROOT and event.message:
        root = replace(told[0], files=event.files, message=event.message)  # the root is read first
        return changed(state, conventions=(root, *told[1:], replace(event, files=(), message="")))
    if turn is None or not event.message:
        return state
    message = f"{turn.conventions}\n\n{event.message}".strip()
    return state.with_turn(conventions=message)


def _replied(state: State, event: events.ModelReplied, also: Mapping[str, object]) -> State:
    outcome = outcome_of(state, event)
    calls, ids = calls_of(state, event)
    speaker = state.speakers[event.role]
    fit = fit_of(state, event.role, event.want)
    told = guidance(state) if state.plan or state.gate else ""
    step = state.running_step
    spoken = after_reply(speaker, event, outcome, fit)
    speakers = {**state.speakers, event.role: spoken}
    is_alone = state.usage is speaker.usage  # nobody else has used anything
    used = spoken.usage if is_alone else state.usage + event.message.usage
    left = rounds_to_tell(changed(state, speakers=speakers), event.role) if state.reasoner in ROUNDED else 0
    step_id = step.step_id if step is not None else ""
    said = (event.step, event.message, event.parsed, event.mode, event.want, event.role)
    turn = Turn(*said, outcome, calls, left, step_id=step_id, guidance=told, called=state.used_tools)
    state = changed(
        state,
        done=state.turns,
        turn=turn,
        speakers=speakers,
        wire_ids=state.wire_ids.plus(ids),
        usage=used,
        requests=state.requests + event.requests,
        calls_made=state.calls_made + len(event.parsed.calls),
        failure=None,
        **also,
    )
    return repeats.with_reply(state, turn)


def _judged(state: State, event: events.CallJudged, also: Mapping[str, object]) -> State:
    decision = event.decision
    changes: dict[str, object] = {"decision": decision, "rule": event.rule}
    if event.grounds.digest:
        changes["digest"] = event.grounds.digest
    match decision:
        case Allow():
            state = changed(state, is_foreign=False) if event.by and state.is_foreign else state
            for call in state.calls:
                if call.id == event.call_id and call.spec is not None and call.spec.finish:
                    # a finish tool does nothing but say that it is over
                    changes["result"] = ToolResult("accepted", source="surefoot", trust="trusted")
        case Deny(reason):  # a refusal is a result that the model can read
            kind = "ReasoningStepViolation" if event.rule == REASONING_STEP else "denied"
            changes["result"] = ToolResult(reason, kind, source="gate", trust="trusted")
        case Ask():
            pass
        case _:
            assert_never(decision)
    state = _with_call(state, event.call_id, also, **changes)
    state = ledger.with_verdict(state, event) if state.gate is not None else state
    return repeats.answered(state, event.call_id, is_refused=isinstance(decision, Deny)) if event.by else state


def _settle(state: State, event: events.DoubtSettled) -> State:
    call = state.call(event.call_id)
    match event.outcome:
        case "done":
            result = event.result or ToolResult(f"done, as {event.by} says", source=event.by, trust="trusted")
            return _with_result(state, event.call_id, result, {})
        case "abandoned":
            told = f"given up by {event.by}: nobody knows whether it took effect"
            result = ToolResult(told, source=event.by, trust="trusted", kind="error", error="external:abandoned")
            return _with_result(state, event.call_id, result, {})
        case "not_done" | "unknown":  # a probe that says no again and again is not believed for ever
            is_doubtful = event.by == PROBE and call is not None and call.attempts >= MOST_ATTEMPTS
            return _with_call(state, event.call_id, {}, doubt="unknown" if is_doubtful else event.outcome)
        case _:
            assert_never(event.outcome)


def _with_result(state: State, call_id: str, result: ToolResult, also: Mapping[str, object]) -> State:
    """The call has had its effect: it has a result, and what was known before may have changed."""
    is_fetched = state.turn is not None and state.turn.role == PREFETCH
    call = next((c for c in state.calls if c.id == call_id), None) if not is_fetched else None
    if call is not None:
        is_cut = state.has_cut_result or result.blob is not None
        also = {**also, "known": repeats.known_after(state.known, call, result), "has_cut_result": is_cut}
    state = _with_call(state, call_id, also, result=result)
    state = ledger.with_answer(state, call_id) if state.gate is not None else state
    return repeats.with_result(state, call, result) if call is not None else state


def _with_call(state: State, call_id: str, also: Mapping[str, object], /, **changes: object) -> State:
    """The state with the call changed, if it is of the newest turn, and with what changes in the state itself."""
    turn = state.turn
    if turn is None:
        return changed(state, **also)
    calls = tuple([changed(call, **changes) if call.id == call_id else call for call in turn.calls])
    state = changed(state, turn=changed(turn, calls=calls, _memo={}), **also)
    is_settled = "result" in changes and turn.role != PREFETCH and not state.open_calls
    return repeats.with_settled(state) if is_settled else state


def having_learnt(state: State, event: events.ModelTraitLearnt) -> State:
    """The state once something is known about an endpoint."""
    speakers, trail = dict(state.speakers), state.trail
    for role, speaker in state.speakers.items():
        if speaker.model != event.model or event.role not in ("", role):
            continue
        traits = {**speaker.traits, event.trait: event.value}
        mode = mode_for(speaker.start_mode, traits)
        learnt = speaker.learnt | {(event.trait, event.value)}
        speakers[role] = changed(speaker, traits=traits, mode=mode, learnt=learnt)
        if mode != speaker.mode:  # it is asked otherwise from here on
            speakers[role], trail = changed(speakers[role], **NO_COUNTERS), replace(trail, silent=())
    return changed(state, speakers=speakers, trail=trail)


def having_failed(state: State, event: events.ModelFailed) -> State:
    """The state once a model gave no reply."""
    speaker = state.speakers[event.role]
    spent = speaker.usage + event.usage
    speaker = changed(speaker, usage=spent)
    if event.kind == "context_overflow":
        speaker = changed(speaker, overflows=speaker.overflows + 1, fit=fit_overflown(state, event))
    if event.instead is not None:
        speaker = goes_on(speaker, event.instead)
    return changed(
        state,
        failure=event if event.instead is None else None,
        speakers={**state.speakers, event.role: speaker},
        usage=state.usage + event.usage,
    )


def after_reply(speaker: SpeakerState, event: events.ModelReplied, outcome: Outcome, fit: Fit) -> SpeakerState:
    """A speaker once it has replied: what counts in a row goes on or begins anew."""
    parsed, message = event.parsed, event.message
    is_good = bool(parsed.calls) if outcome == "calls" else outcome in ("answer", "instruction", "refused")
    is_leak = not message.calls and bool(parsed.calls) and event.mode == "native" and event.want == "any"
    in_a_row = NO_COUNTERS
    if not is_good:  # kinds of trouble may take turns: none hides another
        in_a_row = {
            "faults_running": speaker.faults_running + (outcome in ("fault", "calls")),
            "empty_running": speaker.empty_running + (outcome == "empty"),
            "nudges_running": speaker.nudges_running + (outcome == "no_step"),
            "cuts_running": speaker.cuts_running + (outcome == "cut"),
        }
    return changed(
        speaker,
        usage=speaker.usage + message.usage,
        replies=speaker.replies + 1,
        rounds=speaker.rounds + (event.want != "answer"),
        narrated=speaker.narrated + (outcome == "narrated"),
        leaks=speaker.leaks + is_leak,
        calls_natively=speaker.calls_natively or bool(message.calls),
        overflows=0,
        fit=stretched(fit, message.usage, event.requests, message.attempts) if fit.request else fit,
        **in_a_row,
    )
