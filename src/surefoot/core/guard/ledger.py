"""The gate's part of a state, folded from the events of a run. It exists from the moment the intent is anchored.

Source: spec/guard.md, sections 3.2, 3.4, 3.5, 4.2, 4.9 and 4.11.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from surefoot.core.gate.origins import listed_in
from surefoot.core.gate.record import BY_MODEL, CALL_FAILED, Choosing, GateRecord, key_of_branch
from surefoot.core.gate.sinks import aimed
from surefoot.core.gate.slots import Words
from surefoot.core.gate.sources import Known, Source
from surefoot.core.parse.frames import hidden_in, key_of, nonce_of
from surefoot.core.state.roles import SOLO, rounds_to_tell
from surefoot.core.state.state import Exchange, State
from surefoot.core.state.turn import changed
from surefoot.core.text.records import index_of
from surefoot.core.view.observations import is_ours
from surefoot.core.view.step import choosing_now, place_of, with_own_calls
from surefoot.types import guard_events
from surefoot.types.events import CallJudged, IntentAnchored, ToolsSelected, ValuesEndorsed
from surefoot.types.guard import BranchStatus, ConstraintSet, HypothesisBranch, IntentAnchor, Rejection
from surefoot.types.inner import MADE_BEFORE, InnerRun
from surefoot.types.messages import ModelMessage, NativeCall
from surefoot.types.outcomes import Ask, Deny
from surefoot.types.plan import RESERVED
from surefoot.types.reply import Parsed, ParsedCall
from surefoot.types.tools import Effect, ToolSpec

EXPIRED = "expired"
"""The rule under which a question that waited too long is a no."""


def hear(state: State, event: IntentAnchored | ValuesEndorsed) -> State:
    """The state once the user, or another person, has said what is theirs."""
    if isinstance(event, IntentAnchored):
        return _anchored(state, event)
    gate = state.gate
    if gate is not None:
        accepted = gate.known.accepted.union((event.tool,) if event.tool else ())
        call = state.call(event.call_id)
        known = gate.known.with_yes(call.name, event.values) if call is not None else gate.known
        gate = replace(gate, known=replace(known, accepted=accepted))
    return changed(state, gate=gate)


def _anchored(state: State, event: IntentAnchored) -> State:
    """The state with the user's words; a later word takes the place of the earlier, which it contains.

    So what a model has read in the earlier still holds, and it is asked about the later. What was called before there
    was a gate was called, and what it gave is known.
    """
    words = Words.of(event.anchor)
    config = state.config.guard
    if state.gate is not None and state.outer is not None:  # what the run that asks has begun meanwhile
        own = tuple(one for one in state.gate.started if not one.call_id.startswith(MADE_BEFORE))
        gate = replace(state.gate, started=(*event.begun, *own)).with_noes(event.refused)
    elif state.gate is not None:
        gate, is_read = state.gate, event.asking is not None
        if not is_read:
            if not state.earlier:  # the anchor of a later turn has what still holds of the turns before
                words = Words.of(_with_what_was_read(event.anchor, gate.known.words.anchor))
            gate = replace(gate, refused=gate.refused - gate.refused_once, refused_once=frozenset())
        today = event.today or gate.known.today
        gate = replace(gate, known=replace(gate.known, words=words, own=_own(state), today=today), is_read=is_read)
    elif config is not None:
        known = Known(words, config, today=event.today, own=_own(state))
        if state.outer is not None and state.outer.quoted and state.task is not None:
            index = index_of(state.task.text, structured=False)
            spec = ToolSpec(HAND_OVER, "", {}, private=state.outer.quoted == "private")
            known = known.with_source(Source(HAND_OVER, HAND_OVER, index, spec), is_error=True)
        gate = GateRecord(known, nonce=nonce_of(state.run_id), is_read=state.outer is not None)
        gate = replace(gate, started=event.begun).with_noes(event.refused)
    else:
        gate = None
    is_late = state.gate is None and gate is not None
    state = changed(having_asked(state, event.asking), gate=gate, heads={})
    if is_late:
        for call in (call for turn in state.turns for call in turn.calls):
            state = with_start(state, call.id) if call.attempts else state
            state = with_answer(state, call.id)
    return state


def _own(state: State) -> Words | None:
    """The words of persons, where others have written some: mostly there are none, and nothing is read."""
    own, guard = own_words(state), state.config.guard
    if own is None or guard is None:
        return None
    if not own:
        return Words.of(IntentAnchor(""))
    from surefoot.core.gate.intent import read_words  # noqa: PLC0415  # the loop does not load the reading of words

    return Words.of(read_words(own, guard.lexicon))


HAND_OVER = "hand-over"
"""Under which the gate of an agent's run has what was handed over, where that has a passage of a result."""


