"""The gate around a run: the user's intent is anchored before anything else, and a person's word is put on record.

Source: spec/guard.md, sections 3.2 and 4.9.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

from surefoot.core.gate.conversation import narrowed, read_turn
from surefoot.core.gate.intent import read_words
from surefoot.core.gate.origins import endorsed_by
from surefoot.core.gate.record import moved_by
from surefoot.core.gate.slots import Words
from surefoot.core.gate.verdict import accepted_by
from surefoot.core.guard.ledger import EXPIRED, used_effects, words_of
from surefoot.core.guard.resume import guard_of, stricter
from surefoot.core.plan.accept import PLAN
from surefoot.core.plan.child import give_up, open_calls
from surefoot.core.state.state import EMPTY, Call, State
from surefoot.runtime.act import call_key
from surefoot.runtime.ask import stage_templates
from surefoot.runtime.task_plan import bounded
from surefoot.tools.call import is_running
from surefoot.types.config import LoopConfig
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.events import (
    CallJudged,
    DoubtSettled,
    Event,
    InStep,
    IntentAnchored,
    Outcome,
    RunEnded,
    ValuesEndorsed,
)
from surefoot.types.guard import NO_GROUNDS, Grounds, IntentAnchor
from surefoot.types.inner import MADE_BEFORE, Outer, Refused, Started
from surefoot.types.outcomes import Allow, Ask, Cancelled, Deny
from surefoot.types.plan_events import PlanSigned
from surefoot.types.ports import Recorded
from surefoot.types.tools import Effect, ToolResult


@dataclass(frozen=True, slots=True)
class HandOver:
    """What the gate of an agent is told by the run that asks it: the user's words as that has read them, if it has.

    `begun` is what that run has begun, which counts for its limits, `refused` what a person said no to there. `most` is
    the effect that the developer has declared for the agent.
    """

    outer: Outer
    anchor: IntentAnchor | None = None
    begun: tuple[Started, ...] = ()
    refused: Refused = Refused()
    most: Effect | None = None


_TOO_LATE = "the question was not answered in time"


MOST_ON_THE_LOOP = 4_096
"""Characters of the words that are read at once; longer ones are read in a thread, so that other runs go on."""


async def anchor(
    words: str, config: LoopConfig, before: State = EMPTY, over: HandOver | None = None
) -> tuple[Event, ...]:
    """What the user's own words ask for, where the gate is on. Attachments are material and are not read.

    `before` is the run that they follow in a conversation. With `over` they are a model's, which has asked an agent.
    """
    size = len(words) + sum(len(one.task.text) for one in before.exchanges) + (len(over.outer.words) if over else 0)
    if size > MOST_ON_THE_LOOP:
        return await asyncio.to_thread(_anchored, words, config, before, over)
    return _anchored(words, config, before, over)


def _anchored(words: str, config: LoopConfig, before: State = EMPTY, over: HandOver | None = None) -> tuple[Event, ...]:
    guard = config.guard
    if guard is None or guard.mode == "off":
        return ()
    today = datetime.now().astimezone().date().isoformat()
    if over is not None:
        said = over.anchor or read_words(over.outer.words, guard.lexicon)
        read = narrowed(said, read_words(words, guard.lexicon), over.most)
    elif before.task is None:
        read = read_words(words, guard.lexicon)
    else:
        earlier, gate = words_of(before), before.gate
        known = gate.known.words.anchor if gate is not None else read_words(earlier, guard.lexicon)
        used = used_effects(before) if gate is not None else known.effects_asked
        answer = getattr(before.ending, "answer", "") if before.ending is not None else "?"  # it is still at work on it
        read = read_turn(known, earlier, words, guard.lexicon, used=used, answer=answer)
    Words.of(read)  # kept for the fold, which runs on the loop
    anchored = IntentAnchored(read, today)
    return (anchored if over is None else replace(anchored, begun=over.begun, refused=over.refused),)


def config_taken(state: State, config: LoopConfig | None, own: LoopConfig) -> LoopConfig | None:
    """The configuration with which a run is taken up, None where it stays; guard and output of whoever does it count.

    Raises `ConfigError` for a guard that needs a model: the templates for that are put on record when a run begins.
    """
    given = config or state.config
    if own.output_schema is not None and given.output_schema != own.output_schema:
        given = replace(given, output_schema=own.output_schema)
    guard = stricter(given.guard, own.guard)
    taken = guard_of(state, replace(given, guard=guard))
    if state.task is not None and not stage_templates(taken).keys() <= state.prompts.keys():
        raise ConfigError("guard", taken, "a run begun without it takes no guard that asks a model; begin it anew")
    if config is None and given is state.config and taken == state.config.guard:
        return None
    return bounded(replace(given, guard=guard), state.reasoner, state.planning)


async def anchor_late(state: State, config: LoopConfig | None, over: HandOver | None = None) -> tuple[Event, ...]:
    """The user's words, for a run that is taken up and in which they were not read before.

    It was cut off before, or had no guard and is given one with `config`. One in which they were read is told what the
    run that asks it has begun since then.
    """
    if (gate := state.gate) is not None and over is not None:
        known = tuple(one for one in gate.started if one.call_id.startswith(MADE_BEFORE))
        told = IntentAnchored(gate.known.words.anchor, gate.known.today, begun=over.begun, refused=over.refused)
        return (told,) if known != over.begun or gate.with_noes(over.refused) != gate else ()
    if gate is not None or state.task is None:
        return ()
    words = state.task.text if state.earlier or state.outer else words_of(state)
    over = over or (HandOver(state.outer) if state.outer is not None else None)
    return await anchor(words, replace(state.config, guard=guard_of(state, config)), over=over)


def approval(state: State, call: Call, by: str) -> tuple[Event, ...]:
    """A person's yes to exactly this call, the values that it makes theirs, and the foreign tool that it accepts."""
    if call.id == PLAN and state.planning is not None:
        return (PlanSigned(state.planning.version, "approved", by),)
    allowed = CallJudged(call.id, Allow(), "person", by, grounds=_bound(call))
    if state.gate is None or call.spec is None:
        return (allowed,)
    known, no = state.gate.known, state.gate.refused_values  # a no since the question was asked stays one
    its_own = moved_by(call.spec, call.arguments)
    shown = state.gate.shown.get(call.id, ())
    shown = tuple(one for one in shown if (one[0], one[2]) in its_own or (one[0], one[2]) not in no)
    values, tool = endorsed_by(known, call.spec, call.arguments, shown), accepted_by(known.config, call.spec)
    return (allowed, ValuesEndorsed(call.id, values, by, tool)) if values or tool else (allowed,)


