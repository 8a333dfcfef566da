"""Which results one who plans may read: what is trusted, and values of a declared type without free text.

Text that somebody else wrote stays with the one who calls tools; the planner gets a handle for it, which it can pass
on. Source: spec/reasoners.md, section 7, "Privilege split".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import orjson

from surefoot.core.parse.validate import validate
from surefoot.core.state import Call
from surefoot.types.tools import ToolResult

LONGEST_IDENTIFIER = 64
"""Characters of a text value that may pass: an identifier, not a sentence."""


def handle(call: Call) -> str:
    """The name of a result as text: `text 3.0`."""
    return f"text {call.id}"


def is_withheld(call: Call) -> bool:
    """Whether the result of a call is text that a planner does not get to read."""
    result = call.result
    if result is None or result.trust == "trusted":
        return False
    returns = call.spec.returns if call.spec is not None else None
    return result.is_error or result.blob is not None or returns is None or not _is_typed(result, returns)


def _is_typed(result: ToolResult, returns: Mapping[str, object]) -> bool:
    """Whether the result really is a value of the type that its tool declares."""
    schema: Mapping[str, object] = {
        "type": "object",
        "properties": {"result": returns},
        "required": ["result"],
        "$defs": returns.get("$defs", {}),
    }
    named = _enumerated(returns)
    for value in _values_of(result.content):
        checked = validate({"result": value}, schema)
        if not checked.errors and not checked.coerced and _has_no_sentence(value, named):
            return True
    return False


def _values_of(text: str) -> list[object]:
    """What a text can be as a value: itself, and what it is as JSON."""
    try:
        return [text, orjson.loads(text)]
    except orjson.JSONDecodeError:
        return [text]


def _enumerated(schema: object) -> frozenset[str]:
    """The texts that a schema spells out itself."""
    if isinstance(schema, Mapping):
        members = cast("Mapping[str, object]", schema)  # keys of JSON
        spelt = [members["const"]] if "const" in members else []
        spelt += cast("list[object]", members.get("enum", []))  # a JSON Schema made from a type
        inner = [_enumerated(part) for part in members.values()]
        return frozenset(text for text in (*spelt, *members.keys()) if isinstance(text, str)).union(*inner)
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return frozenset[str]().union(*(_enumerated(part) for part in cast("Sequence[object]", schema)))  # the same
    return frozenset()


def _has_no_sentence(value: object, named: frozenset[str]) -> bool:
    """Whether no text in it could tell anybody anything, whatever pattern it fits."""
    if isinstance(value, str):
        return value in named or (len(value) <= LONGEST_IDENTIFIER and not any(sign.isspace() for sign in value))
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)  # decoded JSON
        return all(_has_no_sentence(part, named) for pair in members.items() for part in pair)
    if isinstance(value, Sequence):
        return all(_has_no_sentence(item, named) for item in cast("Sequence[object]", value))  # the same
    return True
