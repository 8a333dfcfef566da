"""Before a model is asked for a step with tools: which ways to go on there are, and which of them is taken.

Rows of the table of moves; the first that applies decides. A run without a plan is one step.

    no tree yet                        → ask for one
    the turn since has no result       → the model goes on; what was recommended stands
    the branch that was taken failed   → put that on record; a call with other arguments is none of its calls
    one has failed, none is taken      → the next in order, else a new tree; none once `max_backtracks` have failed
    another turn since                 → ask for a new tree
    a branch that the gate refuses     → put that on record
    one branch left                    → it is taken
    several left                       → a model chooses
    a branch is taken                  → the model goes on, with the recommendation
    none survived                      → another tree; after `max_trees` the step of a plan fails, and the model of a
                                         run without one goes on with the reasons

Every branch is judged by the gate's one entry, with each set of its arguments and those before it taken for made; a
branch is an opinion, and its calls are judged again when they are made. Source: spec/guard.md, sections 3.4 and 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surefoot.core.gate.effects import guess
from surefoot.core.gate.record import CALL_FAILED, RUN, Choosing, GateRecord
from surefoot.core.gate.verdict import digest_of
from surefoot.core.judge import judge
from surefoot.core.pager import without_pager
from surefoot.core.roles import SOLO
from surefoot.core.running import choosing_now, place_of, tools_now
from surefoot.core.state import Call, State, Turn, changed
from surefoot.types.decisions import Allow, Decision, Deny
from surefoot.types.guard import CommitmentDecision, HypothesisBranch, HypothesisTree
from surefoot.types.guard_events import BranchCommitted, BranchRejected
from surefoot.types.messages import ModelMessage
from surefoot.types.moves import Ask, Move, Record, Think
from surefoot.types.plan import RESERVED, StepError
from surefoot.types.plan_events import StepEnded
from surefoot.types.reply import Parsed
from surefoot.types.tools import Catalogue, Effect

ALL_REJECTED = "all_rejected"
"""Why the step of a plan fails when nothing of its last tree survives."""

Judged = tuple[HypothesisBranch, Decision, str]

_EFFECTS: Mapping[Effect | None, int] = {"read": 0, "write": 1, "communicate": 2, "transact": 3, "delete": 4, None: 5}
_REDUNDANCY = {"minimal": 0, "moderate": 1, "high": 2}


def before_thinking(state: State, move: Move) -> Move:
    """The move, or what has to be known before it; only before a request of one who speaks alone and may call."""
    gate = state.gate
    if gate is None or not gate.known.config.speculate or not isinstance(move, Think):
        return move
    if move.want != "any" or move.role != SOLO or not offered(state).tools:
        return move
    return _row(state, gate) or move


def step_now(state: State) -> str:
    """The id of the step that is speculated about."""
    return state.running_step.step_id if state.running_step is not None else RUN


def offered(state: State) -> Catalogue:
    """The tools that a branch may be of."""
    return tools_now(state) if state.has_cut_result else without_pager(tools_now(state))


def _row(state: State, gate: GateRecord) -> Move | None:
    now, config = choosing_now(state), gate.known.config
    tree = now.tree
    if tree is None:
        return _another(state, now)
    if state.steps > now.point:
        return _after_a_turn(state, now, tree, config.max_backtracks)
    if now.decision is None:
        return _choice(state, now, tree) if tree.branches else None
    if now.decision.selected_branch_id is not None:
        return None
    if now.trees < config.max_trees:
        return _another(state, now)
    if state.running_step is None:
        return None
    why = "; ".join(dict.fromkeys(one.reason for one in now.rejected))
    return Record(
        (StepEnded(step_now(state), error=StepError("denied", ALL_REJECTED, f"no way to do it is allowed: {why}")),)
    )


def _another(state: State, now: Choosing) -> Ask:
    trees = now.trees if now.tree is not None and state.steps == now.point else 0
    scope = f"{place_of(state)}:" if state.scope else ""
    return Ask("branches", f"{scope}{state.steps + 1}.{trees + 1}")


def _after_a_turn(state: State, now: Choosing, tree: HypothesisTree, most: int) -> Move | None:
    turn, taken = state.turn, now.taken
    calls = [call for call in turn.calls if call.result is not None] if turn is not None else []
    if not calls:
        return None
    if taken is not None and (out := _failed(calls, taken, tree)) is not None:
        return Record((out,))
    if taken is not None or not any(branch.status == "failed" for branch in tree.branches):
        return _another(state, now)
    if now.failures > most:
        return None
    left = survivors(state, tree)
    for branch, decision, rule in left:
        if isinstance(decision, Deny):
            return Record((BranchRejected(tree.tree_id, branch.branch_id, rule, decision.reason),))
    if not left:
        return _another(state, now)
    return _taken(state, now, tree, left[0][0], "the branch before it failed")


def _choice(state: State, now: Choosing, tree: HypothesisTree) -> Move:
    left = survivors(state, tree)
    for branch, decision, rule in left:
        if isinstance(decision, Deny):
            return Record((BranchRejected(tree.tree_id, branch.branch_id, rule, decision.reason),))
    if not left:
        none = CommitmentDecision(tree.tree_id, None, "order", "all were rejected", now.rejected)
        return Record((BranchCommitted(none),))
    if len(left) == 1:
        return _taken(state, now, tree, left[0][0], "the only one that is left")
    return Ask("choice", tree.tree_id)


def _taken(state: State, now: Choosing, tree: HypothesisTree, branch: HypothesisBranch, reason: str) -> Record:
    decision = CommitmentDecision(tree.tree_id, branch.branch_id, "order", reason, now.rejected)
    return Record((BranchCommitted(decision, direct=is_direct(state, branch)),))


def is_direct(state: State, branch: HypothesisBranch) -> bool:
    """Whether a branch is made without asking the model for its calls; one of words never is."""
    return state.gate is not None and state.gate.known.config.direct and branch.tool_name not in RESERVED


def _failed(calls: Sequence[Call], taken: HypothesisBranch, tree: HypothesisTree) -> BranchRejected | None:
    """What is wrong with the first call of the branch that came to nothing; nobody knows that of one in doubt.

    A call is one of a branch if it is of the same tool, with arguments that mean the same to the gate.
    """
    for call in calls:
        result, spec = call.result, call.spec
        if result is None or not result.is_error or result.kind == "in_doubt":
            continue
        if spec is None or call.name != taken.tool_name:
            continue
        if digest_of(spec, call.arguments) not in {digest_of(spec, arguments) for arguments in taken.argument_sets}:
            continue
        if isinstance(call.decision, Deny):
            return BranchRejected(tree.tree_id, taken.branch_id, call.rule or "denied", call.decision.reason)
        return BranchRejected(tree.tree_id, taken.branch_id, CALL_FAILED, f"the call failed ({result.kind})")
    return None


def survivors(state: State, tree: HypothesisTree) -> list[Judged]:
    """The branches that were not tried yet, each with the gate's word on it, in the order of section 3.4."""
    judged = [(branch, *_dry(state, branch)) for branch in tree.branches if branch.status == "untried"]
    return sorted(judged, key=lambda one: _rank(state, one[0], one[1]))


