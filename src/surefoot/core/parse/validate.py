"""Validation of a call's arguments against the tool's JSON Schema.

A schema is turned once into a tree of small functions (`schema_compile`), so that checking a flat object of numbers
and texts costs a few calls. Coercion is lossless only, and is recorded. A key that a schema does not declare is
refused unless the schema admits it: by `additionalProperties` or `patternProperties`, or by declaring no properties
at all. Where an object is described in parts (`allOf`, or properties beside `anyOf`), the parts are taken together.
Source: spec/react.md, section 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from surefoot.core.parse.json_strict import as_list, as_object
from surefoot.core.parse.schema import Schema, resolve
from surefoot.core.parse.schema_compile import compile_schema
from surefoot.core.parse.schema_limits import pattern_search
from surefoot.core.parse.schema_rules import KNOWN_KEYWORDS, FieldError, Log, refuse

MOST_ERRORS = 20


@dataclass(frozen=True, slots=True)
class Checked:
    """Arguments after validation: usable if there are no `errors`. `coerced` holds the paths that were changed."""

    value: Mapping[str, object]
    coerced: tuple[str, ...] = ()
    errors: tuple[FieldError, ...] = ()


class Validator:
    """One compiled schema. Made once a tool, and cheap to ask."""

    __slots__ = ("_check",)

    def __init__(self, schema: Schema) -> None:
        try:
            self._check = compile_schema(schema)
        except RecursionError:  # a schema nested in hundreds of levels: no call of this tool can be vouched for
            self._check = refuse

    def check(self, arguments: Mapping[str, object]) -> Checked:
        """The arguments with lossless coercions made, or every field error (at most `MOST_ERRORS`)."""
        log = Log()
        try:
            value = as_object(self._check(arguments, "", log))
        except RecursionError:
            return Checked(arguments, errors=(FieldError("", "nested too deeply to be checked"),))
        if value is None or log.errors:
            return Checked(arguments, errors=tuple(log.errors[:MOST_ERRORS]))
        return Checked(value, tuple(log.coerced))


def validate(arguments: Mapping[str, object], schema: Schema) -> Checked:
    """Compile and check in one go; for schemas that are used once."""
    return Validator(schema).check(arguments)


def unknown_keywords(schema: Schema) -> tuple[str, ...]:
    """The keywords in a schema that are not checked, sorted: unknown ones, `format`, references that lead nowhere, and
    patterns that cannot be run or could hang.
    """  # noqa: D205  # one sentence
    unknown: set[str] = set()
    waiting: list[object] = [schema]
    while waiting:
        part = as_object(waiting.pop())
        if part is None:
            continue
        for key, value in part.items():
            is_dead = (key == "$ref" and resolve(part, schema) is None) or (
                key == "pattern" and not (isinstance(value, str) and pattern_search(value))
            )
            if key not in KNOWN_KEYWORDS or is_dead:
                unknown.add(key)
            waiting += _subschemas(key, value)
    return tuple(sorted(unknown))


def _subschemas(key: str, value: object) -> list[object]:
    if key in ("properties", "patternProperties", "$defs", "definitions"):
        return list((as_object(value) or {}).values())
    if key in ("items", "additionalProperties", "not", "anyOf", "oneOf", "allOf", "prefixItems"):
        return as_list(value) or [value]
    return []
