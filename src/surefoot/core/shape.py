"""Does an answer have the shape that was asked for? Source: spec/reasoners.md, section 5."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from surefoot.core.parse.deliverable import parts_of
from surefoot.core.parse.scan import whole_fence
from surefoot.core.parse.validate import validate

MOST_TOLD = 5
"""Faults of an output that a model is told of at once."""


def shape_faults(answer: str, schema: Mapping[str, object]) -> str:
    """What is wrong with the final output of an answer, as JSON of that schema; "" when it fits."""
    text = output_text(answer)
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return f"it is no JSON: {error}"
    wrapped: Mapping[str, object] = {
        "type": "object",
        "properties": {"output": schema},
        "required": ["output"],
        "$defs": schema.get("$defs", {}),
    }
    checked = validate({"output": value}, wrapped)
    faults = [f"{fault.path.removeprefix('output').lstrip('.') or 'it'}: {fault.message}" for fault in checked.errors]
    faults += [f"{path.removeprefix('output').lstrip('.') or 'it'}: has another JSON type" for path in checked.coerced]
    return "; ".join(faults[:MOST_TOLD])


def output_text(answer: str) -> str:
    """The final output of an answer, without a fence around it."""
    text = parts_of(answer).output.strip()
    fence = whole_fence(text)
    return text[fence.inner : fence.inner_end].strip() if fence is not None else text


def told_shape(schema: Mapping[str, object], where: str) -> str:
    """What a model is told of the shape beforehand."""
    return f"{where} is JSON that fits this schema, and nothing else: {orjson.dumps(dict(schema)).decode()}"
