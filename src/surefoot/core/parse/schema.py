"""What a JSON Schema says, and one of anybody's made fit for the library that checks it.

Kept are the rules that have the right shape and can be checked in bounded time; what is left out is named. References
lead to definitions of our own, so nothing is ever fetched, and a schema whose references double at each level is
refused. Where a schema stands for a value of its own, its keys are closed (`validate.py` says when).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import cast

from jsonschema_rs import Draft202012Validator, RegexOptions

from surefoot.core.text.json import as_list, as_object

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
        schema = root if reference.startswith("#") else None
        for part in reference.partition("#")[2].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            holder, row = as_object(schema), as_list(schema)
            if holder is not None:
                schema = holder.get(key)
            else:
                schema = row[int(key)] if row is not None and key.isdecimal() and int(key) < len(row) else None
    return None


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


_MOST_LEVELS = 8
MOST_PARTS = 500
_MOST_COST = 200_000
"""Schemas that one check may enter at most, a reference counted as often as it is made: some double at each level."""
_LINEAR = RegexOptions(size_limit=1 << 20)

_BY_NAME = ("properties", "patternProperties", "dependentSchemas")
_SINGLE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
OF_A_VALUE = ("properties", "patternProperties", "items", "additionalProperties", "prefixItems")
"""Keywords whose schemas are of a value of its own, not of a part of this one."""
_OF_AN_OBJECT = ("properties", "required", "additionalProperties", "patternProperties")
_ALTERNATIVES = ("anyOf", "oneOf")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_SIZES = tuple(f"{bound}{of}" for bound in ("min", "max") for of in ("Length", "Items", "Properties", "Contains"))
_SILENT = frozenset(
    """title description default examples example deprecated readOnly writeOnly discriminator nullable
    $schema $id $comment $defs definitions""".split()  # noqa: SIM905  # sixteen pairs of quotes
)
"""Keywords that say nothing about a value by themselves."""
_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})


def is_runnable(pattern: str) -> bool:
    """Whether a pattern can be run in linear time: no look-around, nothing that refers back."""
    try:
        library({"pattern": pattern})
    except ValueError:
        return False
    return True


def library(schema: Mapping[str, object]) -> Draft202012Validator:
    """A validator that fetches nothing. Raises `ValueError` for what it cannot take."""
    return Draft202012Validator(dict(schema), pattern_options=_LINEAR, validate_formats=False, offline=True)


class Prepared:
    """A schema as the library takes it. What is referred to is prepared once as a whole value and once as a part."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._names: dict[tuple[str, bool], str] = {}
        self._waiting: list[tuple[str, bool]] = []
        self.unchecked: set[str] = set()

    def whole(self, *, closed: bool) -> Schema:
        """All of it. Raises `ValueError` for a schema that would take too long to check."""
        made = as_object(self._prepared(self._root, closed=closed)) or {}
        targets: dict[str, object] = {}
        while self._waiting:
            key = self._waiting.pop()
            target = resolve({"$ref": key[0]}, self._root)
            targets[self._names[key]] = self._prepared(target, closed=key[1])
        # How many schemas a check may enter, as far as `_MOST_COST`; what refers to itself counts once.
        known: dict[str, int] = {}

        def cost(value: object) -> int:
            row, members = as_list(value), as_object(value)
            if members is None:
                return sum(map(cost, row)) if row is not None else 0
            total = 1 + sum(cost(one) for key, one in members.items() if key not in ("enum", "$ref"))
            if isinstance(reference := members.get("$ref"), str):
                name = reference.removeprefix("#/$defs/")
                if name not in known:
                    known[name] = 1
                    known[name] = cost(targets[name])
                total += known[name]
            return min(total, _MOST_COST + 1)

        if cost(made) > _MOST_COST:
            raise ValueError("too costly")
        return {**made, "$defs": targets} if targets else made

    def _prepared(self, schema: object, *, closed: bool) -> object:
        """The schema of a value, or of a part of one. In a whole value, a key that no part declares is refused."""
        found = as_object(schema)
        if found is None:
            return schema if isinstance(schema, bool) else True
        is_whole = closed and not _is_in_parts(found)
        made: dict[str, object] = {}
        for key, value in found.items():
            if key in _SILENT:
                continue
            rule = [value] if key == "const" else self._rule(key, value, found, is_whole=is_whole)
            if rule is None:
                self.unchecked.add(key)
            else:
                made["enum" if key == "const" else key] = rule
        if found.get("nullable") is True and "type" in made:
            made["type"] = [*cast("list[str]", made["type"]), "null"]
        is_object = any(key in found for key in _OF_AN_OBJECT) or _is_in_parts(found)
        parts = [*islice(parts_of(found, self._root), MOST_PARTS)] if closed and is_object else []
        is_declared = any("properties" in part for part in parts) and not any(
            part.get("additionalProperties") not in (None, False) or ("patternProperties" in part and is_open(part))
            for part in parts
        )
        if is_declared:  # then no other keys are admitted
            names = sorted({name for part in parts for name in properties_of(part)})
            only: object = {"propertyNames": {"enum": names} if names else {"not": {}}}
            made["allOf"] = [*(as_list(made.get("allOf")) or ()), only]
            if not _is_in_parts(found) and "patternProperties" not in found:
                made.pop("additionalProperties", None)  # the same, and told once
        return made

    def _rule(self, key: str, value: object, schema: Schema, *, is_whole: bool) -> object:
        """What a keyword asks for, or None when that cannot be checked."""
        row, members = as_list(value), as_object(value)
        closed = key in OF_A_VALUE or (is_whole and key in _ALTERNATIVES)
        if key in _BY_NAME:
            if members is None:
                return None
            kept = (name for name in members if key != "patternProperties" or is_runnable(name))
            return {name: self._prepared(members[name], closed=closed) for name in kept}
        if key in _SINGLE:
            is_schema = members is not None or isinstance(value, bool)
            return self._prepared(value, closed=closed) if is_schema else None
        if key in _LISTS:
            return [self._prepared(one, closed=closed) for one in row] if row else None
        if key in _NUMBERS:
            if value is True and key.startswith("exclusive"):  # beside `minimum`, as it was written before 2019
                value = schema.get(key.replace("exclusiveM", "m"))
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            return value if is_number and (key != "multipleOf" or cast("float", value) > 0) else None
        if key in _SIZES:
            return value if type(value) is int and value >= 0 else None
        match key:
            case "$ref":
                if not isinstance(value, str) or resolve({"$ref": value}, self._root) is None:
                    return None
                if (value, is_whole) not in self._names:
                    self._names[value, is_whole] = f"t{len(self._names)}"
                    self._waiting.append((value, is_whole))
                return f"#/$defs/{self._names[value, is_whole]}"
            case "type":
                types = [one for one in ([value] if row is None else row) if isinstance(one, str) and one in _TYPES]
                return [*dict.fromkeys(types)] or None
            case "required":
                return None if row is None else [*dict.fromkeys(one for one in row if isinstance(one, str))]
            case "pattern":
                return value if isinstance(value, str) and is_runnable(value) else None
            case "enum":
                return row or None
            case "uniqueItems":
                return value if isinstance(value, bool) else None
            case "dependentRequired":
                return members
            case _:
                return None


def _is_in_parts(schema: Schema) -> bool:
    """Whether an object is described in parts that are taken together."""
    is_more = "properties" in schema or "$ref" in schema
    return "allOf" in schema or (
        is_more and any(key in schema for key in (*_ALTERNATIVES, *(("$ref",) if "properties" in schema else ())))
    )


def parts_of(schema: Schema, root: Schema, depth: int = 0) -> Iterator[Schema]:
    """The schema and those that describe the same object with it."""
    yield schema
    if depth < _MOST_LEVELS:
        inner = [part for key in ("allOf", *_ALTERNATIVES) for part in as_list(schema.get(key)) or ()]
        for part in [*inner, {"$ref": schema["$ref"]}] if "$ref" in schema else inner:
            if (found := resolve(part, root)) is not None:
                yield from parts_of(found, root, depth + 1)
