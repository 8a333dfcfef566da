"""The front of the parser: one reply in, and out come calls, an answer, a fault, or plain content.

How a reply is read. Native calls come first and settle everything. Else reasoning is taken out (`visible`), and one
scan finds the first marker of a call (`marks`), which decides the family; each family has a reader that turns text
into drafts (`drafts`). Without a marker the forms that have none are tried, then ReAct labels, as the dialect has it.
At the end names are resolved and arguments validated (`settle`). Every reader walks the text from left to right and
never back, so the whole is linear; nothing raises, whatever the text. Source: spec/react.md, sections 5 to 8.

A Thinker's reply is an instruction with its input, or the word that the task is solved; nothing in it is ever run: a
call in it is a fault. Source: spec/reasoners.md, section 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import cast

import orjson

from surefoot.core.parse import json_calls
from surefoot.core.parse.calls import Found, Reading, Repairing, noted_if, read_native, settle
from surefoot.core.parse.marks import DEFAULT_LABELS, DELIVERABLE, TASK_DONE, FamilyName, Labels, Mark, first_mark
from surefoot.core.parse.pythonic import read_bare_pythonic
from surefoot.core.parse.react import React, first_action, has_answer_label, has_step, without_partial_stop
from surefoot.core.parse.scan import MOST_CALLS, HeldText, whole_fence
from surefoot.core.parse.steps import read_schema
from surefoot.core.parse.stream import Visible, visible, without_leaked_tokens
from surefoot.core.parse.tags import found_in_tags, read_python_blocks, read_python_tagged, read_tool_calls
from surefoot.core.parse.tokens import DSML, INVOKE, read_gemma, read_harmony, read_invokes, read_section
from surefoot.core.parse.toolset import offered_of, plain_name
from surefoot.core.text import object_schema
from surefoot.types.messages import NativeCall
from surefoot.types.reply import Fault, FaultyCall, Instruction, Parsed
from surefoot.types.tools import Catalogue, ToolSpec

STOPPED = frozenset({"stop", "tool_calls", "function_call", "tool_use", "end_turn", "stop_sequence", "eos"})
CUT = frozenset({"length", "max_tokens", "content_filter", "incomplete"})

_WHOLE_IF_UNFRAMED = frozenset({"pythonic", "llama3_json", "glm45", "deepseek_v31"})
_MAY_HOLD_A_CALL = re.compile(r"[<\[{`~]|\A\s*+[^\W\d][\w.\\-]*+\(")
_NO_FUNCTION = "no_function"
_JOINT = "\ud800"  # half of a pair: no argument holds it

FAMILIES: dict[FamilyName, Callable[[str, int, Reading], Found | None]] = {
    **dict.fromkeys(("hermes", "qwen3_xml", "glm45"), read_tool_calls),
    "mistral": json_calls.read_mistral,
    "llama3_json": read_python_tagged,
    "pythonic": read_python_blocks,
    "deepseek_v3": partial(read_section, family="deepseek_v3"),
    "deepseek_v31": partial(read_section, family="deepseek_v31"),
    "deepseek_v32_dsml": partial(read_invokes, form=DSML),
    "invoke": partial(read_invokes, form=INVOKE),
    "kimi_k2": partial(read_section, family="kimi_k2"),
    "harmony": read_harmony,
    "gemma": read_gemma,
    "tags": lambda text, start, reading: found_in_tags(text, reading),  # noqa: ARG005  # it walks from the start
}
"""Family -> (visible text, where its first marker stands, how to read) -> what it found. A new family is a row here."""


def parse(
    text: str,
    tools: Catalogue | Sequence[ToolSpec] = (),
    *,
    dialect: str = "auto",
    tool_calls: Sequence[NativeCall] = (),
    finish_reason: str = "stop",
    repair: Repairing = "lossless",
    labels: Labels = DEFAULT_LABELS,
) -> Parsed:
    """What one reply asks for. Never raises, whatever the text; linear in its length.

    `dialect`: "native" (calls beside the text, else forms that leaked into it, else content), "schema" (the step
    object), "react" (text forms, then labels; a reply without a step is `no_step`), "tags", the name of a family, or
    "auto" (any form; a reply without one is content). `repair`: "strict" allows no repair of JSON, "lossless"
    what says the same. What the model sent for parameters that the runtime fills is dropped. Without any tools every
    name counts as one, and untyped values stay text.
    """
    cut = finish_reason in CUT
    reading = Reading(offered_of(tools), labels, cut, finish_reason in STOPPED, repair)
    if tool_calls:
        shown = visible(text)
        found = read_native(tool_calls, shown.text, reading)
        if shown.text and has_answer_label(shown.text, reading):
            found = replace(found, warnings=found.warnings | {"final_dropped"})
        return _parsed(found, shown, reading)
    if dialect == "native" and text and _MAY_HOLD_A_CALL.search(text) is None and not text.isspace():
        return Parsed(content=text, format="native")
    shown = visible(text)
    kept = without_leaked_tokens(shown.text)
    if len(kept) < len(shown.text):  # control tokens at the end, unless they belong to the form that it is in
        mark = first_mark(shown.text)
        if mark is None or mark.family in ("hermes", "qwen3_xml", "glm45", "tags"):
            shown = replace(shown, text=kept, tokens_removed=True)
    if not shown.text.replace("\ufeff", "").strip():
        kind = "truncated" if shown.open_reasoning and cut else "empty"
        told = "the reply ended while thinking" if shown.open_reasoning else "nothing visible was written"
        return Parsed(error=Fault(kind, told), warnings=noted_if(shown.tokens_removed, "special_tokens_removed"))
    found, shown = _find(shown, reading, dialect)
    return _parsed(found, shown, reading)


def _find(shown: Visible, reading: Reading, dialect: str) -> tuple[Found, Visible]:
    """What the visible text holds, and the text that its places refer to. One single fence around it is unwrapped."""
    fence = whole_fence(shown.text)
    if fence is not None:
        inner = shown.part(fence.inner, fence.inner_end)
        found = _in(inner, reading, dialect)
        if found is not None and (found.final is not None or (found.drafts and not _declines(found, reading))):
            return found, inner
    found = _in(shown, reading, dialect)
    if found is None or _declines(found, reading):
        told = _NO_STEP.get(dialect)
        said = found.content if found is not None and found.content.strip() else shown.text
        found = Found("" if told is None else dialect, content=said, error=told)
    return found, shown


_NO_STEP = {
    "tags": Fault("no_call", "neither a call nor a deliverable was found"),
    "react": Fault("no_step", "neither an action nor a final answer was found"),
    "schema": Fault("no_step", "neither an action nor a final answer was found"),
}


def _declines(found: Found, reading: Reading) -> bool:
    """Whether all that is called is `no_function`, which some models are taught to call when they need no tool."""
    names = {plain_name(draft.name) for draft in found.drafts}
    return names == {_NO_FUNCTION} and reading.offered.find(_NO_FUNCTION).tool is None


def _in(shown: Visible, reading: Reading, dialect: str) -> Found | None:
    """What the text holds in this dialect; None if it holds nothing of the kind."""
    match dialect:
        case "react":
            return _in_labels(shown, reading)
        case "schema":
            return read_schema(shown.text, reading) or _in_labels(shown, reading)
        case "tags":
            # Tagged calls, calls of another family, a deliverable, or a fence with all three keys; calls come first.
            if (calls := read_bare_pythonic(shown.text, reading)) is not None and _is_sound(calls):
                return calls
            tagged = found_in_tags(shown.text, reading)
            if tagged is not None and tagged.drafts:
                return tagged
            marked = _marked(shown.text, reading, first_mark(shown.text))
            other = marked[1] if marked is not None else None
            if other is not None and other.drafts:
                has_final = tagged is not None and tagged.final is not None
                return replace(other, warnings=other.warnings | noted_if(has_final, "final_dropped"))
            return tagged or calls or json_calls.read_fenced(shown.text, reading, three_keys=True)
        case _:
            # Forms with a marker, the deliverable, then forms without one; the last resort is a fence.
            if (calls := read_bare_pythonic(shown.text, reading)) is not None and _is_sound(calls):
                found = calls
            elif (marked := _marked(shown.text, reading, first_mark(shown.text))) is not None:
                found = marked[1]
            elif DELIVERABLE in shown.text and (tagged := found_in_tags(shown.text, reading)) is not None:
                found = tagged
            else:
                found = calls or _unmarked_json(shown.text, reading)
            if found is None and dialect == "auto" and has_step(shown.text, reading):
                return React(without_partial_stop(shown.text, reading.labels), reading, shown.joint).read()
            if found is not None and dialect == "native" and not found.drafts:
                return replace(found, final=None) if found.format == "harmony" else None
            return found


_MOST_EXAMPLES = 10  # blocks of Python that may turn out to be examples before a call; each costs time


def _marked(text: str, reading: Reading, mark: Mark | None) -> tuple[Mark, Found] | None:
    """The first marker, from `mark` on, that opens more than an example, and what its family reads there."""
    for _ in range(_MOST_EXAMPLES):
        if mark is None:
            return None
        if (found := FAMILIES[mark.family](text, mark.at, reading)) is not None:
            return mark, found
        mark = first_mark(text, mark.end)
    return None


def _is_sound(calls: Found) -> bool:
    """Whether each call could be read as far as the reply goes, so that a marker or a tag in them is part of a text."""
    kinds = {draft.fault.kind for draft in calls.drafts if draft.fault is not None}
    return not kinds or (kinds == {"truncated"} and calls.end >= 0)


def _unmarked_json(text: str, reading: Reading) -> Found | None:
    return (
        json_calls.read_wrapped(text, reading)
        or json_calls.read_bare_json(text, reading)
        or json_calls.read_headed(text, reading)
        or json_calls.read_fenced(text, reading, three_keys=False)
    )


def _in_labels(shown: Visible, reading: Reading) -> Found:
    """Calls with a marker that stand before any action, else the first ReAct step, else forms without a marker."""
    text = without_partial_stop(shown.text, reading.labels)
    if (calls := read_bare_pythonic(text, reading)) is not None and _is_sound(calls):
        return calls
    marked = None if (mark := first_mark(text)) is None else _marked(text, reading, mark)
    if marked is not None and not 0 <= first_action(text, reading) < marked[0].at:
        mark, found = marked
        if found.drafts:
            dropped = noted_if(has_answer_label(text[: mark.at], reading), "final_dropped")
            return replace(found, warnings=found.warnings | dropped)
        if found.final is not None or found.error is not None:
            return found
    found = React(text, reading, shown.joint).read()
    if found.error is not None and found.error.kind == "no_step":
        return calls or _unmarked_json(text, reading) or found
    return found


def _parsed(found: Found, shown: Visible, reading: Reading) -> Parsed:
    """The found calls with their names resolved and their arguments validated, and all that goes with them."""
    is_over = len(found.drafts) > MOST_CALLS and found.format != "native"  # a wire wants an answer to each of its calls
    calls, faulty, noted = settle(found.drafts[:MOST_CALLS] if is_over else found.drafts, reading)
    if calls and len(shown.pieces) > 1:
        held = HeldText(_JOINT.join(shown.unbroken()))  # what is left around reasoning was never written so
        fault = Fault("malformed_json", "reasoning stands inside of an argument")
        whole = tuple(call for call in calls if held.holds(call.arguments))
        broken = [call for call in calls if call not in whole]
        gone = [FaultyCall(call.position, replace(fault, tool=call.name), call.name, call.id) for call in broken]
        calls, faulty = whole, tuple(sorted((*faulty, *gone), key=attrgetter("position")))
    content = found.content if found.frame or found.format not in _WHOLE_IF_UNFRAMED else shown.text
    warnings = found.warnings | noted
    if shown.tokens_removed or is_over:
        warnings |= noted_if(shown.tokens_removed, "special_tokens_removed")
        warnings |= noted_if(is_over, "extra_actions_dropped")
    return Parsed(
        calls,
        found.final,
        content if content.strip() else None,
        found.error or (faulty[0].error if faulty else None),
        faulty,
        warnings,
        found.format,
        shown.in_reply(found.end) if found.end >= 0 else -1,
    )


_NO_INPUT = frozenset({"none", "null", "n/a", "无"})


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
    warnings = noted_if(invented is not None, "hallucinated_result_removed")
    read = Parsed(content=shown or None, warnings=warnings, format="instruction", used=used)
    step, is_object = _step(shown)
    if is_object and step is None:
        kind = "truncated" if finish_reason in CUT else "malformed_json"
        return replace(read, error=Fault(kind, "the JSON object of the step could not be read"))
    parts, outside, is_open = _in_tags(shown)
    is_done = any(line.strip() == TASK_DONE for line in outside.splitlines())
    instruction = step or Instruction(parts.get("instruction", ""), _as_input(parts.get("input")), is_done)
    beside = parse(outside, dialect="tags") if step is None and not calls else Parsed()
    if calls or beside.calls or beside.errors:
        told = "only the Actor calls tools; tell it in an instruction what you need; nothing was run"
        return replace(read, error=Fault("calls_not_allowed", told))
    if finish_reason in CUT and is_open and step is None:
        told = "the instruction was cut off by the length limit; write a shorter one"
        return replace(read, error=Fault("truncated", told))
    if instruction.text or instruction.done:
        return replace(read, instruction=instruction)
    if not shown.strip():
        return parse(text, finish_reason=finish_reason)
    return replace(read, error=Fault("no_step", "neither an instruction nor TASK_DONE"))


_INVENTED = re.compile(r"<(?:function_call_result|actor_report)[\s>]")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>instruction|input)>")


def _in_tags(text: str) -> tuple[Mapping[str, str], str, bool]:
    """The first of each part that holds something, what stands outside, and whether the last is open; not in code."""
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
        given, text = _as_input(step.get("input")), _as_text(step.get("instruction"))
    except (orjson.JSONDecodeError, TypeError):  # what nests too deeply can be read and not written
        return None, True
    is_done = step.get("next") == TASK_DONE
    tool = "" if is_done or step.get("next") == _NO_TOOL else str(step.get("next") or "")
    if not text and tool:
        text = f"Call {tool} with this input, then report its result."
    return Instruction(text, given, is_done, tool), True


def _as_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else orjson.dumps(value).decode() if value else ""


def _as_input(value: object) -> str:
    return "" if (text := _as_text(value)).casefold() in _NO_INPUT else text


def instruction_schema(tools: Catalogue, *, may_end: bool) -> Mapping[str, object]:
    """What a Thinker's reply is held to in schema mode; without `may_end` it has to instruct. Made once for the tools.

    A small model is led by the form: after a thought it names the tool that the Actor is to use, and the input has that
    tool's shape, so that nothing is left to say. With more than `MOST_SHAPED_INPUTS` tools it instructs in words.
    """

    def build(tools: Catalogue) -> Mapping[str, object]:
        if len(tools.tools) <= MOST_SHAPED_INPUTS and (tools.tools or may_end):
            parts = [{"thought": _WORDS, "next": {"const": t.name}, "input": t.parameters} for t in tools.tools]
        else:
            named = {"enum": [*tools.names, _NO_TOOL]}
            parts = [{"thought": _WORDS, "next": named, "instruction": {**_WORDS, "minLength": 8}, "input": _WORDS}]
        if may_end:
            parts.append({"thought": _WORDS, "next": {"const": TASK_DONE}})
        return {"anyOf": [*map(object_schema, parts)]}

    return tools.derived(f"instruction_schema:{may_end}", build)


MOST_WORDS_CHARS = 200
MOST_SHAPED_INPUTS = 12

_WORDS = {"type": "string", "maxLength": MOST_WORDS_CHARS}
_NO_TOOL = "WORDS"
