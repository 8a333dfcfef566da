"""What speculation makes of a state: the tree of a step, what is out of it, and the calls of a branch that is made.

Part of the fold. Source: spec/guard.md, sections 3.4 and 3.5.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from surefoot.core.gate.choosing import CALL_FAILED, Choosing, key_of_branch
from surefoot.core.gate.record import GateRecord
from surefoot.core.guarded import having_asked
from surefoot.core.replied import calls_of
from surefoot.core.roles import SOLO, rounds_to_tell
from surefoot.core.running import choosing_now, place_of
from surefoot.core.state import State, Turn, changed
from surefoot.types.events import ModelReplied
from surefoot.types.guard import BranchStatus, HypothesisBranch, Rejection
from surefoot.types.guard_events import BranchCommitted, BranchRejected, HypothesesMade, SpeculationEvent
from surefoot.types.messages import ModelMessage, NativeCall
from surefoot.types.reply import Parsed, ParsedCall


def with_tree(state: State, event: SpeculationEvent) -> State:
    """The state once something has happened to a tree; one that is not of the newest tree changes nothing else."""
    asking = None if isinstance(event, BranchRejected) else event.asking
    state = changed(having_asked(state, asking, is_part_of_step=True), seen=state.seen + 1)
    gate = state.gate
    if gate is None:
        return state
    now = choosing_now(state)
    match event:
        case HypothesesMade(tree):
            trees = now.trees + 1 if now.tree is not None and now.point == state.steps else 1
            now = replace(now, tree=tree, point=state.steps, trees=trees, rejected=(), decision=None)
            return _choosing(state, gate, now)
        case BranchRejected(tree_id, branch_id):
            branch = now.branch(branch_id)
            if branch is None or now.tree is None or now.tree.tree_id != tree_id:
                return state
            return _choosing(state, gate, _without(now, branch, event))
        case BranchCommitted(decision, direct=direct):
            branch = now.branch(decision.selected_branch_id)
            now = replace(now, decision=decision, point=state.steps)
            if branch is None:
                return _choosing(state, gate, now)
            now = _marked(now, branch, "committed")
            if not direct:
                return _choosing(state, gate, now)
            now = replace(now, made=state.steps + 1, turns=now.turns + 1)
            return _made(_choosing(state, gate, now), branch)
        case _:
            assert_never(event)


def _choosing(state: State, gate: GateRecord, now: Choosing) -> State:
    return changed(state, gate=replace(gate, choosing={**gate.choosing, place_of(state): now}))


def _marked(now: Choosing, branch: HypothesisBranch, status: BranchStatus) -> Choosing:
    assert now.tree is not None  # noqa: S101  # the branch is of it
    branches = tuple(replace(one, status=status) if one is branch else one for one in now.tree.branches)
    return replace(now, tree=replace(now.tree, branches=branches))


def _without(now: Choosing, branch: HypothesisBranch, event: BranchRejected) -> Choosing:
    was_taken = branch.status == "committed"
    marked = _marked(now, branch, "failed" if was_taken else "rejected")
    refused = () if event.rule == CALL_FAILED else (key_of_branch(branch.tool_name, branch.argument_sets),)
    return replace(
        marked,
        rejected=(*now.rejected, Rejection(event.branch_id, event.rule, event.reason)),
        closed=now.closed.union(refused),
        failures=now.failures + was_taken,
    )


def _made(state: State, branch: HypothesisBranch) -> State:
    """The calls of a branch as a turn of its own, for which no model was asked; each gets an id that is new.

    It is a round like one that was spoken: else a run that is never asked for words would have no last one.
    """
    number = state.steps + 1
    message = ModelMessage("assistant", calls=tuple(NativeCall("", branch.tool_name, a) for a in branch.argument_sets))
    parsed = Parsed(
        tuple(ParsedCall(at, branch.tool_name, a) for at, a in enumerate(branch.argument_sets)), format="native"
    )
    calls, ids = calls_of(state, ModelReplied(number, message, parsed, role=SOLO))
    step = state.running_step
    step_id = step.step_id if step is not None else ""
    speaker = state.speakers[SOLO]
    state = changed(state, speakers={**state.speakers, SOLO: changed(speaker, rounds=speaker.rounds + 1)})
    left, called = rounds_to_tell(state, SOLO), state.called
    turn = Turn(number, message, parsed, "native", "any", SOLO, "calls", calls, left, step_id=step_id, called=called)
    wire_ids, made = state.wire_ids.plus(ids), state.calls_made + len(calls)
    return changed(state, done=state.turns, turn=turn, wire_ids=wire_ids, calls_made=made, failure=None)
