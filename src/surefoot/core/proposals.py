"""What a model is asked for ways to go on: the prompts, the schemas of the replies, and what of a reply counts.

Results, and arguments that a model wrote, stand between marks; the user's words and the gate's reasons are our own.
Source: spec/guard.md, sections 3.4 and 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from surefoot.core.branches import offered, step_now
from surefoot.core.gate.effects import guess
from surefoot.core.gate.record import GateRecord, key_of_branch
from surefoot.core.gate.stages import LONGEST_ARGUMENTS, LONGEST_WORDS, StagePrompt, object_schema, shown_calls
from surefoot.core.parse.frames import Frame, attribute, plain
from surefoot.core.running import choosing_now, goal_of, in_view
from surefoot.core.state import Call, State
from surefoot.core.text.json import json_text
from surefoot.core.told import frame_of, is_ours
from surefoot.types.guard import HypothesisBranch
from surefoot.types.plan import RESERVED, WITHOUT_TOOLS
from surefoot.types.tools import Catalogue, ToolSpec

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
_REDUNDANCY = {"enum": ["minimal", "moderate", "high"]}
_BRANCH: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "branch_id": _TEXT,
        "tool_name": _TEXT,
        "argument_sets": {"type": "array", "items": {"type": "object"}, "maxItems": MOST_SETS},
        "rationale": _TEXT,
        "flows": {"type": "object"},
        "risk_level": _LEVELS,
        "necessity_score": {"type": "number", "minimum": 0, "maximum": 1},
        "redundancy_level": _REDUNDANCY,
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
    held = tools.derived("hypotheses", _held) if len(tools.tools) <= MOST_TOOLS_HELD else None
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


def _situation(state: State, frame: Frame) -> tuple[list[str], list[str]]:
    """The user's words and the running step of a plan; and the last calls of the run with what came of them.

    A step is in a frame where whoever wrote it had read foreign text.
    """
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
        asked = own.around(plain(own.cleaned(called)), "the agent", in_view(state)[1])
        return f"{asked}\n{plain(own.cleaned(f'{result.kind}: {result.content}'))[:LONGEST_RESULT]}"
    text = plain(frame.cleaned(f"{called}\n{result.kind}: {result.content}", is_error=result.is_error))
    return frame.around(text[:LONGEST_RESULT], attribute(result.source or call.name), result.trust)


def accepted(state: State, found: Sequence[HypothesisBranch]) -> tuple[tuple[HypothesisBranch, ...], int]:
    """What counts of branches whose arguments fit, with new ids and what their tools are declared to do.

    Dropped, and counted, is what is of no tool that is offered, what stands there twice, what the gate has refused in
    this step, what is known already, and what is beyond the sixth.
    """
    now, tools, seen = choosing_now(state), offered(state), set[str]()
    kept: list[HypothesisBranch] = []
    for one in found:
        key, spec = key_of_branch(one), tools.get(one.tool_name)
        is_words = RESERVED.get(one.tool_name) in WITHOUT_TOOLS
        if key in seen or key in now.closed or (spec is None and not is_words) or not one.argument_sets:
            continue
        if (spec is not None and _is_known(state, one, spec)) or len(kept) == MOST_BRANCHES:
            continue
        seen.add(key)
        branch = replace(one, branch_id=f"b{len(kept) + 1}", step_id=step_now(state))
        if spec is not None and state.gate is not None:
            does = guess(spec, state.gate.known.config.guess)
            is_sent = does.egress or "communicate" in (does.effect, does.own)
            branch = replace(branch, has_side_effects=does.effect != "read", requires_external_communication=is_sent)
        kept.append(branch)
    return tuple(kept), len(found) - len(kept)


def _is_known(state: State, branch: HypothesisBranch, spec: ToolSpec) -> bool:
    """Whether all that a branch would ask for was answered already, and may not have changed."""
    keys = (Call("", "", branch.tool_name, arguments).key for arguments in branch.argument_sets)
    return not spec.polling and all((known := state.known.get(key)) is not None and known.answers for key in keys)


def _held(tools: Catalogue) -> Mapping[str, object]:
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
                "redundancy_level": _REDUNDANCY,
            }
        )

    branches = [*(branch(tool.name, tool.parameters) for tool in tools.tools), branch(WORDS, None)]
    return object_schema({"branches": {"type": "array", "items": {"anyOf": branches}, "minItems": 1, "maxItems": 3}})
