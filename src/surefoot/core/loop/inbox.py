"""A word that was said to a run, as events: it counts only for what it was shown, and only while that still waits.

Whoever drives a run asks this, and so does whoever finds that nobody drives it; so a word means the same, whoever says
it where. Source: spec/guard.md, section 4.9; spec/serving.md, section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import chain
from typing import Literal, assert_never

from surefoot.core.gate.origins import endorsed_by
from surefoot.core.gate.record import moved_by
from surefoot.core.gate.verdict import accepted_by
from surefoot.core.guard.anchor import anchored
from surefoot.core.guard.ledger import EXPIRED, words_of
from surefoot.core.plan.accept import PLAN, signature, waiting
from surefoot.core.plan.child import give_up, open_calls, owner_of, owners
from surefoot.core.state.state import Call, State
from surefoot.core.text import json_text
from surefoot.types import events as e
from surefoot.types.dataclass import dataclass
from surefoot.types.guard import NO_GROUNDS, Grounds
from surefoot.types.outcomes import Allow, Ask, Cancelled, Deny
from surefoot.types.plan_events import PlanSigned
from surefoot.types.ports import Recorded
from surefoot.types.tools import ToolResult
from surefoot.types.words import Approve, Cancel, Note, Problem, Refuse, Resume, Settle, Sign, Word

_TOO_LATE = "the question was not answered in time"


@dataclass(frozen=True, slots=True)
class Said:
    """What a word comes to. Where it does not count, `problem` and `detail` say why; `events` are recorded anyway."""

    events: tuple[e.Event, ...] = ()
    problem: Problem | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as the records tell of it: when it was asked, and who has answered it."""

    at: float
    by: str = ""


def asked_in(records: Iterable[Recorded]) -> Mapping[str, Asked]:
    """The questions about calls that a person was asked, by the ids of the calls."""
    found: dict[str, Asked] = {}
    for record in records:
        event = record.event.event if isinstance(record.event, e.InStep) else record.event
        if isinstance(event, e.CallJudged):
            if isinstance(event.decision, Ask):
                found[event.call_id] = Asked(record.at)
            elif event.by and event.call_id in found:
                found[event.call_id] = Asked(found[event.call_id].at, event.by)
    return found


def digest_of_call(call: Call) -> str:
    """What a word about a call binds to: the gate's digest, else one of its id, tool and arguments."""
    told = json_text([call.id, call.name, call.arguments], sort_keys=True)
    return call.digest or sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def events_of(word: Word, state: State, asked: Mapping[str, Asked], now_s: float, today: str) -> Said:
    """What a word means for a run as it stands. `now_s` is in seconds since the epoch, `today` a day in ISO form.

    Words about calls of agents that were asked belong to their runs, and are not understood here.
    """
    if state.ending is not None and not isinstance(word, Resume):
        return Said(problem="ended", detail=f"run {state.run_id} has ended: it is {state.ending.kind}")
    match word:
        case Cancel(by):
            return Said(cancelled(state, by))
        case Note(text, by):
            return Said((e.RunNoted(text, by), *_more_words(state, text, today)))
        case Resume():
            return Said()
        case Settle(call_id, outcome, by, result, digest):
            if (wrong := _wrong(state, asked, (call_id, digest), "in_doubt")) is not None:
                return wrong
            owner = owner_of(state, call_id)
            told = ToolResult(result, source=by, trust="trusted") if result else None
            return Said(owner.wrap((e.DoubtSettled(call_id, outcome, by, told),)))
        case Approve() | Refuse():
            return _answered(state, asked, now_s, word, today)
        case Sign(version, verdict, by, reason):
            planning = state.planning
            if planning is None or not signature(state):
                return Said(problem="not_waiting", detail=f"run {state.run_id}: no plan waits to be signed")
            if planning.version != version:
                told = f"run {state.run_id}: version {planning.version} of the plan waits, not version {version}"
                return Said(problem="changed", detail=told)
            return Said(_signed(state, verdict, by, reason, today))
        case _:
            assert_never(word)


def _wrong(
    state: State, asked: Mapping[str, Asked], named: tuple[str, str], about: Literal["approval", "in_doubt"]
) -> Said | None:
    """Why a word about a call does not count; None where it does."""
    call_id, digest = named
    run = f"run {state.run_id}: call {call_id!r}"
    others = {call.id: call for call in waiting(state)}
    call = others.get(call_id)
    if call is None:
        instead = f"; waiting: {', '.join(others)}" if others else ""
        known = next((c for one in owners(state) for c in one.state.calls if c.id == call_id), None)
        if known is not None and known.rule == EXPIRED:
            return Said(problem="expired", detail=too_late(state.run_id, call_id))
        if call_id == PLAN:
            return Said(problem="not_waiting", detail=f"run {state.run_id}: no plan waits to be signed")
        if call_id not in asked and known is None and state.call(call_id) is None:
            told = f"{run} does not wait for a person: no call of this run has that id{instead}"
            return Said(problem="no_such_call", detail=told)
        by = f", since {asked[call_id].by} has answered" if call_id in asked and asked[call_id].by else ""
        return Said(problem="not_waiting", detail=f"{run} does not wait for a person{by}{instead}")
    waits_for = "in_doubt" if call.is_in_doubt else "approval"
    if waits_for != about:
        if about == "approval" and call_id in asked and (by := asked[call_id].by):
            told = f"{run} does not wait for approval, since {by} has answered; it was begun, and has not ended"
            return Said(problem="not_waiting", detail=told)
        return Said(problem="other_question", detail=f"{run} waits for {waits_for}, which is another question")
    if digest and digest != digest_of_call(call):
        return Said(problem="changed", detail=f"{run} is not the one that was shown; look at it again")
    return None


