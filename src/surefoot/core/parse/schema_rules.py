"""The single rules of a JSON Schema, each as a function from a value to that value, with what it finds put into a log."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from surefoot.core.parse.json_strict import NotJsonError, as_list, as_object, decode, same_json
from surefoot.core.parse.schema import Schema, type_name

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

MOST_PATTERN_CHARS = 2_000
"""How long a text may be for a pattern that could take more than linear time on it."""

_MOST_PATTERN_REPEATS = 4
_EXACT_FLOAT = 2**53
_INTEGER = re.compile(r"\s*([+-]?[0-9]{1,300})\s*")
_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,4})?)\s*")
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False}
_REPEAT = re.compile(r"[*+]|\{\d*,\d*\}|\{\d{2,}\}")


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
        if end == len(stripped) and isinstance(value, dict | list) and type_name(value) in types:
            return True, value
    return False, text


def limits(schema: Schema) -> list[Check]:
    """The rules of a schema that bound numbers, texts, lists and objects."""
    made = [_number_limits(schema), _text_limits(schema), _size_limits(schema)]
    return [rule for rule in made if rule is not None]


def _number(schema: Schema, key: str) -> float | None:
    value = schema.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number_limits(schema: Schema) -> Check | None:
    bounds: list[tuple[str, float, Callable[[float, float], bool]]] = []
    for key, words, fails in (
        ("minimum", "at least", lambda v, b: v < b),
        ("maximum", "at most", lambda v, b: v > b),
        ("exclusiveMinimum", "more than", lambda v, b: v <= b),
        ("exclusiveMaximum", "less than", lambda v, b: v >= b),
        ("multipleOf", "a multiple of", _is_no_multiple),
    ):
        bound = _number(schema, key)
        if bound is not None:
            bounds.append((words, bound, fails))
    if not bounds:
        return None

    def check(value: object, path: str, log: Log) -> object:
        if isinstance(value, int | float) and not isinstance(value, bool):
            for words, bound, fails in bounds:
                if fails(value, bound):
                    log.wrong(path, f"must be {words} {bound}, not {str(value)[:60]}")
        return value

    return check


def _is_no_multiple(value: float, step: float) -> bool:
    if step <= 0:
        return False
    if isinstance(value, int) and isinstance(step, int):
        return value % step != 0
    try:
        ratio = value / step
    except OverflowError:
        return False
    return math.isfinite(ratio) and abs(ratio - round(ratio)) > 1e-9 * max(1.0, abs(ratio))


def _text_limits(schema: Schema) -> Check | None:
    least, most = _number(schema, "minLength"), _number(schema, "maxLength")
    pattern = schema.get("pattern")
    search = pattern_search(pattern) if isinstance(pattern, str) else None
    if least is None and most is None and search is None:
        return None

    def check(value: object, path: str, log: Log) -> object:
        if isinstance(value, str):
            if least is not None and len(value) < least:
                log.wrong(path, f"must have at least {least} characters, not {len(value)}")
            elif most is not None and len(value) > most:
                log.wrong(path, f"must have at most {most} characters, not {len(value)}")
            elif search is not None and not search(value):
                log.wrong(path, f"must match the pattern {pattern}")
        return value

    return check


def pattern_search(pattern: str) -> Callable[[str], bool] | None:
    """The test for a pattern, or None if it cannot be compiled or could take exponential time.

    Patterns with repeats inside of repeats are not run. One whose repeats could cost more than one pass refuses texts
    of more than `MOST_PATTERN_CHARS`. As in ECMAScript, `$` is only the very end.
    """
    bare = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "x", pattern, flags=re.DOTALL)  # classes and escapes count as one sign
    repeats = len(_REPEAT.findall(bare))
    if repeats > _MOST_PATTERN_REPEATS or _repeats_a_repeat(bare):
        return None
    ended = pattern[:-1] + r"\Z" if bare.endswith("$") and pattern.endswith("$") else pattern
    try:
        compiled = re.compile(ended)
    except (re.error, RecursionError, OverflowError):
        return None
    most = MOST_PATTERN_CHARS if repeats > 1 or (repeats == 1 and not bare.startswith("^")) else None

    def search(text: str) -> bool:
        return (most is None or len(text) <= most) and compiled.search(text) is not None

    return search


def _repeats_a_repeat(bare: str) -> bool:
    """Whether a repeated group holds a repeat or an alternative, or something refers back to a group."""
    holds: list[bool] = []
    for at, sign in enumerate(bare):
        if sign == "(":
            holds.append(False)
        elif sign == ")" and holds:
            inner = holds.pop()
            if inner and (_REPEAT.match(bare, at + 1) or bare.startswith("?", at + 1)):
                return True
            if holds:
                holds[-1] = holds[-1] or inner
        elif holds and (sign in "*+|{" or (sign == "?" and bare[at - 1] != "(")):
            holds[-1] = True
    return "(?P=" in bare


def _size_limits(schema: Schema) -> Check | None:
    keys = ("minItems", "maxItems", "minProperties", "maxProperties")
    least_items, most_items, least_keys, most_keys = (_number(schema, key) for key in keys)
    unique = schema.get("uniqueItems") is True
    if not unique and all(_number(schema, key) is None for key in keys):
        return None

    def bound(size: int, least: float | None, most: float | None, path: str, log: Log, noun: str) -> None:
        if least is not None and size < least:
            log.wrong(path, f"must have at least {least} {noun}, not {size}")
        if most is not None and size > most:
            log.wrong(path, f"must have at most {most} {noun}, not {size}")

    def check(value: object, path: str, log: Log) -> object:
        row, members = as_list(value), as_object(value)
        if row is not None:
            bound(len(row), least_items, most_items, path, log, "items")
            if unique and has_twins(row):
                log.wrong(path, "must not hold the same item twice")
        elif members is not None:
            bound(len(members), least_keys, most_keys, path, log, "keys")
        return value

    return check


def has_twins(row: list[object]) -> bool:
    """Whether a list holds a JSON value twice."""
    seen: set[object] = set()
    for item in row:
        key = _frozen(item)
        if key in seen:
            return True
        seen.add(key)
    return False


def _frozen(value: object) -> object:
    """A hashable stand-in: the same for the same JSON value, and for no other."""
    row = as_list(value)
    if row is not None:
        return ("array", *map(_frozen, row))
    members: Mapping[str, object] | None = as_object(value)
    if members is not None:
        return ("object", frozenset((key, _frozen(member)) for key, member in members.items()))
    return (isinstance(value, bool), isinstance(value, str), value)
