"""What a model adds to the guard: what it is asked for each stage, what its reply has to be, and what of it counts.

What it says of a call can tighten the word of the policies, and never loosen it; where it failed, or was not asked, a
person is. What it reads in the words is joined to them in `intent`. Foreign text stands between marks with the run's
nonce; the user's words and the policies' findings are our own. Source: spec/guard.md, sections 3.4, 3.9 and 4.1,
policy 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, assert_never, get_args

from surefoot.core.gate.effects import guess
from surefoot.core.gate.record import TARGETS, Choosing, GateRecord
from surefoot.core.gate.roles import Path, is_named, leaves
from surefoot.core.gate.sinks import aimed
from surefoot.core.parse.frames import Frame, attribute, plain, stripped
from surefoot.core.text import json_text, object_schema
from surefoot.core.text.words import late
from surefoot.types import guard
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.guard_events import JudgementMade
from surefoot.types.outcomes import Allow, Ask, Decision, Deny
from surefoot.types.plan import RESERVED
from surefoot.types.tools import Catalogue, Effect, ToolResult, ToolSpec, Trust

CONSTRAINTS, SKETCH, SANITISE, JUDGE = "guard/constraints", "guard/sketch", "guard/sanitise", "guard/judge"
RECOMMENDED, RECOMMENDED_WORDS, CLOSED = "guard/recommended", "guard/recommended_words", "guard/closed"
RECOMMENDED_THOUGHT = "guard/recommended_thought"
"""The templates, by the names under which they are files and stand in a run's record."""

RULE = "judge"
MOST_CONSTRAINTS = 12
MOST_STEPS = 8
LONGEST_WORDS = 4_000  # characters of the user's words that a stage reads
LONGEST_CALL = 4_000
LONGEST_ARGUMENTS = 2_000  # characters of the arguments of a branch that are shown
LONGEST_REASON = 200
MOST_VALUES = 20

_NAME = late(r"[\w.-]{1,64}")
_Text = {"type": "string"}
Verdict = tuple[Decision, str, guard.Grounds]


def _list_of(item: Mapping[str, object], most: int) -> dict[str, object]:
    return {"type": "array", "items": item, "maxItems": most}


_CAPABILITIES = _list_of({"enum": [*get_args(guard.Capability)]}, 4)
_SKETCH_STEP = {
    "step_type": _Text,
    "allowed_capabilities": _CAPABILITIES,
    "forbidden_capabilities": _CAPABILITIES,
    "description": _Text,
}
SKETCH_SCHEMA = object_schema(
    {"steps": _list_of(object_schema(_SKETCH_STEP, "forbidden_capabilities", "description"), MOST_STEPS)}
)
MASK_SCHEMA = object_schema({"mask": _list_of(object_schema({"path": _Text, "quote": _Text, "why": _Text}, "path"), 8)})
"""What the reply of a sanitiser has to be: it names passages, and rewrites nothing."""

JUDGEMENT_SCHEMA = object_schema(
    {
        "reason": _Text,
        "verdict": {"enum": ["allow", "ask", "deny"]},
        "constraint_id": {"anyOf": [_Text, {"type": "null"}]},
    }
)
"""What the reply of a judge has to be. The reason comes first: a small model decides better once it has given one."""


@dataclass(frozen=True, slots=True)
class StagePrompt:
    """One request of a stage: its template by name, the user message, and the JSON Schema of the reply.

    `held` is what a decoder is held to where that is narrower than what a reply is checked for.
    """

    template: str
    text: str
    schema: Mapping[str, object]
    held: Mapping[str, object] | None = None


def constraints_prompt(words: str, tools: Catalogue, gate: GateRecord) -> StagePrompt:
    """What the words allow and forbid, out of the effects that the tools of the run have."""
    used = {guess(tool, gate.known.config.guess).effect or "write" for tool in tools.tools}
    effects: tuple[Effect, ...] = tuple(one for one in get_args(Effect) if one in used and one != "read") or ("write",)
    condition = {
        "effect": {"enum": [*effects]},
        **dict.fromkeys(TARGETS, _list_of(_Text, 8)),
        "max_amount": {"type": "number"},
        "max_count": {"type": "integer"},
    }
    one = {
        "constraint_type": {"enum": [*get_args(guard.ConstraintType)]},
        "condition": {"type": "object", "properties": condition, "additionalProperties": False},
        "quote": _Text,
        "description": _Text,
    }
    text = f"Effects: {', '.join(effects)}\nWords: {words[:LONGEST_WORDS]}"
    schema = object_schema({"constraints": _list_of(object_schema(one, "description"), MOST_CONSTRAINTS)})
    return StagePrompt(CONSTRAINTS, text, schema)


def sketch_prompt(words: str) -> StagePrompt:
    """The steps that the words ask for, without tools."""
    return StagePrompt(SKETCH, f"Words: {words[:LONGEST_WORDS]}", SKETCH_SCHEMA)


def sanitise_prompt(name: str, result: ToolResult, gate: GateRecord) -> StagePrompt:
    """The passages of one result that give orders."""
    text = Frame(gate.nonce).render(result.content, result.source or name, result.trust)
    return StagePrompt(SANITISE, text, MASK_SCHEMA)


