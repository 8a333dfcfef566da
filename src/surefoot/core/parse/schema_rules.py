"""The single rules of a JSON Schema: each a function from a value to that value, which logs what it finds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from surefoot.core.parse.json_strict import NotJsonError, as_list, as_object, decode, same_json
from surefoot.core.parse.schema import type_name

KNOWN_KEYWORDS = frozenset(
    [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "minProperties",
        "maxProperties",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "$ref",
        "$defs",
        "definitions",
        "nullable",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$schema",
        "$id",
        "$comment",
        "discriminator",
    ]
)
"""Keywords that are checked, or that say nothing about a value."""

_EXACT_FLOAT = 2**53
_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,300})\s*")
_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,4})?)\s*")
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False}


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field. `path` is like `items[0].name`; empty for the arguments as a whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(slots=True)
class Log:
    """What the rules find on their way through one value."""

    errors: list[FieldError] = field(default_factory=list[FieldError])
    coerced: list[str] = field(default_factory=list[str])

    def wrong(self, path: str, message: str) -> None:
        """Put down an error."""
        self.errors.append(FieldError(path, message))


Check = Callable[[object, str, Log], object]
"""(value, its path, log) -> the value, coerced where that is needed and loses nothing."""


def accept(value: object, path: str, log: Log) -> object:  # noqa: ARG001  # the shape of every check
    """Any value will do."""
    return value


def refuse(value: object, path: str, log: Log) -> object:
    """No value will do."""
    log.wrong(path, "is not allowed")
    return value


def all_of(rules: list[Check]) -> Check:
    """One rule after the other; the first that finds an error is the last that is asked."""
    if len(rules) <= 1:
        return rules[0] if rules else accept

    def check(value: object, path: str, log: Log) -> object:
        before = len(log.errors)
        for rule in rules:
            value = rule(value, path, log)
            if len(log.errors) > before:
                break
        return value

    return check


def any_of(branches: list[Check], *, exactly_one: bool) -> Check:
    """The first branch that takes the value as it is, else the first that takes it coerced."""

    def check(value: object, path: str, log: Log) -> object:
        results: list[tuple[object, Log]] = []
        for branch in branches:
            own = Log()
            made = branch(value, path, own)
            if not own.errors and not own.coerced and not exactly_one:
                return made
            results.append((made, own))
        good = [result for result in results if not result[1].errors]
        exact = [result for result in good if not result[1].coerced]
        if exactly_one and len(exact) > 1:
            log.wrong(path, f"fits {len(exact)} of the alternatives, and must fit exactly one")
        elif good:
            made, own = (exact or good)[0]
            log.coerced += own.coerced
            return made
        else:
            nearest = min((own.errors for _, own in results), key=len)
            told = "; ".join(f"{e.path}: {e.message}" if e.path != path else e.message for e in nearest[:3])
            log.wrong(path, f"fits none of the alternatives ({told})")
        return value

    return check


def excluded(branch: Check) -> Check:
    """Refuses what the branch takes."""

    def check(value: object, path: str, log: Log) -> object:
        own = Log()
        branch(value, path, own)
        if not own.errors and not own.coerced:
            log.wrong(path, "has a form that is excluded")
        return value

    return check


def of_type(types: frozenset[str]) -> Check:
    """A value of one of the types, or one that becomes it without loss."""
    wanted = " or ".join(sorted(types))
    only = next(iter(types)) if len(types) == 1 else ""
    exact = {"string": str, "boolean": bool, "integer": int}.get(only)

    def check(value: object, path: str, log: Log) -> object:
        if type(value) is exact:
            return value
        actual = type_name(value)
        if actual in types or (actual == "integer" and "number" in types):
            return value
        done, made = coerce(value, types)
        if not done:
            log.wrong(path, f"must be {wanted}, not {actual}")
        elif path:
            log.coerced.append(path)
        return made

    return check


def one_of_values(options: list[object]) -> Check:
    """One of the values of an `enum`, or the `const`."""
    types = frozenset(type_name(option) for option in options)
    shown = ", ".join(repr(option) if isinstance(option, str) else str(option) for option in options)[:300]

    def check(value: object, path: str, log: Log) -> object:
        if any(same_json(value, option) for option in options):
            return value
        done, made = coerce(value, types)
        if done and any(same_json(made, option) for option in options):
            log.coerced.append(path)
            return made
        log.wrong(path, f"must be one of {shown}")
        return value

    return check


def coerce(value: object, types: frozenset[str]) -> tuple[bool, object]:
    """Whether the value becomes one of these types without loss, and what it then is."""
    match value:
        case str():
            return _from_text(value, types)
        case bool() | None:
            return False, value
        case int() if "string" in types and value.bit_length() <= _MOST_BITS:
            return True, str(value)
        case float() if "integer" in types and value.is_integer() and abs(value) <= _EXACT_FLOAT:
            return True, int(value)
        case _:
            return False, value


_MOST_BITS = 1_000


def _from_text(text: str, types: frozenset[str]) -> tuple[bool, object]:
    if "integer" in types and (found := _INTEGER.fullmatch(text)):
        return True, int(found.group(1))
    if "number" in types and (found := _NUMBER.fullmatch(text)):
        digits = found.group(1)
        number = int(digits) if digits.lstrip("+-").isdigit() else float(digits)
        return (True, number) if math.isfinite(number) else (False, text)
    if "boolean" in types and text.strip() in _BOOLEANS:
        return True, _BOOLEANS[text.strip()]
    if not types.isdisjoint(("object", "array")):
        stripped = text.strip()
        try:
            value, end = decode(stripped, 0)
        except NotJsonError:
            return False, text
        if end == len(stripped) and (as_object(value) is not None or as_list(value) is not None):
            return type_name(value) in types, value
    return False, text
