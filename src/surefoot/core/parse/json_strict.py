"""Rung 0 of the repair ladder: strict JSON, and where it ends.

The standard library's decoder does the work; what it lets through and JSON does not (NaN, Infinity, a key given twice
with different values) is refused here. Source: spec/react.md, section 8.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import cast

MOST_NESTED = 200
"""Levels of nesting. What is nested deeper is refused everywhere, since encoders and journals give up soon after."""


class NotJsonError(Exception):
    """No JSON value begins there. `position` is where it went wrong, `resume` from where on it pays to look again.

    `at_end`: the text ended before the value did. `payload`: a payload was opened and never closed. `refused`: it is
    well formed and still no value that may be used (NaN, a key given twice, …), so that no repair could help.
    """

    def __init__(
        self,
        position: int,
        message: str,
        *,
        resume: int | None = None,
        at_end: bool = False,
        payload: bool = False,
        refused: bool = False,
    ) -> None:
        super().__init__(message)
        self.position = position
        self.message = message
        self.resume = position if resume is None else resume
        self.at_end = at_end
        self.payload = payload
        self.refused = refused


class _RefusedError(ValueError):
    """Well-formed, but nothing that may be taken for a value."""


def decode(text: str, start: int) -> tuple[object, int]:
    """The JSON value that begins exactly at `start`, and its end. Raises `NotJsonError`."""
    try:
        value, end = _raw_decode(_DECODER, text, start)
    except RecursionError as error:
        raise too_deep(text, start) from error
    except ValueError as error:  # refused by a hook below, or a whole number of thousands of digits
        try:
            end = _raw_decode(_ANY, text, start)[1]
        except (NotJsonError, RecursionError):
            end = len(text)
        raise NotJsonError(start, str(error), resume=end, refused=True) from error
    if end - start > 2 * MOST_NESTED and nested_deeper_than(value, MOST_NESTED):
        raise too_deep(text, start)
    if text.find("\\u", start, end) >= 0:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise NotJsonError(start, "half of a \\u pair stands alone", resume=end, refused=True) from error
    return value, end


def _raw_decode(decoder: json.JSONDecoder, text: str, start: int) -> tuple[object, int]:
    """What the decoder makes of the text from `start` on, asked about ever larger windows of it.

    The decoder counts the lines before each error, from the beginning of what it was given: asked about the whole text
    again and again it would take quadratic time.
    """
    size = _FIRST_WINDOW
    while True:
        window = text[start : start + size]
        is_all = start + size >= len(text)
        try:
            value, end = decoder.raw_decode(window)
            if is_all or end < size:
                return value, start + end
        except json.JSONDecodeError as error:
            is_open = error.msg.startswith("Unterminated string") or error.pos + _NEAR_END >= size
            if is_all or not is_open:
                place, end = start + error.pos, start + len(window)
                if error.msg.startswith("Unterminated string"):
                    raise NotJsonError(place, "a string is open at the end", resume=end, at_end=True) from error
                if place >= end or (error.msg.startswith("Invalid \\") and place + 6 > end):
                    raise NotJsonError(end, "the text ends inside the value", at_end=True) from error
                raise NotJsonError(place, f"unexpected {error.doc[error.pos]!r}") from error
        size *= _WINDOW_GROWTH


_FIRST_WINDOW = 2_000
_WINDOW_GROWTH = 8
_NEAR_END = 16


def too_deep(text: str, start: int) -> NotJsonError:
    """The refusal of a value that is nested too deeply; nothing behind it is read either."""
    return NotJsonError(start, f"nested more than {MOST_NESTED} levels deep", resume=len(text), refused=True)


def merge_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The object of these members. Raises `ValueError` for a key that comes twice with different values."""
    made = dict(pairs)
    if len(made) != len(pairs):
        for key, value in pairs:
            if not same_json(made[key], value):
                raise _RefusedError(f'the key "{key[:60]}" is given twice with different values')
    return made


def same_json(one: object, other: object) -> bool:
    """Whether two JSON values are the same; unlike in Python, `true` is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    ones, others = as_list(one), as_list(other)
    if ones is not None and others is not None:
        return len(ones) == len(others) and all(map(same_json, ones, others))
    first, second = as_object(one), as_object(other)
    if first is not None and second is not None:
        return first.keys() == second.keys() and all(same_json(value, second[key]) for key, value in first.items())
    return one == other


def as_object(value: object) -> Mapping[str, object] | None:
    """The value as a JSON object, if it is one."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else None  # JSON has text keys only


def as_list(value: object) -> list[object] | None:
    """The value as a JSON list, if it is one."""
    return cast("list[object]", value) if isinstance(value, list) else None  # whatever its members are


def nested_deeper_than(value: object, most: int) -> bool:
    """Whether lists and objects stand in each other in more than `most` levels. Does not recurse."""
    level: list[object] = [value]
    for _ in range(most):
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner += cast("dict[str, object]", item).values()  # a JSON object
            elif isinstance(item, list):
                inner += cast("list[object]", item)  # a JSON list
        if not inner:
            return False
        level = inner
    return True


def _constant(name: str) -> object:
    raise _RefusedError(f"{name} is no JSON number")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _RefusedError(f"the number {digits[:60]} is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=merge_pairs, parse_constant=_constant, parse_float=_float)
_ANY = json.JSONDecoder(parse_int=str, parse_float=str)
