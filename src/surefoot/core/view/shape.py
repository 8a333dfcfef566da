"""What the words of a reply have to look like: an answer in the shape that was asked for, and a step as one object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import orjson

from surefoot.core.parse.marks import PARTS, parts_of
from surefoot.core.parse.scan import whole_fence
from surefoot.core.parse.validate import validate_value
from surefoot.core.select.index import described, words
from surefoot.core.select.shortlist import parse_task
from surefoot.core.text import at, json_text, object_schema, shared_of
from surefoot.core.text.json import as_list
from surefoot.types.messages import ModelMessage
from surefoot.types.reply import Fault, FaultKind, Parsed
from surefoot.types.tools import Catalogue, ToolSpec

MOST_TOLD = 5  # faults of an output that a model is told of at once

OTHER_SHAPE: frozenset[FaultKind] = frozenset({"invalid_output", "invalid_value"})
"""What is wrong with an answer that is not what was asked for: its form, or what its type says of its values."""

FINISH = "final_answer"
"""The tool that takes the answer of a model whose wire holds no reply to a schema, or none beside tools."""

_FINISH_TOLD = "Give the final answer of the task. Call it once, alone, when everything that it needs is known."


def shape_faults(answer: str, schema: Mapping[str, object]) -> str:
    """What is wrong with the final output of an answer, as JSON of that schema; "" when it fits.

    Journals hold these words, and a replay compares them.
    """
    text = output_text(answer)
    try:
        orjson.loads(text)  # takes no `NaN`
        value: object = json.loads(text)  # takes whole numbers of any size
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"
    checked = validate_value(value, schema)
    told = [(fault.path, fault.message) for fault in checked.errors]
    told += [(path, "has another JSON type") for path in checked.coerced]
    faults = [f"{path.removeprefix('result').lstrip('.') or 'it'}: {message}" for path, message in told]
    return "; ".join(faults[:MOST_TOLD])


def output_text(answer: str) -> str:
    """The final output of an answer, without a fence around it."""
    text = parts_of(answer).output.strip()
    fence = whole_fence(text)
    return text[fence.inner : fence.inner_end].strip() if fence is not None else text


def told_shape(schema: Mapping[str, object], where: str) -> str:
    """What a model is told of the shape beforehand."""
    return f"{where} is JSON that fits this schema, and nothing else: {json_text(dict(schema))}"


def with_finish(tools: Catalogue, schema: Mapping[str, object]) -> Catalogue:
    """The tools and the one that takes the answer, unless one has its name or it takes no object; made once."""
    if schema.get("type") != "object" or tools.get(FINISH) is not None:
        return tools
    spec = ToolSpec(FINISH, _FINISH_TOLD, schema, effect="read", finish=True)
    return tools.derived(f"{FINISH}:{id(schema)}", lambda all_: Catalogue((*all_.tools, spec)))


def finished(parsed: Parsed, message: ModelMessage) -> Parsed:
    """A reply that calls the tool for the answer, as one that answers; beside other calls the answer does not count."""
    good = [one for one in parsed.calls if one.name == FINISH]
    bad = [one for one in parsed.errors if one.name == FINISH]
    if not good and not bad:
        return parsed
    others = tuple(one for one in parsed.calls if one.name != FINISH)
    faulty = tuple(one for one in parsed.errors if one.name != FINISH)
    if others or faulty:
        told = faulty[0].error if faulty else None
        return replace(parsed, calls=others, errors=faulty, error=told, warnings=parsed.warnings | {"final_dropped"})
    said = replace(parsed, calls=(), errors=(), error=None, format=FINISH)
    if good:
        return replace(said, final=json_text(good[0].arguments))
    sent = [one.arguments for one in message.calls if one.name == FINISH]
    words = "" if not sent else sent[0] if isinstance(sent[0], str) else json_text(sent[0])
    return replace(said, content=words or parsed.content, error=Fault("invalid_output", bad[0].error.detail))


def without_answer(parsed: Parsed, fault: Fault) -> Parsed:
    """The reply as one whose answer cannot be taken, for that reason."""
    answer = parsed.final if parsed.final is not None else parsed.content
    return replace(parsed, final=None, content=answer, error=fault)


def as_recorded(parsed: Parsed, recorded: Parsed) -> Parsed:
    """The reply, read anew, with what the type of the answer said of it then: that is not known from the words."""
    fault = recorded.error
    return without_answer(parsed, fault) if parsed.error is None and fault and fault.kind == "invalid_value" else parsed


REPEATS = "repeats"  # trait: "yes" says that the model asks once more for what it has done, if it may
MAX_THOUGHT_CHARS = 200  # the spec allows 400; in 200 the embedded model says what it needs, and rambles less
MAX_BRANCHES = 12  # above this many tools the step is asked for in two requests: the name, then its arguments
ANSWER = "Final Answer"

IN_WORDS = 12
"""Characters of an answer that is asked for again because it said nothing: long enough for a short sentence."""


def step_schema(
    tools: Catalogue,
    *,
    answer: bool = True,
    known: bool = False,
    least_answer: int = 1,
    deliverable: bool = False,
    output: Mapping[str, object] | None = None,
) -> Mapping[str, object]:
    """The schema of a step with these tools; made once for a catalogue.

    `answer`: whether the answer is one of the branches; it then has at least `least_answer` characters, and with
    `deliverable` the parts of one (spec/reasoners.md, section 5). `output` is the shape that it has in place of text.
    With `known` the thought begins with what is known now.
    """
    least, thought = least_answer if answer else 0, _KNOWN if known else _THOUGHT
    if output is not None:  # its references lead to the root
        shared = shared_of(output) if answer else {}
        output = {key: value for key, value in output.items() if key not in shared}
        return {**_any_of(tools, _answer(output, deliverable=deliverable) if answer else None, thought), **shared}
    text = {"type": "string", "minLength": least}
    ending = _answer(text, deliverable=deliverable) if answer else None
    return tools.derived(f"step_schema:{least}:{deliverable}:{known}", lambda all_: _any_of(all_, ending, thought))


def _answer(output: Mapping[str, object], *, deliverable: bool) -> Mapping[str, object]:
    if not deliverable:
        return output
    parts: dict[str, object] = {part: {"type": "string", "maxLength": MAX_THOUGHT_CHARS} for part in PARTS}
    parts[PARTS[-1]] = output
    return object_schema(parts)


def step_in_tags(content: str) -> str:
    """A step object as the words that it stands for: its answer, or its thought and a tagged call; other text as is."""
    try:
        step: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        return content
    if not isinstance(step, dict) or not {"action", "action_input"} <= set(cast("dict[str, object]", step)):
        return content
    said = cast("dict[str, object]", step)  # keys of a JSON object
    given = said["action_input"]
    if said["action"] == ANSWER:
        return given if isinstance(given, str) else json_text(given)
    call = json_text({"name": said["action"], "call_objective": said.get("thought", ""), "args": given})
    return f"<function_call>{call}</function_call>"


def name_schema(step: Mapping[str, object]) -> Mapping[str, object]:
    """The first half of a step where there are many tools: the thought, and which of the step's branches it takes."""
    branches = [at(one, "properties") for one in as_list(step["anyOf"]) or ()]
    names = [at(one, "action", "const") for one in branches]
    return object_schema({"thought": at(branches[0], "thought"), "action": {"enum": names}})