def _with_what_was_read(anchor: IntentAnchor, before: IntentAnchor) -> IntentAnchor:
    """The anchor that rules have made of more words, with what a model has read in the fewer `before`."""
    known = anchor.constraints.constraints
    read = tuple(one for one in before.constraints.constraints if one.constraint_id.startswith(BY_MODEL))
    if not read and before.sketch is None:
        return anchor
    allowed = (one.condition.effect for one in read if one.constraint_type == "allow")
    return replace(
        anchor,
        effects_asked=anchor.effects_asked | {effect for effect in allowed if effect is not None},
        constraints=ConstraintSet((*known, *read), "merged"),
        sketch=before.sketch,
        made_by=before.made_by,
    )


def words_of(state: State, *, of_run: bool = False) -> str:
    """The user's words, or `of_run` those which alone ask for anything: tasks, and what was said of unsigned plans.

    Of the run of an agent, those of the outer run: what a model has handed over is nobody's word.
    """
    if state.outer is not None:
        return state.outer.words
    return _joined(state, state.exchanges[-1:] if of_run else state.exchanges, of_run=of_run)


def own_words(state: State) -> str | None:
    """Those of the words that persons have said; None where that is all of them."""
    if state.outer is not None:
        return state.outer.own
    own = tuple(one for one in state.exchanges if one.task.author == "person")
    return None if len(own) == len(state.exchanges) else _joined(state, own)


def _joined(state: State, said: Iterable[Exchange], *, of_run: bool = False) -> str:
    noted = state.planning.noted if state.planning is not None else ()
    noted += state.notes_of_run if of_run else tuple(text for _, text in state.notes)
    return "\n\n".join((*(one.task.text for one in said), *noted))


def used_effects(state: State) -> frozenset[Effect | None]:
    """The effects of the calls that were started since the user's newest words."""
    started = state.gate.started if state.gate is not None else ()
    own = {call.id for turn in state.own_turns for call in turn.calls}
    steps = state.planning is not None  # the calls of its steps have other ids
    return frozenset[Effect | None]().union(*(one.effects for one in started if steps or one.call_id in own)) - {"read"}


def with_stage(state: State, event: guard_events.GuardEvent) -> State:
    """The state once a stage of the guard has found something."""
    gate = state.gate
    state = having_asked(state, event.asking)
    if gate is None:
        return state
    match event:
        case guard_events.JudgementMade(call_id):
            return changed(state, gate=replace(gate, judgements={**gate.judgements, call_id: event}))
        case guard_events.PerceptionSanitised(call_id, asking=None):
            return changed(state, gate=replace(gate, hidden=tuple(one for one in gate.hidden if one[0] != call_id)))
        case guard_events.PerceptionSanitised(call_id) if event.degraded:
            known = replace(gate.known, degraded=gate.known.degraded | {call_id})
            return changed(state, gate=replace(gate, known=known))
        case guard_events.PerceptionSanitised(call_id, masks=masks):
            call = state.call(call_id)
            if call is None or call.result is None:
                return state
            return changed(state, gate=replace(gate, masks={**gate.masks, key_of(call.result.content): masks}))
        case _:
            assert_never(event)


