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
    a branch is taken                  → the model goes on, with the recommendation; one of words is a step without
                                         tools (`core/loop/speakers.py`): a thought, which another tree follows, or the
                                         answer
    none survived                      → another tree; after `max_trees` the step of a plan fails, and the model of a
                                         run without one goes on with the reasons

Every branch is judged with each set of its arguments, those before it taken for made; its calls are judged again when
they are made. Source: spec/guard.md, sections 3.4 and 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from surefoot.core.gate.effects import guess
from surefoot.core.gate.record import CALL_FAILED, RUN, Choosing, GateRecord, key_of_branch
from surefoot.core.gate.verdict import digest_of
from surefoot.core.guard.judge import judge
from surefoot.core.parse.frames import Frame, attribute, plain
from surefoot.core.state.roles import SOLO
from surefoot.core.state.state import Call, State, Turn
from surefoot.core.state.turn import changed
from surefoot.core.text import json_text, object_schema
from surefoot.core.view.observations import frame_of, is_ours
from surefoot.core.view.stages import LONGEST_ARGUMENTS, LONGEST_WORDS, RECOMMENDED_WORDS, StagePrompt, shown_calls
from surefoot.core.view.step import (
    ISOLATED,
    branch_of_words,
    choosing_now,
    goal_of,
    in_view,
    place_of,
    tools_now,
    without_pager,
)
from surefoot.types.guard import CommitmentDecision, HypothesisBranch, HypothesisTree
from surefoot.types.guard_events import BranchCommitted, BranchRejected
from surefoot.types.messages import ModelMessage, ModelRequest
from surefoot.types.moves import Ask, Move, Record, Think
from surefoot.types.outcomes import Allow, Decision, Deny
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
    if (row := _row(state, gate)) is not None:
        return row
    is_told = choosing_now(state).point == state.steps and branch_of_words(state) is not None
    return replace(move, want="reasoning") if is_told else move


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
    error = StepError("denied", ALL_REJECTED, f"no way to do it is allowed: {why}")
    return Record((StepEnded(step_now(state), error=error),))


def _another(state: State, now: Choosing) -> Ask:
    trees = now.trees if now.tree is not None and state.steps == now.point else 0
    scope = f"{place_of(state)}:" if state.scope else ""
    return Ask("branches", f"{scope}{state.steps + 1}.{trees + 1}")


def _after_a_turn(state: State, now: Choosing, tree: HypothesisTree, most: int) -> Move | None:
    turn, taken = state.turn, now.current
    calls = [call for call in turn.calls if call.result is not None] if turn is not None else []
    is_words = turn is not None and turn.want in ("reasoning", "isolated")
    if is_words and taken is not None:
        return _another(state, now)
    if not calls and not is_words:
        return None
    if taken is not None and (out := _failed(calls, taken, tree)) is not None:
        return Record((out,))
    if taken is not None or not any(branch.status == "failed" for branch in tree.branches):
        return _another(state, now)
    return None if now.failures > most else _choice(state, now, tree, has_failed=True)


def _choice(state: State, now: Choosing, tree: HypothesisTree, *, has_failed: bool = False) -> Move:
    """Which of the branches that are left is taken; once one has failed, the next in order, and no model is asked."""
    left = survivors(state, tree)
    for branch, decision, rule in left:
        if isinstance(decision, Deny):
            return Record((BranchRejected(tree.tree_id, branch.branch_id, rule, decision.reason),))
    if not left and has_failed:
        return _another(state, now)
    if not left:
        none = CommitmentDecision(tree.tree_id, None, "order", "all were rejected", now.rejected)
        return Record((BranchCommitted(none),))
    if len(left) > 1 and not has_failed:
        return Ask("choice", tree.tree_id)
    first, reason = left[0][0], "the branch before it failed" if has_failed else "the only one that is left"
    taken = CommitmentDecision(tree.tree_id, first.branch_id, "order", reason, now.rejected)
    return Record((BranchCommitted(taken, direct=is_direct(state, first)),))


def is_direct(state: State, branch: HypothesisBranch) -> bool:
    """Whether a branch is made without asking the model for its calls; one of words never is."""
    return state.gate is not None and state.gate.known.config.direct and branch.tool_name not in RESERVED


