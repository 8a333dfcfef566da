"""JSON schemas as the wires want them: which ones are strict, and how one is made so that it may be."""

from collections.abc import Mapping, Sequence
from typing import cast

from surefoot.models.json_edge import Json, mapping

_COUNTS = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems",
    "minProperties", "maxProperties", "uniqueItems",
})  # fmt: skip
_NAMED = frozenset({"properties", "$defs", "definitions"})


def is_strict(schema: object) -> bool:
    """Whether a schema meets OpenAI's strict form: its root an object, every object closed, every key required."""
    return mapping(schema).get("type") == "object" and _is_closed(schema)


def _is_closed(schema: object) -> bool:
    if isinstance(schema, list | tuple):
        return all(_is_closed(item) for item in cast("Sequence[object]", schema))  # any item will do
    if not isinstance(schema, dict):
        return True
    node = mapping(schema)  # pyright: ignore[reportUnknownArgumentType] - a JSON schema
    properties = mapping(node.get("properties"))
    if node.get("type") == "object" or properties:
        required = node.get("required", ())
        if node.get("additionalProperties") is not False or set(cast("Sequence[str]", required)) != set(properties):
            return False  # `required` is a list of names in every JSON schema
    return all(_is_closed(value) for value in node.values())


def closed(schema: object) -> object:
    """The schema as Anthropic's grammar takes it: objects closed that name their keys, limits of size left out.

    What a model writes is checked against the whole schema afterwards, so a limit that is not held by the decoder is
    only told later. An object whose keys are free stays open; the endpoint then refuses the schema, and that is learnt.
    """
    if isinstance(schema, list | tuple):
        return [closed(item) for item in cast("Sequence[object]", schema)]  # any item will do
    if not isinstance(schema, Mapping):
        return schema
    node: Json = {}
    for key, value in cast("Mapping[str, object]", schema).items():  # the keys of a JSON schema are text
        if key in _COUNTS or (key == "minItems" and value not in (0, 1)):
            continue
        if key in _NAMED and isinstance(value, Mapping):
            named = cast("Mapping[str, object]", value)  # as above
            node[key] = {name: closed(inner) for name, inner in named.items()}
        elif key in ("enum", "const", "default", "examples", "required"):
            node[key] = value
        else:
            node[key] = closed(value)
    if node.get("properties"):
        node["additionalProperties"] = False
    return node
