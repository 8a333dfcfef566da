"""What a model is asked for the stages of the guard: the template, what stands below it, and what the reply has to be.

Foreign text stands between marks with the run's nonce; the user's words and the policies' findings are our own.
Source: spec/guard.md, section 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from surefoot.core.gate.anchoring import constraints_schema, sketch_schema
from surefoot.core.gate.effects import guess
from surefoot.core.gate.judgement import SCHEMA as JUDGEMENT_SCHEMA
from surefoot.core.gate.late import Late
from surefoot.core.gate.perception import Frame, stripped
from surefoot.core.gate.record import GateRecord
from surefoot.core.gate.roles import Path, is_named, leaves
from surefoot.core.gate.sinks import aimed
from surefoot.core.state import Call
from surefoot.core.text import json_text
from surefoot.core.told import attribute, plain
from surefoot.types.dataclass import dataclass
from surefoot.types.tools import Catalogue, Effect, ToolResult, ToolSpec

CONSTRAINTS, SKETCH, SANITISE, JUDGE = "guard/constraints", "guard/sketch", "guard/sanitise", "guard/judge"
"""The templates, by the names under which they are files and stand in a run's record."""

LONGEST_WORDS = 4_000
"""Characters of the user's words that a stage reads."""

LONGEST_CALL = 4_000
MOST_VALUES = 20

MASK_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "mask": {
            "type": "array",
            "maxItems": 8,
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "quote": {"type": "string"}, "why": {"type": "string"}},
                "required": ["quote", "why"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["mask"],
    "additionalProperties": False,
}
"""What the reply of a sanitiser has to be: it names passages, and rewrites nothing."""


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
    text = f"Effects: {', '.join(effects)}\nWords: {words[:LONGEST_WORDS]}"
    return StagePrompt(CONSTRAINTS, text, constraints_schema(effects))


def sketch_prompt(words: str) -> StagePrompt:
    """The steps that the words ask for, without tools."""
    return StagePrompt(SKETCH, f"Words: {words[:LONGEST_WORDS]}", sketch_schema())


def sanitise_prompt(name: str, result: ToolResult, gate: GateRecord) -> StagePrompt:
    """The passages of one result that give orders."""
    frame = Frame(gate.nonce)
    text = frame.around(plain(frame.cleaned(result.content)), attribute(result.source or name), result.trust)
    return StagePrompt(SANITISE, text, MASK_SCHEMA)


def judge_prompt(words: str, call: Call, spec: ToolSpec, gate: GateRecord) -> StagePrompt:
    """Whether one call serves what the words ask for."""
    anchor, aim = gate.known.words.anchor, aimed(gate.known, spec, call.arguments)
    limits = [
        f"[{attribute(one.constraint_id)}] {one.constraint_type}: {plain(stripped(one.description))}"
        for one in (*anchor.constraints.constraints, *gate.known.config.constraints)
    ]
    values = [
        f"- {_place(path, spec)} ({one.role}): {one.origin}" + (f", {one.form} of a result" if one.form else "")
        for (path, _), one in zip(leaves(call.arguments, spec), aim.evidence[:MOST_VALUES], strict=False)
    ]
    frame = Frame(gate.nonce)
    arguments = frame.around(plain(frame.cleaned(json_text(call.arguments)[:LONGEST_CALL])), "the agent", "untrusted")
    parts = [
        f"The user's words:\n{words[:LONGEST_WORDS]}",
        f"Effects that they ask for: {', '.join(sorted(anchor.effects_asked))}",
        *(["Limits:\n" + "\n".join(limits)] if limits else []),
        f"The call: {attribute(spec.name)}, effect {aim.effect.effect or 'unknown'}\n{arguments}",
        *(["Where its values come from:\n" + "\n".join(values)] if values else []),
    ]
    return StagePrompt(JUDGE, "\n\n".join(parts), JUDGEMENT_SCHEMA)


_NAME = Late(r"[\w.-]{1,64}")


def _place(path: Path, spec: ToolSpec) -> str:
    """Where a value stands in the arguments; "*" for a key that the schema does not name, or that is no name."""
    shown = (
        str(part) if is_named(path[: at + 1], spec) and _NAME.fullmatch(str(part)) else "*"
        for at, part in enumerate(path)
    )
    return "/" + "/".join(shown)