def refusal(state: State, call: Call, by: str, reason: str = "") -> tuple[Event, ...]:
    """A person's no to exactly this call; the model reads the reason.

    A no to a plan ends the run; with a reason, which counts as the user's words, another plan is asked for.
    """
    if call.id == PLAN and state.planning is not None:
        version = state.planning.version
        if not reason.strip():
            return (PlanSigned(version, "rejected", by),)
        again = (
            _anchored(reason, state.config, state)
            if state.earlier
            else _anchored(f"{words_of(state)}\n\n{reason}", state.config)
        )
        return (PlanSigned(version, "revise", by, reason), *again)
    why = f"refused by {by}" + (f": {reason}" if reason else "")
    return (CallJudged(call.id, Deny(why), "person", by, grounds=_bound(call)),)


def _bound(call: Call) -> Grounds:
    return Grounds(digest=call.digest) if call.digest else NO_GROUNDS


def settled(state: State, call: Call, outcome: Outcome, by: str, result: str) -> tuple[Event, ...]:
    """What a person says of a call in doubt. Raises `UsageError` for "not done" of one that still runs."""
    if outcome == "not_done" and is_running(call_key(state, call)):
        raise UsageError(f"call {call.id!r} still runs in this process; settle it once it has ended")
    told = ToolResult(result, source=by, trust="trusted") if result else None
    return (DoubtSettled(call.id, outcome, by, told),)


def expired(state: State, records: Sequence[Recorded], now_s: float | None = None) -> tuple[Event, ...]:
    """The refusal of every open question that has waited longer than the gate lets it; no answer is a no."""
    config = state.config.guard
    if config is None or state.gate is None:
        return ()
    now = time.time() if now_s is None else now_s
    told = ((r.event.event if isinstance(r.event, InStep) else r.event, r.at) for r in records)
    asked = {one.call_id: at for one, at in told if isinstance(one, CallJudged) and isinstance(one.decision, Ask)}
    waiting = [(owner, call) for owner, call in open_calls(state) if isinstance(call.decision, Ask)]
    late = [(owner, call) for owner, call in waiting if now - asked.get(call.id, now) > config.approval_timeout_s]
    no = Deny(f"refused: {_TOO_LATE}")
    return tuple(
        event
        for owner, call in late
        for event in owner.told((CallJudged(call.id, no, EXPIRED, "time limit", grounds=_bound(call)),))
    )


def cancelled(state: State, by: str) -> tuple[Event, ...]:
    """The end of a run that somebody cancels: every open call is given up first."""
    given = (owner.told((give_up(call, state.elapsed_s),)) for owner, call in open_calls(state))
    return (*chain.from_iterable(given), RunEnded(Cancelled(by)))