def judge_prompt(words: str, spec: ToolSpec, arguments: Mapping[str, object], gate: GateRecord) -> StagePrompt:
    """Whether one call serves what the words ask for."""
    anchor, aim = gate.known.words.anchor, aimed(gate.known, spec, arguments)
    limits = [
        f"[{attribute(one.constraint_id)}] {one.constraint_type}: {plain(stripped(one.description))}"
        for one in (*anchor.constraints.constraints, *gate.known.config.constraints)
    ]
    values = [
        f"- {_place(path, spec)} ({one.role}): {one.origin}" + (f", {one.form} of a result" if one.form else "")
        for (path, _), one in zip(leaves(arguments, spec), aim.evidence[:MOST_VALUES], strict=False)
    ]
    called = Frame(gate.nonce).render(json_text(arguments)[:LONGEST_CALL], "the agent", "untrusted")
    parts = [
        f"The user's words:\n{words[:LONGEST_WORDS]}",
        f"Effects that they ask for: {', '.join(sorted(anchor.effects_asked))}",
        *(["Limits:\n" + "\n".join(limits)] if limits else []),
        f"The call: {attribute(spec.name)}, effect {aim.effect.effect or 'unknown'}\n{called}",
        *(["Where its values come from:\n" + "\n".join(values)] if values else []),
    ]
    return StagePrompt(JUDGE, "\n\n".join(parts), JUDGEMENT_SCHEMA)


def _place(path: Path, spec: ToolSpec) -> str:
    """Where a value stands in the arguments; "*" for a key that the schema does not name, or that is not a name."""
    shown = (
        str(part) if is_named(path[: at + 1], spec) and _NAME.fullmatch(str(part)) else "*"
        for at, part in enumerate(path)
    )
    return "/" + "/".join(shown)


def is_judged(gate: GateRecord, spec: ToolSpec, arguments: Mapping[str, object]) -> bool:
    """Whether a judge looks at such a call at all: it may change something, or carries a value out of the house."""
    aim = aimed(gate.known, spec, arguments)
    carries = (e.kind == "url" and e.role != "content" for e in aim.evidence)
    return aim.is_effectful or aim.effect.egress or any(carries)


def tightened(gate: GateRecord, made: JudgementMade | None, said: Verdict) -> Verdict:
    """What the policies say of a call that is judged, with the judge's word. Only "allow" leaves it as it is."""
    decision, rule, grounds = said
    word: Literal["allow", "ask", "deny"] = "ask"  # where nothing was said of exactly this call
    if made is not None and made.digest == grounds.digest:
        word = made.verdict or "ask"
    if isinstance(decision, Deny) or word == "allow":
        return said
    reason = f"the judge: {made.reason[:LONGEST_REASON]}" if made and made.reason else ""
    also = (rule, *grounds.also) if isinstance(decision, Ask) else grounds.also
    if word == "deny":
        told = "refused: this does not look like what the user asked for; do what was asked, or ask the user"
        return Deny(told), RULE, replace(grounds, also=also, reason_person=reason)
    asked = "the judge wants a person to look at this" if made and made.verdict else "the judge gave no answer"
    if gate.known.config.strict:
        return Deny(f"refused, and nobody is there to ask: {asked}"), RULE, replace(grounds, also=also)
    match decision:
        case Ask(why):
            return Ask(f"{why}; {asked}"), rule, replace(grounds, also=(*grounds.also, RULE), reason_person=reason)
        case Allow():
            return Ask(asked), RULE, replace(grounds, reason_person=reason)
        case _:
            assert_never(decision)


def shown_calls(branch: guard.HypothesisBranch, frame: Frame, trust: Trust) -> str:
    """The arguments of a branch as data: a model wrote them, perhaps after it had read foreign text."""
    told = "\n".join(json_text(one) for one in branch.argument_sets)[:LONGEST_ARGUMENTS]
    return frame.render(told, "the agent", trust)


def recommended(now: Choosing, prompts: Mapping[str, str], frame: Frame, trust: Trust, most: int) -> str:
    """What the model is told where it goes on with a branch, or after nothing survived; "" where there is nothing.

    It is told once: behind the turn that follows, it stands where it was said.
    """
    branch = now.branch(now.decision.selected_branch_id) if now.decision is not None else None
    if branch is None:
        if now.decision is None or now.trees < most or not now.rejected:
            return ""
        reasons = dict.fromkeys(
            f"- {attribute(out.tool_name)}: {plain(one.reason)}"
            for one in now.rejected
            if (out := now.branch(one.branch_id)) is not None
        )
        return prompts[CLOSED].format(reasons="\n".join(reasons)).strip()
    if branch.tool_name in RESERVED:
        is_thought = RESERVED[branch.tool_name] == "reasoning" and RECOMMENDED_THOUGHT in prompts
        return prompts[RECOMMENDED_THOUGHT if is_thought else RECOMMENDED_WORDS].strip()  # an older run has but one
    calls = "one call" if len(branch.argument_sets) == 1 else f"{len(branch.argument_sets)} calls, one for each line"
    arguments = shown_calls(branch, frame, trust)
    return prompts[RECOMMENDED].format(tool=attribute(branch.tool_name), calls=calls, arguments=arguments).strip()
