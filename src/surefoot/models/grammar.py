"""A JSON Schema as the embedded model's decoder can hold to it.

The decoder that is given a keyword it does not know, a reference it cannot follow or a range that nothing fits does not
complain: it lets the reply run free. So this keeps what is known to work and leaves out the rest. What it gives is
never stricter than the schema where that would shut out a right reply, with one exception: keys that the schema does
not name are shut out, since a small model makes them up. The reply is validated against the whole schema afterwards.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import cast

Schema = Mapping[str, object]

_ANY: dict[str, object] = {}
_REFERENCES_DEEP = 4
_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_LONGEST_PATTERN = 200
_PLAIN_PATTERN = re.compile(
    r"\^(?:(?:\[\^?(?:[^\[\]\\]|\\[nrtdws.\-\[\]])++\]|\\[dws.]|[A-Za-z0-9 ,;:_/-])"
    r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})?)++\$"
)
"""Patterns that every engine reads alike: signs and classes one after another, each with a count; no groups."""

_WRITING: dict[str, object] = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""No free white space: a small model can fill its whole reply with it. Others ignore this key."""


def grammar_schema(schema: Schema) -> dict[str, object]:
    """The part of `schema` that the decoder holds to, references written out; keys stay in their order."""
    return {**_simple(schema, (), 0), "x-guidance": _WRITING}


def _simple(node: object, scopes: tuple[Schema, ...], depth: int) -> dict[str, object]:
    schema = _mapping(node)
    if schema is None:  # true, false, or no schema at all
        return _ANY
    scopes = (schema, *scopes)
    if "$ref" in schema:
        target = _resolve(schema["$ref"], scopes)
        return _ANY if target is None or depth >= _REFERENCES_DEEP else _simple(target, scopes, depth + 1)
    if "const" in schema:
        return {"const": schema["const"]}
    if values := _list(schema.get("enum")):
        return {"enum": values}
    if "allOf" in schema:
        return _simple(_joined(schema, scopes), scopes, depth)
    kinds = _kinds(schema)
    branches = _list(schema.get("anyOf")) or _list(schema.get("oneOf"))
    if branches and not kinds:
        return {"anyOf": [_simple(branch, scopes, depth) for branch in branches]}
    simple = [_of_kind(kind, schema, scopes, depth) for kind in kinds]
    return simple[0] if len(simple) == 1 else {"anyOf": simple} if simple else _ANY


def _of_kind(kind: str, schema: Schema, scopes: tuple[Schema, ...], depth: int) -> dict[str, object]:
    match kind:
        case "object":
            return {"type": kind, **_object(schema, scopes, depth)}
        case "array":
            items = {"items": _simple(schema["items"], scopes, depth)} if "items" in schema else _ANY
            return {"type": kind, **items, **_range(schema, ("minItems",), ("maxItems",))}
        case "string":
            pattern = schema.get("pattern")
            if isinstance(pattern, str) and len(pattern) <= _LONGEST_PATTERN and _PLAIN_PATTERN.fullmatch(pattern):
                return {"type": kind, "pattern": pattern}
            return {"type": kind, **_range(schema, ("minLength",), ("maxLength",))}
        case "integer" | "number":
            return {"type": kind, **_range(schema, ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))}
        case _:
            return {"type": kind}


def _object(schema: Schema, scopes: tuple[Schema, ...], depth: int) -> dict[str, object]:
    properties = _mapping(schema.get("properties")) or {}
    others = schema.get("additionalProperties")
    if not properties:
        return {} if others is None or others is True else {"additionalProperties": _others(others, scopes, depth)}
    required = [name for name in _list(schema.get("required")) if name in properties]
    return {
        "properties": {name: _simple(value, scopes, depth) for name, value in properties.items()},
        "required": required,
        "additionalProperties": _others(others, scopes, depth),
    }


def _others(others: object, scopes: tuple[Schema, ...], depth: int) -> object:
    return _simple(others, scopes, depth) if _mapping(others) is not None else False


def _range(schema: Schema, lower: Sequence[str], upper: Sequence[str]) -> dict[str, object]:
    """The bounds that are numbers, or none of them when hardly anything can lie between."""
    low = {key: value for key in lower if isinstance(value := schema.get(key), int | float) and value is not True}
    high = {key: value for key in upper if isinstance(value := schema.get(key), int | float) and value is not True}
    if low and high and math.ceil(max(low.values())) > math.floor(min(high.values())):
        return {}
    if low and high and len(low) + len(high) > 1 and max(low.values()) >= min(high.values()):
        exclusive = any(key.startswith("exclusive") for key in (*low, *high))
        return {} if exclusive else {**low, **high}
    return {**low, **high}


def _kinds(schema: Schema) -> list[str]:
    declared = schema.get("type")
    named = [declared] if isinstance(declared, str) else _list(declared)
    kinds = [kind for kind in named if isinstance(kind, str) and kind in _TYPES]
    if kinds or named:
        return kinds
    return ["object"] if "properties" in schema else ["array"] if "items" in schema else []


def _joined(schema: Schema, scopes: tuple[Schema, ...]) -> dict[str, object]:
    """`allOf` written as one schema: properties and required names add up, other keywords: the last one wins."""
    joined: dict[str, object] = {}
    properties: dict[str, object] = {}
    required: list[object] = []
    own = {key: value for key, value in schema.items() if key != "allOf"}
    for node in (*_list(schema["allOf"]), own):
        part = _mapping(node) or {}
        for _ in range(_REFERENCES_DEEP):
            if "$ref" not in part:
                break
            part = _resolve(part["$ref"], (part, *scopes)) or {}
        joined.update(part)
        properties.update(_mapping(part.get("properties")) or {})
        required += _list(part.get("required"))
    joined.pop("allOf", None)  # of a part of its own: one level is what generators write
    joined.pop("$ref", None)
    return {**joined, **({"properties": properties, "required": required} if properties else {})}


def _resolve(reference: object, scopes: tuple[Schema, ...]) -> Schema | None:
    """What a local reference points to, seen from the nearest enclosing schema in which it leads anywhere.

    A tool's own schema stands inside the step's schema, so its `#` is not the root of the whole.
    """
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    steps = [step.replace("~1", "/").replace("~0", "~") for step in reference[2:].split("/")]
    for scope in scopes:
        node: object = scope
        for step in steps:
            node = (_mapping(node) or {}).get(step)
        if (found := _mapping(node)) is not None:
            return found
    return None


def _mapping(node: object) -> Schema | None:
    return cast("Schema", node) if isinstance(node, Mapping) else None  # JSON: keys are strings


def _list(node: object) -> list[object]:
    return list(cast("Sequence[object]", node)) if isinstance(node, list | tuple) else []