def _rank(state: State, branch: HypothesisBranch, decision: Decision) -> tuple[bool, int, bool, int, float, str]:
    """What is allowed before what is asked, then by what it does, and how sure that is. Words do what a read does."""
    is_words, spec = branch.tool_name in RESERVED, state.tools.get(branch.tool_name)
    guessing = state.gate.known.config.guess if state.gate is not None else "own"
    effect: Effect | None = "read" if is_words else guess(spec, guessing).effect if spec is not None else None
    return (
        decision != Allow(),
        _EFFECTS[effect],
        not is_words and (spec is None or not spec.declared),
        _REDUNDANCY[branch.redundancy_level],
        -branch.necessity_score,
        branch.branch_id,
    )


def _dry(state: State, branch: HypothesisBranch) -> tuple[Decision, str]:
    """The strictest word of the gate on the calls of a branch, as if they were made now, and its rule."""
    strictest: tuple[Decision, str] = (Allow(), "")
    if branch.tool_name in RESERVED:
        return strictest
    spec, number = state.tools.get(branch.tool_name), state.steps + 1
    done = state.turns
    turn = Turn(number, ModelMessage("assistant"), Parsed(), "native", "any", SOLO, "calls", step_id=branch.step_id)
    calls: tuple[Call, ...] = ()
    scope = f"{state.scope}." if state.scope else ""
    for position, arguments in enumerate(branch.argument_sets):
        call = Call(f"{scope}{number}.{position}", "", branch.tool_name, arguments, spec)
        then = changed(state, done=done, turn=changed(turn, calls=(*calls, call), _memo={}))
        decision, rule, _ = judge(then, call, is_dry=True)
        if isinstance(decision, Deny):
            return decision, rule
        if decision != Allow():
            strictest = (decision, rule)
        calls = (*calls, changed(call, decision=Allow()))
    return strictest
