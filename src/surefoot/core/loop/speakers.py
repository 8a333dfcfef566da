"""What is known of the models of a run in their roles, as events tell it. Part of the fold."""

from __future__ import annotations

from dataclasses import replace

from surefoot.core.loop.slices import droppable, fit_of
from surefoot.core.state.roles import NO_COUNTERS, mode_for
from surefoot.core.state.state import SpeakerState, State
from surefoot.core.state.turn import Outcome, changed
from surefoot.core.state.window import Fit, limit_in, stretched
from surefoot.core.view.fit import window_of
from surefoot.types.events import ModelFailed, ModelReplied, ModelTraitLearnt
from surefoot.types.moves import Think

_ENDLESS = 10**12


def having_learnt(state: State, event: ModelTraitLearnt) -> State:
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
    return changed(state, seen=state.seen + 1, speakers=speakers, trail=trail)


def having_failed(state: State, event: ModelFailed) -> State:
    """The state once a model gave no reply."""
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
    named = [limit for limit in (speaker.fit.limit, limit_in(event.message)) if limit]
    fit = replace(speaker.fit, limit=min(named, default=None))
    if (window := window_of(_with_fit(state, event.role, fit), event.role)) is None:
        dropped = fit.dropped + max(1, (state.steps - fit.dropped) // 4)  # so that two tries make real room
        return replace(fit, dropped=max(fit.dropped, min(droppable(state, event.role), dropped)), counted=0, turns=0)
    before = _with_fit(state, event.role, replace(fit, limit=speaker.fit.limit or _ENDLESS))
    sent = fit_of(before, Think(state.steps + 1, event.role, event.want)).request
    return replace(fit, stretch=max(fit.stretch, window / sent))


def _with_fit(state: State, role: str, fit: Fit) -> State:
    return changed(state, speakers={**state.speakers, role: changed(state.speakers[role], fit=fit)})


def having_said(speaker: SpeakerState, event: ModelReplied, outcome: Outcome, fit: Fit) -> SpeakerState:
    """A speaker once it has replied: what counts in a row goes on or begins anew."""
    parsed, message = event.parsed, event.message
    is_fault = outcome == "fault" or (outcome == "calls" and not parsed.calls)
    is_good = outcome in ("answer", "instruction", "refused") or (outcome == "calls" and not is_fault)
    is_leak = event.mode == "native" and event.want == "any" and bool(parsed.calls) and not message.calls
    kept = 0 if is_good else 1  # kinds of trouble may take turns: none hides another
    return changed(
        speaker,
        usage=speaker.usage + message.usage,
        replies=speaker.replies + 1,
        rounds=speaker.rounds + (event.want != "answer"),
        faults_running=kept * (speaker.faults_running + is_fault),
        empty_running=kept * (speaker.empty_running + (outcome == "empty")),
        nudges_running=kept * (speaker.nudges_running + (outcome == "no_step")),
        cuts_running=kept * (speaker.cuts_running + (outcome == "cut")),
        narrated=speaker.narrated + (outcome == "narrated"),
        leaks=speaker.leaks + is_leak,
        calls_natively=speaker.calls_natively or bool(message.calls),
        overflows=0,
        fit=stretched(fit, message.usage, event.requests, message.attempts),
    )