def too_late(run_id: str, call_id: str) -> str:
    """What whoever answers too late is told."""
    told = f"run {run_id}: the answer about call {call_id!r} came too late, after `approval_timeout_s`"
    return f"{told}, and is recorded as a no; resume the run, so that the model can ask again"


def _answered(state: State, asked: Mapping[str, Asked], now_s: float, word: Approve | Refuse, today: str) -> Said:
    """A yes or no to calls, all of them or none. A no counts at any time, with its reason; a yes in time alone."""
    for named in word.calls:
        if (wrong := _wrong(state, asked, named, "approval")) is not None:
            return wrong
    ids = [call_id for call_id, _ in word.calls]
    no = expired(state, asked, now_s)
    others = tuple(n for n in no if getattr(n.event if isinstance(n, e.InStep) else n, "call_id", "") not in ids)
    if isinstance(word, Approve) and len(others) < len(no):
        return Said(no, "expired", too_late(state.run_id, ids[0]))
    said: list[e.Event] = [*others]
    for call in waiting(state):
        if call.id not in ids:
            continue
        owner = owner_of(state, call.id)
        if isinstance(word, Approve):
            said += owner.wrap(_approval(owner.state, call, word.by))
        elif call.id == PLAN and state.planning is not None:
            said += _signed(state, "revise" if word.reason.strip() else "rejected", word.by, word.reason, today)
        else:
            why = f"refused by {word.by}" + (f": {word.reason}" if word.reason else "")
            said += owner.wrap((e.CallJudged(call.id, Deny(why), "person", word.by, grounds=_bound(call)),))
    return Said(tuple(said))


def _approval(state: State, call: Call, by: str) -> tuple[e.Event, ...]:
    """A person's yes to exactly this call, the values that it makes theirs, and the foreign tool that it accepts."""
    if call.id == PLAN and state.planning is not None:
        return (PlanSigned(state.planning.version, "approved", by),)
    allowed = e.CallJudged(call.id, Allow(), "person", by, grounds=_bound(call))
    if state.gate is None or call.spec is None:
        return (allowed,)
    known, no = state.gate.known, state.gate.refused_values  # a no since the question was asked stays one
    its_own = moved_by(call.spec, call.arguments)
    shown = state.gate.shown.get(call.id, ())
    shown = tuple(one for one in shown if (one[0], one[2]) in its_own or (one[0], one[2]) not in no)
    values, tool = endorsed_by(known, call.spec, call.arguments, shown), accepted_by(known.config, call.spec)
    return (allowed, e.ValuesEndorsed(call.id, values, by, tool)) if values or tool else (allowed,)


def _signed(
    state: State, verdict: Literal["approved", "rejected", "revise"], by: str, reason: str, today: str
) -> tuple[e.Event, ...]:
    """A word about the plan. The reason of a no counts as the user's words, and another plan is asked for."""
    version = state.planning.version if state.planning is not None else 0
    if verdict != "revise":
        return (PlanSigned(version, verdict, by),)
    return (PlanSigned(version, "revise", by, reason), *_more_words(state, reason, today))


def _more_words(state: State, words: str, today: str) -> tuple[e.IntentAnchored, ...]:
    """What the user says more, for the gate: with the words before it, as a later turn where there are several."""
    if state.earlier:
        return anchored(words, state.config, today, state)
    return anchored(f"{words_of(state)}\n\n{words}", state.config, today)


def _bound(call: Call) -> Grounds:
    return Grounds(digest=call.digest) if call.digest else NO_GROUNDS


def expired(state: State, asked: Mapping[str, Asked], now_s: float) -> tuple[e.Event, ...]:
    """The refusal of every open question that has waited longer than the gate lets it; no answer is a no."""
    config = state.config.guard
    if config is None or state.gate is None:
        return ()
    no = Deny(f"refused: {_TOO_LATE}")
    asking = ((owner, call) for owner, call in open_calls(state) if isinstance(call.decision, Ask))
    return tuple(
        event
        for owner, call in asking
        if call.id in asked and now_s - asked[call.id].at > config.approval_timeout_s
        for event in owner.wrap((e.CallJudged(call.id, no, EXPIRED, "time limit", grounds=_bound(call)),))
    )


def due_at(state: State, asked: Mapping[str, Asked]) -> float | None:
    """When the first open question expires, in seconds since the epoch, so that a run that stands still is woken."""
    config = state.config.guard
    if config is None or state.gate is None:
        return None
    at = [asked[c.id].at for _, c in open_calls(state) if isinstance(c.decision, Ask) and c.id in asked]
    return min(at) + config.approval_timeout_s if at else None


def cancelled(state: State, by: str) -> tuple[e.Event, ...]:
    """The end of a run that somebody cancels: every open call is given up first."""
    given = (owner.wrap((give_up(call, state.elapsed_s),)) for owner, call in open_calls(state))
    return (*chain.from_iterable(given), e.RunEnded(Cancelled(by)))
