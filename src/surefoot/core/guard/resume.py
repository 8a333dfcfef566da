"""What a run goes by that is taken up again, or that follows another: the stricter of two guards, what is judged anew.

Source: spec/guard.md, section 9, row 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from surefoot.core.state.state import EMPTY, Call, State, subset
from surefoot.core.state.turn import changed
from surefoot.types.config import LoopConfig
from surefoot.types.events import RunForked, RunResumed, RunStarted
from surefoot.types.guard import GuardConfig
from surefoot.types.outcomes import Allow
from surefoot.types.tools import Catalogue, Effect, ToolSpec


def guard_of(state: State, given: LoopConfig | None) -> GuardConfig | None:
    """The guard of a run that is taken up: the stricter of its own and that which it is given."""
    return stricter(state.config.guard, given.guard if given else None)


def with_config(state: State, given: LoopConfig | None) -> State:
    """The state with the configuration that whoever takes it up gives; its guard is the stricter of both."""
    if given is None:
        return state
    guard, gate = guard_of(state, given), state.gate
    if gate is not None and guard is not None:
        gate = replace(gate, known=replace(gate.known, config=guard))
    return changed(state, config=replace(given, guard=guard), gate=gate)


_MODES = ("off", "observe", "enforce")


def stricter(own: GuardConfig | None, given: GuardConfig | None) -> GuardConfig | None:
    """A guard that lets pass only what both do; of two Cedar policies that of whoever takes the run up holds."""
    if own is None or given is None or own.mode == "off" or given == own:
        return own if given is None or (own is not None and given.mode == "off") else given
    if given.mode == "off":
        return own
    return replace(
        own,
        mode=max(own.mode, given.mode, key=_MODES.index),
        strict=own.strict or given.strict,
        two_faults="deny" if "deny" in (own.two_faults, given.two_faults) else "ask",
        content_tokens="ask" if "ask" in (own.content_tokens, given.content_tokens) else "allow",
        fetch="ask" if "ask" in (own.fetch, given.fetch) else "allow",
        guess=min(own.guess, given.guess, key=("none", "own", "all").index),
        pins="strict" if "strict" in (own.pins, given.pins) else "first-use",
        approvals="deny" if "deny" in (own.approvals, given.approvals) else given.approvals,
        approval_timeout_s=min(own.approval_timeout_s, given.approval_timeout_s),
        max_asks=min(own.max_asks, given.max_asks),
        constraints=tuple(dict.fromkeys((*own.constraints, *given.constraints))),
        rules=tuple(dict.fromkeys((*own.rules, *given.rules))),
        standing=tuple(one for one in own.standing if one in given.standing),
        lexicon={
            name: tuple(w for w in said if w in given.lexicon.get(name, ())) for name, said in own.lexicon.items()
        },
        cedar=given.cedar or own.cedar,
        anchor="model" if "model" in (own.anchor, given.anchor) else "rules",
        sanitise="model" if "model" in (own.sanitise, given.sanitise) else "rules",
        judge=own.judge or given.judge,
        user=given.user or own.user,
    )


def judged_again(state: State, event: RunResumed | RunForked) -> State:
    """The state in which what was allowed and has not started is open to be judged again.

    A person's yes was for the run that it was said in: of a fork, and of a foreign journal, it does not count. Nothing
    that a foreign journal says of an open call does, so what it says has started is judged before it is repeated.
    """
    gate, is_foreign = state.gate, event.journal == "foreign"
    is_other = is_foreign or isinstance(event, RunForked)
    if gate is not None and is_other:
        known = replace(gate.known, endorsed=frozenset(), accepted=frozenset())
        state = changed(state, gate=replace(gate, known=known, shown={}))
    state = changed(state, is_foreign=True) if is_foreign else state

    def unjudged(call: Call) -> Call:
        counts = not isinstance(event, RunForked) if call.rule == "person" else not event.journal
        is_kept = not is_foreign and (call.attempts or call.decision != Allow() or counts)
        doubt = "not_done" if call.attempts and call.may_run_again else call.doubt
        return call if is_kept else changed(call, decision=None, rule="", digest="", doubt=doubt)

    return state.with_calls(lambda call: unjudged(call) if call.is_open else call)


def followed(state: State, event: RunStarted) -> State:
    """What a run that follows another begins with: its turns and answers, and what the gate knows of both.

    What counts begins anew: the budget, repeats, a person's yes. A no stays, and so does what was started.
    """
    before = state.exchanges
    if before:
        answer = "" if state.ending is None else getattr(state.ending, "answer", "")
        before = (*before[:-1], replace(before[-1], answer=answer))
    guard, gate = event.config.guard, state.gate
    if guard is None or guard.mode == "off":
        gate = None
    elif gate is not None:
        known = replace(gate.known, config=guard, endorsed=frozenset(), accepted=frozenset())
        gate = replace(gate, known=known, shown={}, hidden=(), choosing={}, asked_beside={})
    return changed(
        EMPTY,
        seen=state.seen,
        done=state.turns,
        wire_ids=state.wire_ids,
        has_cut_result=state.has_cut_result,
        conventions=state.conventions,
        is_foreign=state.is_foreign,
        gate=gate,
        earlier=before,
        begun=state.steps,
        notes=tuple((min(at, state.steps), text) for at, text in state.notes),
    )


def with_effects(state: State, effects: Mapping[str, Effect]) -> State:
    """The state once tools have a stricter effect than on record: their open calls are judged anew.

    Whether a call may be repeated was promised of the former effect, so none is.
    """

    def now(spec: ToolSpec) -> ToolSpec:
        return replace(spec, effect=effects[spec.name], idempotent=False) if spec.name in effects else spec

    tools = Catalogue(tuple(map(now, state.tools.tools)))
    was = {spec.name: spec.effect for spec in state.tools.tools if spec.name in effects}

    def unjudged(call: Call) -> Call:
        if call.spec is None or not call.is_open or call.name not in effects:
            return call
        return changed(call, spec=now(call.spec), decision=None, rule="")

    offered, redeclared = subset(tools, state.offered.names), {**was, **state.redeclared}
    return changed(state.with_calls(unjudged), tools=tools, offered=offered, redeclared=redeclared, heads={})