def having_asked(state: State, asking: guard_events.Asking | None, *, is_part_of_step: bool = False) -> State:
    """The state with what a stage has cost. Its requests count as any other, unless they are part of a step's own."""
    if asking is None:
        return state
    speaker = state.speakers[asking.role]
    speaker = changed(speaker, usage=speaker.usage + asking.usage)
    return changed(
        state,
        speakers={**state.speakers, asking.role: speaker},
        usage=state.usage + asking.usage,
        requests=state.requests + (0 if is_part_of_step else asking.requests),
        elapsed_s=max(state.elapsed_s, asking.elapsed_s),
    )


def unread(state: State) -> tuple[str, ...]:
    """The calls of the newest turn in whose results a model has still to look for orders, each content once."""
    gate = state.gate
    if gate is None or gate.known.config.sanitise != "model":
        return ()
    found: dict[str, str] = {}
    for call in state.calls:
        result = call.result
        if result is None or result.trust == "trusted" or call.known or call.id in gate.known.degraded:
            continue
        if result.content.strip() and (key := key_of(result.content)) not in gate.masks:
            found.setdefault(key, call.id)
    return tuple(found.values())


def selected(state: State, event: ToolsSelected) -> State:
    """The state once it is known which of the offered tools look like others."""
    if (gate := state.gate) is None:
        return state
    return changed(state, gate=replace(gate, known=replace(gate.known, doubted=event.doubted)))


def with_verdict(state: State, event: CallJudged) -> State:
    """The state once the gate, or a person, has spoken: what was refused is refused again without a question."""
    gate = state.gate
    if gate is None:
        return state
    digest, call = {event.grounds.digest} - {""}, state.call(event.call_id)
    if isinstance(event.decision, Ask) and call is not None and call.spec is not None:
        shown = (*listed_in(call.spec, call.arguments, event.grounds.evidence), *event.grounds.shown)
        return changed(state, gate=replace(gate, shown={**gate.shown, event.call_id: shown}))
    if event.call_id in gate.shown:
        gate = replace(gate, shown={key: one for key, one in gate.shown.items() if key != event.call_id})
        state = changed(state, gate=gate)
    if not isinstance(event.decision, Deny) or not digest:
        return state
    if not event.by:  # the one repeat for which a no to a call without an odd value holds
        spent = digest & gate.refused_once
        return changed(state, gate=replace(gate, refused=gate.refused - spent, refused_once=gate.refused_once - spent))
    gate = replace(gate, refused=gate.refused | digest)
    if event.rule == "person" and call is not None and call.spec is not None:  # silence says nothing about a value
        aim = aimed(gate.known, call.spec, call.arguments)
        once = frozenset[str]() if aim.odd or aim.twins or aim.bad else digest
        gate = replace(gate, refused_once=gate.refused_once | once).with_no(call.spec, call.arguments)
    return changed(state, gate=gate)


def with_start(state: State, call_id: str) -> State:
    """The state once a call is about to run; of several attempts the last counts."""
    gate, call = state.gate, state.call(call_id)
    if gate is None or call is None or call.spec is None:
        return state
    others = tuple(one for one in gate.started if one.call_id != call_id)
    started = gate.begin(call_id, call.spec, call.arguments, call.digest)
    return changed(state, gate=replace(gate, started=(*others, started)))


def with_answer(state: State, call_id: str) -> State:
    """The state once a call has given its result: its values are known, and where they come from."""
    gate, call = state.gate, state.call(call_id)
    if gate is None or call is None or call.spec is None or call.result is None:
        return state
    is_private = call.inner is not None and call.inner.is_private
    spec = replace(call.spec, private=True) if is_private else call.spec
    gate = gate.ended(call_id, spec, call.arguments, call.result)
    hidden = gate.hidden
    if not is_ours(call.result) and (number := hidden_in(call.result.content)):
        hidden = (*hidden, (call_id, number))
    return changed(state, gate=replace(gate, hidden=hidden))