def _failed(calls: Sequence[Call], taken: HypothesisBranch, tree: HypothesisTree) -> BranchRejected | None:
    """What is wrong with the first call of the branch that came to nothing; nobody knows that of one in doubt."""
    for call in (one for one in calls if one.name == taken.tool_name):
        result, spec = call.result, call.spec
        if result is None or not result.is_error or result.kind == "in_doubt" or spec is None:
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


HYPOTHESES, COMMIT = "guard/hypotheses", "guard/commit"
"""The templates, by the names under which they are files and stand in a run's record."""

MOST_BRANCHES = 6
MOST_SETS = 6
LONGEST_RESULT = 1_500
"""Characters of one result that are shown."""

MOST_RESULTS = 8
MOST_TOOLS_HELD = 12
"""Tools up to which a decoder is held to the parameters of each; with more, only what the reply is checked for."""

WORDS = "__response__"

_TEXT = {"type": "string"}
_LEVELS = {"enum": ["low", "medium", "high"]}
_REDUNDANCIES = {"enum": ["minimal", "moderate", "high"]}
_BRANCH: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "branch_id": _TEXT,
        "tool_name": _TEXT,
        "argument_sets": {"type": "array", "items": {"type": "object"}, "maxItems": MOST_SETS},
        "rationale": _TEXT,
        "risk_level": _LEVELS,
        "necessity_score": {"type": "number", "minimum": 0, "maximum": 1},
        "redundancy_level": _REDUNDANCIES,
    },
    "required": ["tool_name"],
    "additionalProperties": True,
}
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "branches": {"type": "array", "items": _BRANCH},
        "recommended_branch_id": {"anyOf": [_TEXT, {"type": "null"}]},
    },
    "required": ["branches"],
    "additionalProperties": True,
}
"""What the reply has to be. A branch of an unknown tool fits: it is dropped by itself."""


def hypotheses_prompt(state: State, gate: GateRecord) -> StagePrompt:
    """The ways to go on in the running step, out of the tools that it has now."""
    tools, now, frame = offered(state), choosing_now(state), Frame(gate.nonce)
    lines = (json_text({"name": t.name, "does": t.description, "parameters": t.parameters}) for t in tools.tools)
    out = [
        f"- {attribute(branch.tool_name)}: {plain(one.reason)}\n{shown_calls(branch, frame, in_view(state)[1])}"
        for one in now.rejected
        if (branch := now.branch(one.branch_id)) is not None
    ]
    before, done = _situation(state, frame)
    parts = [*before, "Tools:\n" + "\n".join(lines), *done]
    parts += ["Refused or failed, so do not name them again:\n" + "\n".join(out)] if out else []
    held = tools.derived("hypotheses", _branch_schema) if len(tools.tools) <= MOST_TOOLS_HELD else None
    return StagePrompt(HYPOTHESES, "\n\n".join(parts), SCHEMA, held)


def commit_prompt(state: State, gate: GateRecord, branches: Sequence[HypothesisBranch]) -> StagePrompt:
    """Which of the branches that survived is taken."""
    frame, trust = Frame(gate.nonce), in_view(state)[1]
    shown: list[str] = []
    for one in branches:
        spec, does = state.tools.get(one.tool_name), "words, without a tool"
        if spec is not None:
            effect = guess(spec, gate.known.config.guess).effect or "unknown"
            does = f"{attribute(spec.name)}, effect {effect}"
        shown.append(f"[{one.branch_id}] {does}\n{shown_calls(one, frame, trust)}")
    before, done = _situation(state, frame)
    schema = object_schema({"reason": _TEXT, "branch_id": {"enum": [one.branch_id for one in branches]}})
    return StagePrompt(COMMIT, "\n\n".join([*before, *done, "Branches:\n" + "\n".join(shown)]), schema)


def words_request(state: State) -> ModelRequest:
    """The last try of a branch of words: nothing of the conversation, only what is asked and what was found as data."""
    before, done = _situation(state, Frame(state.gate.nonce if state.gate is not None else ""))
    system = state.prompts.get(ISOLATED) or state.prompts[RECOMMENDED_WORDS]  # an older run has but that
    told = (ModelMessage("user", "\n\n".join((*before, *done))),)
    return ModelRequest(system.strip(), told, "text", traits=state.speakers[SOLO].traits)


