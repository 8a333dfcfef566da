"""Text from any value: what a model reads of what a function returned.

Text stays as it is, `None` is empty, containers, dataclasses and pydantic models are compact JSON, all else is named.
Source: spec/reasoners.md, section 3, "Text from any value".
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import ItemsView, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import cast

import orjson

_DEEPEST = 100
"""Containers inside containers that are still written; what lies deeper is named only."""


def text_of(value: object) -> str:
    """The text of any value; never raises.

    Not-a-number and infinities are "NaN", "Infinity" and "-Infinity", in quotes inside containers, as JSON has no such
    numbers. Bytes are described. A structure that holds itself is told as such. Half a surrogate pair, which no journal
    could store, becomes U+FFFD.
    """
    match value:
        case str():
            return _storable(str.__str__(value))  # of a text enum its value, not "Colour.RED"
        case None:
            return ""
        case float() if not math.isfinite(value):
            return _word(value)
        case bytes() | bytearray() | memoryview():
            return _described(cast("bytes", value))  # all three have a size in bytes
        case _:
            return _json_or_name(value)


def _json_or_name(value: object) -> str:
    try:
        text = orjson.dumps(value, default=_known, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        if "null" in text and _has_word(plain := _plain(value, ())):  # which `null` was written for
            return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError, AttributeError):  # what orjson raises for what it cannot write
        try:
            plain = _plain(value, ())
        except _HoldsItself:
            return "(the call was made, but what it returned holds itself and cannot be written as JSON)"
        if isinstance(plain, str):
            return plain
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    # A lone word was put in quotes only because `_known` made text of an object, an enum or a date.
    return cast("str", orjson.loads(text)) if text.startswith('"') else text


class _Word(str):
    """What stands for a number that JSON does not have."""

    __slots__ = ()


def _word(value: float) -> _Word:
    return _Word("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")


def _has_word(plain: object) -> bool:
    if isinstance(plain, dict):
        return any(map(_has_word, cast("dict[str, object]", plain).values()))
    return any(map(_has_word, cast("list[object]", plain))) if isinstance(plain, list) else isinstance(plain, _Word)


class _HoldsItself(Exception):
    """A container was met again inside itself."""


def _known(value: object) -> object:
    """What orjson does not write by itself, one step nearer to JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _described(cast("bytes", value))  # all three have a size in bytes
    if isinstance(value, type):
        return value.__name__
    for method in ("model_dump", "_asdict", "tolist"):  # pydantic models, named tuples, arrays
        if callable(dump := getattr(value, method, None)):
            return dump(mode="json") if method == "model_dump" else dump()
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    if isinstance(value, (Sequence, KeysView, ValuesView, ItemsView)):
        return list(cast("Sequence[object]", value))
    if isinstance(value, AbstractSet):
        return _ordered(cast("AbstractSet[object]", value))
    return _storable(_name(value))


def _ordered(values: AbstractSet[object]) -> list[object]:
    """A set has no order, a journal wants the same text each time."""
    return sorted(values, key=lambda value: (type(value).__name__, _name(value)))


def _name(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # `__str__` is foreign code; whatever it raises, the call has been made
        return f"<{type(value).__name__}>"


def _described(value: bytes) -> str:
    return f"({memoryview(value).nbytes} bytes of binary data)"


def _storable(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _plain(value: object, above: tuple[int, ...]) -> object:
    """The slow road, for what orjson refuses: large integers, keys that are no text, cycles, great depth."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else _word(value)
    if id(value) in above:
        raise _HoldsItself
    if len(above) >= _DEEPEST:
        return f"({type(value).__name__}, nested too deeply)"
    below = (*above, id(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
        return {name: _plain(getattr(value, name, None), below) for name in fields}
    nearer = value if type(value) in (list, tuple, dict) else _known_or_name(value)
    if isinstance(nearer, dict):
        return {_key(key): _plain(item, below) for key, item in cast("dict[object, object]", nearer).items()}
    if isinstance(nearer, (list, tuple)):
        return [_plain(item, below) for item in cast("list[object]", nearer)]
    return _plain(nearer, below)


def _known_or_name(value: object) -> object:
    try:
        return _known(value)
    except Exception:  # noqa: BLE001  # foreign `model_dump`, `keys` and `__iter__` run here
        return _storable(_name(value))


def _key(key: object) -> str:
    match key:
        case str():
            return _storable(key)
        case bool():
            return "true" if key else "false"
        case None:
            return "null"
        case Enum():
            return _storable(_name(key.value))
        case _:
            return _storable(_name(key))