_THOUGHT = {"type": "string", "maxLength": MAX_THOUGHT_CHARS}
_KNOWN = {"type": "string", "pattern": f'^Now known: [^"\n]{{1,{MAX_THOUGHT_CHARS}}}$'}
"""Of a thought after a call. Left free, a small model writes its last one again, and with it the same call."""


def required_only(tools: Catalogue, task: str = "") -> Catalogue:
    """The tools with their required parameters, and with the others that a task speaks of.

    What speaks of a parameter are the words of its name, and those of its description and listed values that neither
    its tool nor a required parameter has.
    """
    spoken = parse_task(task).whole
    kept: list[ToolSpec] = []
    for tool in tools.tools:
        properties, required = tool.parameters.get("properties"), tool.parameters.get("required", [])
        if isinstance(properties, Mapping) and isinstance(required, list | tuple):
            all_of_them = cast("Mapping[str, object]", properties)  # keys of a JSON object
            bare = _with_properties(tool, {key: all_of_them[key] for key in all_of_them if key in required})
            common = {word for _, text in described(bare).texts for word in words(text)} if spoken else set[str]()
            needed = {
                key: schema
                for key, schema in all_of_them.items()
                if key in required or not {*words(key), *(_own_words(schema) - common)}.isdisjoint(spoken)
            }
            kept.append(_with_properties(tool, needed))
        else:
            kept.append(tool)
    return Catalogue(tuple(kept))


def _with_properties(tool: ToolSpec, properties: Mapping[str, object]) -> ToolSpec:
    return replace(tool, parameters={**tool.parameters, "properties": properties})


def _own_words(schema: object) -> set[str]:
    listed = as_list(at(schema, "enum")) or ()
    return set(words(" ".join(one for one in (at(schema, "description"), *listed) if isinstance(one, str))))


def _any_of(
    tools: Catalogue, answer: Mapping[str, object] | None, thought: Mapping[str, object]
) -> Mapping[str, object]:
    branches = [(tool.name, tool.parameters) for tool in tools.tools]
    if answer is not None:
        branches.append((ANSWER, answer))
    return {
        "anyOf": [
            object_schema({"thought": thought, "action": {"const": action}, "action_input": action_input})
            for action, action_input in branches
        ]
    }
