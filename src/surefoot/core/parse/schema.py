"""Questions to a JSON Schema that stand apart from validation: which parameters there are, and of what types."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.core.parse.json_strict import as_list, as_object

Schema = Mapping[str, object]

MOST_REFERENCES = 32

_NOTHING: Schema = {}


def resolve(schema: object, root: Schema) -> Schema | None:
    """The schema itself, or what its `$ref` leads to within `root`; None if that leads nowhere."""
    for _ in range(MOST_REFERENCES):
        found = as_object(schema)
        if found is None:
            return _NOTHING if schema is True else None
        reference = found.get("$ref")
        if not isinstance(reference, str):
            return found
        schema = _pointed(reference, root)
    return None


def _pointed(reference: str, root: Schema) -> object:
    if not reference.startswith("#"):
        return None
    place: object = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        holder, row = as_object(place), as_list(place)
        if holder is not None:
            place = holder.get(key)
        elif row is not None and key.isdecimal() and int(key) < len(row):
            place = row[int(key)]
        else:
            return None
    return place


def properties_of(schema: Schema) -> Schema:
    """The declared parameters by name."""
    return as_object(schema.get("properties")) or _NOTHING


def required_of(schema: Schema) -> tuple[str, ...]:
    """The names that must be there."""
    return tuple(name for name in as_list(schema.get("required")) or () if isinstance(name, str))


def is_open(schema: Schema) -> bool:
    """Whether an object may hold keys that are not declared: it says so, or declares nothing at all."""
    extra = schema.get("additionalProperties")
    if extra is not None:
        return extra is not False
    if "patternProperties" in schema:
        return True
    combined = any(key in schema for key in ("$ref", "allOf", "anyOf", "oneOf"))
    return "properties" not in schema and not combined


def types_of(schema: object, root: Schema, depth: int = 0) -> frozenset[str]:
    """The JSON types that a value may have, as far as they are declared; through `anyOf`, `oneOf` and `$ref` too."""
    found = resolve(schema, root)
    if found is None or depth > MOST_REFERENCES:
        return frozenset()
    declared = found.get("type")
    types = {declared} if isinstance(declared, str) else {t for t in as_list(declared) or () if isinstance(t, str)}
    if types and found.get("nullable") is True:
        types.add("null")
    for key in ("anyOf", "oneOf", "allOf"):
        for branch in as_list(found.get(key)) or ():
            types |= types_of(branch, root, depth + 1)
    if not types:
        for value in [*(as_list(found.get("enum")) or ()), *([found["const"]] if "const" in found else [])]:
            types.add(type_name(value))
    return frozenset(types)


def type_name(value: object) -> str:
    """The JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
