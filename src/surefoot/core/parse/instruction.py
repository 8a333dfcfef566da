"""A Thinker's reply: an instruction with its input, or the word that the task is solved.

Source: spec/reasoners.md, section 7. Nothing in it is ever run: a call in it is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

import orjson

from surefoot.core.parse.marks import TASK_DONE
from surefoot.core.parse.reply import CUT, parse
from surefoot.core.parse.scan import whole_fence
from surefoot.core.parse.stream import visible
from surefoot.core.text import object_schema
from surefoot.types.messages import NativeCall
from surefoot.types.reply import Fault, Instruction, Parsed, ReplyWarning
from surefoot.types.tools import Catalogue

_NO_INPUT = frozenset({"", "none", "null", "n/a", "无"})


def read_instruction(text: str, *, calls: Sequence[NativeCall] = (), finish_reason: str = "stop") -> Parsed:
    """What a Thinker's reply asks of its Actor: the first `<instruction>` and `<input>`, or the step object with them.

    `TASK_DONE` counts when it stands alone on a line outside these two. What stands behind a result or a report that
    the Thinker wrote itself is dropped. Faults are `calls_not_allowed` for a reply that holds a call outside the two
    tags, `truncated` for one that was cut off within them, and `no_step` for one that neither instructs nor says that
    it is done. Never raises; linear.
    """
    seen = visible(text)
    invented = _INVENTED.search(seen.text)
    shown = seen.text[: invented.start()] if invented else seen.text
    used = seen.in_reply(invented.start()) if invented else -1
    warnings: frozenset[ReplyWarning] = frozenset({"hallucinated_result_removed"} if invented else ())

    def parsed(instruction: Instruction | None, fault: Fault | None = None) -> Parsed:
        return Parsed(
            content=shown or None,
            error=fault,
            warnings=warnings,
            format="instruction",
            used=used,
            instruction=instruction,
        )

    step, is_object = _step(shown)
    if is_object and step is None:
        kind = "truncated" if finish_reason in CUT else "malformed_json"
        return parsed(None, Fault(kind, "the JSON object of the step could not be read"))
    parts, outside, is_open = _in_tags(shown)
    is_done = any(line.strip() == TASK_DONE for line in outside.splitlines())
    instruction = step or Instruction(parts.get("instruction", ""), _given(parts.get("input", "")), is_done)
    beside = parse(outside, dialect="tags") if step is None and not calls else Parsed()
    if calls or beside.calls or beside.errors:
        told = "only the Actor calls tools; tell it in an instruction what you need; nothing was run"
        return parsed(None, Fault("calls_not_allowed", told))
    if finish_reason in CUT and is_open and step is None:
        return parsed(None, Fault("truncated", "the instruction was cut off by the length limit; write a shorter one"))
    if instruction.text or instruction.done:
        return parsed(instruction)
    if not shown.strip():
        return parse(text, finish_reason=finish_reason)
    return parsed(None, Fault("no_step", "neither an instruction nor TASK_DONE"))


_INVENTED = re.compile(r"<(?:function_call_result|actor_report)[\s>]")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>instruction|input)>")


def _in_tags(text: str) -> tuple[Mapping[str, str], str, bool]:
    """The parts of a reply in tags, what stands outside, and whether the last is open; code spans hold no tags.

    Of each part the first that holds something counts.
    """
    outside: list[str] = []
    parts: dict[str, str] = {}
    is_open = False
    at = 0
    while (tag := _TAG.search(text, at)) is not None:
        if tag["end"] or text[tag.start() - 1 : tag.start()] == "`":
            outside.append(text[at : tag.end()])
            at = tag.end()
            continue
        outside.append(text[at : tag.start()])
        end = _TAG.search(text, tag.end())
        stop = end.start() if end else len(text)
        is_open = end is None
        if part := text[tag.end() : stop].strip():
            parts.setdefault(tag["name"], part)
        at = end.end() if end and end["end"] else stop
    return parts, "".join((*outside, text[at:])), is_open


def _given(text: str) -> str:
    return "" if text.casefold() in _NO_INPUT else text


def _step(shown: str) -> tuple[Instruction | None, bool]:
    """The step object that a schema held the reply to, and whether the reply is meant as one."""
    fence = whole_fence(shown)
    text = (shown[fence.inner : fence.inner_end] if fence else shown).strip()
    if not text.startswith("{") or '"next"' not in text:
        return None, False
    try:
        value: object = orjson.loads(text)
        if not isinstance(value, Mapping):
            return None, True
        step = cast("Mapping[str, object]", value)  # keys of a JSON object
        given = _as_text(step.get("input"))
        text = _as_text(step.get("instruction"))
    except (orjson.JSONDecodeError, TypeError):  # what nests too deeply can be read and not written
        return None, True
    is_done = step.get("next") == TASK_DONE
    tool = "" if is_done or step.get("next") == _NO_TOOL else str(step.get("next") or "")
    if not text and tool:
        text = f"Call {tool} with this input, then report its result."
    return Instruction(text, _given(given), is_done, tool), True


def _as_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else orjson.dumps(value).decode() if value else ""


def instruction_schema(tools: Catalogue, *, may_end: bool) -> Mapping[str, object]:
    """What a Thinker's reply is held to in schema mode; without `may_end` it has to instruct. Made once for the tools.

    A small model is led by the form: after a thought it names the tool that the Actor is to use, and the input has that
    tool's shape, so that nothing is left to say. With more than `MOST_SHAPED_INPUTS` tools it instructs in words.
    """

    def made(tools: Catalogue) -> Mapping[str, object]:
        if len(tools.tools) <= MOST_SHAPED_INPUTS and (tools.tools or may_end):
            parts = [{"thought": _WORDS, "next": {"const": t.name}, "input": t.parameters} for t in tools.tools]
        else:
            named = {"enum": [*tools.names, _NO_TOOL]}
            parts = [{"thought": _WORDS, "next": named, "instruction": {**_WORDS, "minLength": 8}, "input": _WORDS}]
        if may_end:
            parts.append({"thought": _WORDS, "next": {"const": TASK_DONE}})
        return {"anyOf": [*map(object_schema, parts)]}

    return tools.derived(f"instruction_schema:{may_end}", made)


MOST_WORDS_CHARS = 200
MOST_SHAPED_INPUTS = 12

_WORDS = {"type": "string", "maxLength": MOST_WORDS_CHARS}
_NO_TOOL = "WORDS"