def with_tree(state: State, event: guard_events.SpeculationEvent) -> State:
    """The state once something has happened to a tree; one that is not of the newest tree changes nothing else."""
    asking = None if isinstance(event, guard_events.BranchRejected) else event.asking
    state = having_asked(state, asking, is_part_of_step=True)
    gate = state.gate
    if gate is None:
        return state
    now = choosing_now(state)
    match event:
        case guard_events.HypothesesMade(tree):
            trees = now.trees + 1 if now.tree is not None and now.point == state.steps else 1
            now = replace(now, tree=tree, point=state.steps, trees=trees, rejected=(), decision=None)
            return _choosing(state, gate, now)
        case guard_events.BranchRejected(tree_id, branch_id):
            branch = now.branch(branch_id)
            if branch is None or now.tree is None or now.tree.tree_id != tree_id:
                return state
            was_taken = branch.status == "committed"
            refused = () if event.rule == CALL_FAILED or branch.tool_name in RESERVED else (key_of_branch(branch),)
            out = Rejection(branch_id, event.rule, event.reason)
            now = replace(
                _marked(now, branch, "failed" if was_taken else "rejected"),
                rejected=(*now.rejected, out),
                closed=now.closed.union(refused),
                failures=now.failures + was_taken,
            )
            return _choosing(state, gate, now)
        case guard_events.BranchCommitted(decision, direct=direct):
            branch = now.branch(decision.selected_branch_id)
            now = replace(now, decision=decision, point=state.steps, bad=())
            if branch is None:
                return _choosing(state, gate, now)
            now = _marked(now, branch, "committed")
            if not direct:
                return _choosing(state, gate, now)
            now = replace(now, made=state.steps + 1, turns=now.turns + 1)
            return _open_branch(_choosing(state, gate, now), branch)
        case _:
            assert_never(event)


def with_violation(state: State) -> State:
    """The state once it is on record that the newest reply is none that a branch of words can use."""
    now, gate = choosing_now(state), state.gate
    return state if gate is None else _choosing(state, gate, replace(now, bad=(*now.bad, state.steps)))


def _choosing(state: State, gate: GateRecord, now: Choosing) -> State:
    return changed(state, gate=replace(gate, choosing={**gate.choosing, place_of(state): now}))


def _marked(now: Choosing, branch: HypothesisBranch, status: BranchStatus) -> Choosing:
    assert now.tree is not None  # noqa: S101  # the branch is of it
    branches = tuple(replace(one, status=status) if one is branch else one for one in now.tree.branches)
    return replace(now, tree=replace(now.tree, branches=branches))


def _open_branch(state: State, branch: HypothesisBranch) -> State:
    """The calls of a branch as a turn of its own, for which no model was asked; each gets an id that is new.

    It is a round like one that was spoken: else a run that is never asked for words would have no last one.
    """
    sets = branch.argument_sets
    message = ModelMessage("assistant", calls=tuple(NativeCall("", branch.tool_name, one) for one in sets))
    parsed = Parsed(tuple(ParsedCall(at, branch.tool_name, one) for at, one in enumerate(sets)), format="native")
    speaker = state.speakers[SOLO]
    state = changed(state, speakers={**state.speakers, SOLO: changed(speaker, rounds=speaker.rounds + 1)})
    return changed(with_own_calls(state, message, parsed, rounds_to_tell(state, SOLO)), failure=None)


def with_inner(state: State, call_id: str, inner: InnerRun) -> State:
    """The state with what the run of an agent has used since it was last told of, and begun, which limits count."""
    call, gate = state.call(call_id), state.gate
    if call is None:
        return state
    if gate is not None:
        own = tuple(one for one in gate.started if not one.call_id.startswith(f"{call_id}/"))
        last = max((one.ended for one in own), default=0)
        begun = (
            replace(one, call_id=f"{call_id}/{one.call_id}", ended=last + one.ended if one.ended else 0)
            for one in inner.begun
        )
        gate = replace(gate, started=(*own, *begun)).with_noes(inner.refused)
    before = call.inner or InnerRun(inner.run_id)
    kept = replace(inner, usage=before.usage + inner.usage, requests=before.requests + inner.requests)
    state = state.with_calls(lambda one: changed(one, inner=kept) if one.id == call_id else one)
    requests = state.requests + inner.requests
    return changed(state, usage=state.usage + inner.usage, requests=requests, gate=gate)
