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
from surefoot.core.text import json_text

LONGEST_IDENTIFIER = 64
"""Characters of a text value that may pass: an identifier, not a sentence."""

LONGEST_WORD = 24
"""Letters that may pass without being spelt out in the type."""


def handle(call: Call) -> str:
    """The name of a result as text: `text 3.0`."""
    return f"text {call.id}"


def is_withheld(call: Call) -> bool:
    """Whether the result of a call is text that a planner does not get to read."""
    return call.result is not None and value_for_planner(call) is None


def value_for_planner(call: Call) -> str | None:
    """The result as a planner may read it; None when it is to be a handle.

    A trusted result is shown as it is. A value of the type that its tool declares is written anew, so that nothing but
    the value is shown.
    """
    result = call.result
    if result is None or result.trust == "trusted":
        return result.content if result is not None else None
    returns = call.spec.returns if call.spec is not None else None
    if result.is_error or result.blob is not None or returns is None:
        return None
    return _typed(result.content, returns)


def _typed(content: str, returns: Mapping[str, object]) -> str | None:
    """The value of that type that a text is, as text; None when it is none, or says anything."""
    schema: Mapping[str, object] = {
        "type": "object",
        "properties": {"result": returns},
        "required": ["result"],
        "$defs": returns.get("$defs", {}),
    }
    named = _enumerated(returns)
    for value in _values_of(content):
        checked = validate({"result": value}, schema)
        if not checked.errors and not checked.coerced and _words_in(value, named) <= LONGEST_WORD:
            return value if isinstance(value, str) else json_text(value)
    return None


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


def _words_in(value: object, named: frozenset[str]) -> int:
    """How many characters could tell somebody something: of texts that are neither spelt out nor like an identifier.

    An identifier has no blanks, is short, and holds a digit; a word of letters alone, such as a code of a country, is
    counted, so that a list of such words makes no sentence.
    """
    if isinstance(value, str):
        if value in named:
            return 0
        is_short = len(value) <= LONGEST_IDENTIFIER and not any(sign.isspace() for sign in value)
        if not is_short:
            return LONGEST_WORD + 1
        is_marked = any(sign.isdigit() for sign in value) and sum(map(str.isalpha, value)) <= LONGEST_WORD
        return 0 if is_marked else len(value)
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)  # decoded JSON
        return sum(_words_in(part, named) for pair in members.items() for part in pair)
    if isinstance(value, Sequence):
        return sum(_words_in(item, named) for item in cast("Sequence[object]", value))  # the same
    return 0
