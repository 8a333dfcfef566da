"""A Thinker's reply: an instruction with its input, or the word that the task is solved.

Source: spec/reasoners.md, section 7. Nothing in it is ever run: a call in it is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

import orjson

from surefoot.core.parse.deliverable import TASK_DONE
from surefoot.core.parse.reply import CUT, parse
from surefoot.core.parse.visible import visible
from surefoot.types.messages import NativeCall
from surefoot.types.reply import Fault, Instruction, Parsed
from surefoot.types.tools import Catalogue

_NEXT_PART = re.compile(r"</?(?:instruction|input)>")
_NO_INPUT = frozenset({"", "none", "null", "n/a", "无"})


def read_instruction(text: str, *, calls: Sequence[NativeCall] = (), finish_reason: str = "stop") -> Parsed:
    """What a Thinker's reply asks of its Actor: the first `<instruction>` and `<input>`, or the step object with them.

    `TASK_DONE` counts when it stands alone on a line. The faults are `calls_not_allowed` for a reply that holds a call
    outside these two tags, and `no_step` for one that neither instructs nor says that it is done. Never raises; linear.
    """
    shown = visible(text).text
    step = _step(shown)
    instruction = step if step is not None else _tagged(shown)
    is_open = "<instruction>" in shown and "</instruction>" not in shown
    if calls or (step is None and _calls(shown, instruction)):
        told = "only the Actor calls tools; tell it in an instruction what you need; nothing was run"
        return Parsed(content=shown or None, error=Fault("calls_not_allowed", told), format="instruction")
    if finish_reason in CUT and is_open and not instruction.done:
        told = "the instruction was cut off by the length limit; write a shorter one"
        return Parsed(content=shown, error=Fault("truncated", told), format="instruction")
    if instruction.text or instruction.done:
        return Parsed(content=shown, format="instruction", instruction=instruction)
    if not shown.strip():
        return parse(text, finish_reason=finish_reason)
    return Parsed(content=shown, error=Fault("no_step", "neither an instruction nor TASK_DONE"), format="instruction")


def _tagged(shown: str) -> Instruction:
    text, given = _part(shown, "instruction"), _part(shown, "input")
    done = any(line.strip() == TASK_DONE for line in shown.splitlines())
    lines = [line for line in text.splitlines() if line.strip() != TASK_DONE]
    return Instruction("\n".join(lines).strip(), "" if given.casefold() in _NO_INPUT else given, done)


def _part(text: str, name: str) -> str:
    """The words behind the first opening tag, up to the next tag of this form, or to the end."""
    at = text.find(f"<{name}>")
    if at < 0:
        return ""
    start = at + len(name) + 2
    end = _NEXT_PART.search(text, start)
    return text[start : end.start() if end else len(text)].strip()


def _calls(shown: str, instruction: Instruction) -> bool:
    """Whether a call stands in the words outside the two tags."""
    for part in (instruction.text, instruction.input):
        shown = shown.replace(part, "", 1) if part else shown
    found = parse(shown, dialect="tags")
    return bool(found.calls or found.errors)


def _step(shown: str) -> Instruction | None:
    """The step object that a schema held the reply to; None if it is something else."""
    if not shown.lstrip().startswith("{"):
        return None
    try:
        value: object = orjson.loads(shown)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, Mapping) or "next" not in value:
        return None
    step = cast("Mapping[str, object]", value)  # keys of a JSON object
    given = _as_text(step.get("input"))
    is_done = step["next"] == TASK_DONE
    text = _as_text(step.get("instruction"))
    tool = "" if is_done or step["next"] == _NO_TOOL else _as_text(step["next"])
    if not text and tool:
        text = f"Call {tool} with this input, then report its result."
    return Instruction(
        text,
        "" if given.casefold() in _NO_INPUT else given,
        is_done,
        tool,
    )


def _as_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else orjson.dumps(value).decode() if value else ""


def instruction_schema(tools: Catalogue, *, may_end: bool) -> Mapping[str, object]:
    """What a Thinker's reply is held to in schema mode; without `may_end` it has to instruct. Made once for the tools.

    A small model is led by the form: after a thought it names the tool that the Actor is to use, and the input has that
    tool's shape, so that nothing is left to say. With more than `MOST_SHAPED_INPUTS` tools it instructs in words.
    """
    return tools.derived(f"instruction_schema:{may_end}", lambda all_: _any_of(all_, may_end=may_end))


MOST_WORDS_CHARS = 200
MOST_SHAPED_INPUTS = 12

_WORDS = {"type": "string", "maxLength": MOST_WORDS_CHARS}
_NO_TOOL = "WORDS"


def _any_of(tools: Catalogue, *, may_end: bool) -> Mapping[str, object]:
    if len(tools.tools) <= MOST_SHAPED_INPUTS and (tools.tools or may_end):
        branches = [
            _object({"thought": _WORDS, "next": {"const": tool.name}, "input": tool.parameters}) for tool in tools.tools
        ]
    else:
        following = {"enum": [*tools.names, _NO_TOOL]}
        instruction = {**_WORDS, "minLength": 8}
        branches = [_object({"thought": _WORDS, "next": following, "instruction": instruction, "input": _WORDS})]
    if may_end:
        branches.append(_object({"thought": _WORDS, "next": {"const": TASK_DONE}}))
    return {"anyOf": branches}


def _object(properties: Mapping[str, object]) -> Mapping[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