def _situation(state: State, frame: Frame) -> tuple[list[str], list[str]]:
    """The user's words and the running step of a plan, framed where its writer had read foreign text; last calls."""
    words = state.task.text[:LONGEST_WORDS] if state.task is not None else ""
    before = [f"The user's words:\n{words}"]
    plan, step = state.plan, state.running_step
    if plan is not None and step is not None:
        goal = goal_of(state, step)
        is_ours = plan.trust == "trusted"
        before.append(f"This step: {goal}" if is_ours else f"This step:\n{frame.around(goal, 'the plan', plan.trust)}")
    calls = [call for turn in state.turns for call in turn.calls if call.result is not None][-MOST_RESULTS:]
    results = "\n".join(_result(state, call, frame) for call in calls)
    return before, ["Done so far:\n" + results] if calls else []


def _result(state: State, call: Call, own: Frame) -> str:
    frame = frame_of(state, call)
    result = call.result
    assert result is not None  # noqa: S101  # only such are shown
    called = f"{attribute(call.name)} {json_text(call.arguments)[:LONGEST_ARGUMENTS]}"
    if is_ours(result):  # the arguments are a model's all the same
        told = plain(own.cleaned(f"{result.kind}: {result.content}"))[:LONGEST_RESULT]
        return f"{own.render(called, 'the agent', in_view(state)[1])}\n{told}"
    text = plain(frame.cleaned(f"{called}\n{result.kind}: {result.content}", is_error=result.is_error))
    return frame.around(text[:LONGEST_RESULT], attribute(result.source or call.name), result.trust)


def accepted(state: State, found: Sequence[HypothesisBranch]) -> tuple[tuple[HypothesisBranch, ...], int]:
    """What counts of branches whose arguments fit, with new ids and what their tools are declared to do.

    Dropped, and counted, is what is of no offered tool, there twice, refused in this step or known already, a second
    thought in a row, and what is beyond the sixth.
    """
    now, tools, seen = choosing_now(state), offered(state), set[str]()
    has_thought = state.turn is not None and state.turn.want in ("reasoning", "isolated")
    words = {name for name, kind in RESERVED.items() if kind == "response" or (kind == "reasoning" and not has_thought)}
    kept: list[HypothesisBranch] = []
    for one in found:
        key, spec = key_of_branch(one), tools.get(one.tool_name)
        if key in seen or key in now.closed or (spec is None and one.tool_name not in words) or not one.argument_sets:
            continue
        known = (state.known.get(Call("", "", one.tool_name, arguments).key) for arguments in one.argument_sets)
        is_known = spec is not None and not spec.polling and all(it is not None and it.answers for it in known)
        if is_known or len(kept) == MOST_BRANCHES:
            continue
        seen.add(key)
        branch = replace(one, branch_id=f"b{len(kept) + 1}", step_id=step_now(state))
        if spec is not None and state.gate is not None:
            does = guess(spec, state.gate.known.config.guess)
            is_sent = does.egress or "communicate" in (does.effect, does.own)
            branch = replace(branch, has_side_effects=does.effect != "read", requires_external_communication=is_sent)
        kept.append(branch)
    return tuple(kept), len(found) - len(kept)


def _branch_schema(tools: Catalogue) -> Mapping[str, object]:
    """What a decoder is held to: the tools that there are, each with its parameters; the reasons come first."""

    def branch(name: str, parameters: Mapping[str, object] | None) -> dict[str, object]:
        sets = {"argument_sets": {"type": "array", "items": parameters, "minItems": 1, "maxItems": MOST_SETS}}
        return object_schema(
            {
                "rationale": {"type": "string", "maxLength": 120},
                "tool_name": {"const": name},
                **(sets if parameters is not None else {}),
                "risk_level": _LEVELS,
                "necessity_score": {"type": "number"},
                "redundancy_level": _REDUNDANCIES,
            }
        )

    branches = [*(branch(tool.name, tool.parameters) for tool in tools.tools), branch(WORDS, None)]
    return object_schema({"branches": {"type": "array", "items": {"anyOf": branches}, "minItems": 1, "maxItems": 3}})
