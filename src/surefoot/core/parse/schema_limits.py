"""The rules of a JSON Schema that bound numbers, texts, lists and objects."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt

from surefoot.core.parse.json_strict import as_list, as_object
from surefoot.core.parse.schema import Schema
from surefoot.core.parse.schema_rules import Check, Log

MOST_PATTERN_CHARS = 2_000
"""How long a text may be for a pattern that could take more than linear time on it."""

_MOST_PATTERN_REPEATS = 4
_REPEAT = re.compile(r"[*+]|\{\d*,\d*\}|\{\d{2,}\}")


def limits(schema: Schema) -> list[Check]:
    """The rules of a schema that bound numbers, texts, lists and objects."""
    made = [_number_limits(schema), _text_limits(schema), _size_limits(schema)]
    return [rule for rule in made if rule is not None]


def _number(schema: Schema, key: str) -> float | None:
    value = schema.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number_limits(schema: Schema) -> Check | None:
    bounds: list[tuple[str, float, Fails]] = []
    for key, words, fails in _BOUNDS:
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


Fails = Callable[[float, float], bool]
"""(value, bound) -> whether the value breaks it."""


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


_BOUNDS: tuple[tuple[str, str, Fails], ...] = (
    ("minimum", "at least", lt),
    ("maximum", "at most", gt),
    ("exclusiveMinimum", "more than", le),
    ("exclusiveMaximum", "less than", ge),
    ("multipleOf", "a multiple of", _is_no_multiple),
)


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

    def check(value: object, path: str, log: Log) -> object:
        row, members = as_list(value), as_object(value)
        if row is not None:
            _bound(len(row), (least_items, most_items), "items", path, log)
            if unique and has_twins(row):
                log.wrong(path, "must not hold the same item twice")
        elif members is not None:
            _bound(len(members), (least_keys, most_keys), "keys", path, log)
        return value

    return check


def _bound(size: int, bounds: tuple[float | None, float | None], noun: str, path: str, log: Log) -> None:
    least, most = bounds
    if least is not None and size < least:
        log.wrong(path, f"must have at least {least} {noun}, not {size}")
    if most is not None and size > most:
        log.wrong(path, f"must have at most {most} {noun}, not {size}")


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
