"""JSON schemas as the decoders of models can hold to them: OpenAI's strict form, Anthropic's, the embedded model's."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import cast

from surefoot.models.json_edge import mapping

Schema = Mapping[str, object]

_COUNTS = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems",
    "minProperties", "maxProperties", "uniqueItems",
})  # fmt: skip
_NAMED = frozenset({"properties", "$defs", "definitions"})
_AS_THEY_ARE = frozenset({"enum", "const", "default", "examples", "required"})
_REFERENCES_DEEP = 4
_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_LONGEST_PATTERN = 200
_PLAIN_PATTERN = re.compile(
    r"\^(?:(?:\[\^?(?:[^\[\]\\]|\\[nrtdws.\-\[\]])++\]|\\[dws.]|[A-Za-z0-9 ,;:_/-])"
    r"(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})?)++\$"
)
"""Patterns that every engine reads alike: signs and classes one after another, each with a count; no groups."""

_WRITING: Schema = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""No free white space: a small model can fill its whole reply with it. Others ignore this key."""


def is_strict(schema: object) -> bool:
    """Whether a schema meets OpenAI's strict form: its root an object, every object closed, every key required."""
    return mapping(schema).get("type") == "object" and _is_closed(schema)


def _is_closed(schema: object) -> bool:
    node = mapping(schema)
    properties = mapping(node.get("properties"))
    if node.get("type") == "object" or properties:
        is_open = node.get("additionalProperties") is not False
        if is_open or set(_list(node.get("required"))) != set(properties):
            return False
    return all(_is_closed(value) for value in (*node.values(), *_list(schema)))


def close(schema: object) -> object:
    """The schema as Anthropic's grammar takes it: objects closed that name their keys, limits of size left out.

    What a model writes is checked against the whole schema afterwards, so a limit that is not held by the decoder is
    only told later. An object whose keys are free stays open; the endpoint then refuses the schema, and that is learnt.
    """
    if isinstance(schema, list | tuple):
        return [close(item) for item in _list(cast("object", schema))]
    if not isinstance(schema, Mapping):
        return schema
    node: dict[str, object] = {}
    for key, value in _schema(cast("object", schema)).items():
        if key in _COUNTS or (key == "minItems" and value not in (0, 1)):
            continue
        if key in _NAMED and isinstance(value, Mapping):
            node[key] = {name: close(inner) for name, inner in _schema(cast("object", value)).items()}
        else:
            node[key] = value if key in _AS_THEY_ARE else close(value)
    if node.get("properties"):
        node["additionalProperties"] = False
    return node


def grammar_schema(schema: Schema) -> dict[str, object]:
    """The part of `schema` that the embedded model's decoder holds to, references written out; keys keep their order.

    A decoder lets the reply run free, without a word, for a keyword it does not know, a reference it cannot follow, a
    range that nothing fits: these are left out. Never stricter than the schema where that would shut out a right reply,
    but for keys that it does not name, since a small model makes them up. The whole schema is checked afterwards.
    """
    return {**_simple(schema, (), 0), "x-guidance": _WRITING}


def _simple(node: object, scopes: tuple[Schema, ...], depth: int) -> dict[str, object]:
    schema = _schema(node)  # empty for true and false
    scopes = (schema, *scopes)
    if "$ref" in schema:
        target = _resolve(schema["$ref"], scopes)
        return {} if target is None or depth >= _REFERENCES_DEEP else _simple(target, scopes, depth + 1)
    if "const" in schema:
        return {"const": schema["const"]}
    if values := _list(schema.get("enum")):
        return {"enum": values}
    if "allOf" in schema:
        # `allOf` written as one schema: properties and required names add up, other keywords: the last one wins.
        joined: dict[str, object] = {}
        properties: dict[str, object] = {}
        required: list[object] = []
        own = {key: value for key, value in schema.items() if key != "allOf"}
        for one in (*_list(schema["allOf"]), own):
            part = _schema(one)
            for _ in range(_REFERENCES_DEEP):
                if "$ref" not in part:
                    break
                part = _resolve(part["$ref"], (part, *scopes)) or {}
            joined.update(part)
            properties.update(_schema(part.get("properties")))
            required += _list(part.get("required"))
        joined.pop("allOf", None)  # of a part of its own: one level is what generators write
        joined.pop("$ref", None)
        both = {"properties": properties, "required": required} if properties else {}
        return _simple({**joined, **both}, scopes, depth)
    declared = schema.get("type")
    named = [declared] if isinstance(declared, str) else _list(declared)
    kinds = [kind for kind in named if isinstance(kind, str) and kind in _TYPES]
    if not named:
        kinds = ["object"] if "properties" in schema else ["array"] if "items" in schema else []
    branches = _list(schema.get("anyOf")) or _list(schema.get("oneOf"))
    if branches and not kinds:
        return {"anyOf": [_simple(branch, scopes, depth) for branch in branches]}
    simple = [_of_kind(kind, schema, scopes, depth) for kind in kinds]
    return simple[0] if len(simple) == 1 else {"anyOf": simple} if simple else {}


def _of_kind(kind: str, schema: Schema, scopes: tuple[Schema, ...], depth: int) -> dict[str, object]:
    match kind:
        case "object":
            properties, others = _schema(schema.get("properties")), schema.get("additionalProperties")
            if not properties and (others is None or others is True):
                return {"type": kind}
            inner = isinstance(others, Mapping) and _simple(cast("Schema", others), scopes, depth)
            rest = {"additionalProperties": inner}
            if not properties:
                return {"type": kind, **rest}
            simple = {name: _simple(value, scopes, depth) for name, value in properties.items()}
            required = [name for name in _list(schema.get("required")) if name in properties]
            return {"type": kind, "properties": simple, "required": required, **rest}
        case "array":
            items = {"items": _simple(schema["items"], scopes, depth)} if "items" in schema else {}
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


def _range(schema: Schema, lower: Sequence[str], upper: Sequence[str]) -> dict[str, object]:
    """The bounds that are numbers, or none of them when hardly anything can lie between."""
    low, high = (
        {key: value for key in keys if isinstance(value := schema.get(key), int | float) and value is not True}
        for keys in (lower, upper)
    )
    if low and high:
        least, most = max(low.values()), min(high.values())
        is_exclusive = any(key.startswith("exclusive") for key in (*low, *high))
        if math.ceil(least) > math.floor(most) or (least >= most and is_exclusive):
            return {}
    return {**low, **high}


def _resolve(reference: object, scopes: tuple[Schema, ...]) -> Schema | None:
    """What a local reference leads to from the nearest scope where it does: a tool's `#` is not the whole's."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    steps = [step.replace("~1", "/").replace("~0", "~") for step in reference[2:].split("/")]
    for scope in scopes:
        node: object = scope
        for step in steps:
            node = _schema(node).get(step)
        if isinstance(node, Mapping):
            return _schema(cast("object", node))
    return None


def _schema(node: object) -> Schema:
    return cast("Schema", node) if isinstance(node, Mapping) else {}  # JSON: keys are strings


def _list(node: object) -> list[object]:
    return list(cast("Sequence[object]", node)) if isinstance(node, list | tuple) else []
