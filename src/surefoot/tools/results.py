"""What a tool gives: any value as the text that a model reads, and the schema of results that hold no free text.

Text stays as it is, `None` is empty, containers, dataclasses and pydantic models are compact JSON, all else is named.
A planner that must not read untrusted text may be shown a result of a closed type: numbers, words of a closed list,
dates, identifiers of a declared pattern. Models are recognized without importing pydantic: who has one has imported it.
Source: spec/reasoners.md, sections 3 ("Text from any value") and 7.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import math
import re
import types
import typing
from collections.abc import ItemsView, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from enum import Enum, Flag
from typing import Annotated, Any, Literal, Union, cast
from uuid import UUID

import orjson

from surefoot.core.parse.schema import is_runnable
from surefoot.tools.schema import one_of
from surefoot.tools.signature import is_class
from surefoot.types.attachments import Attachment, files_in
from surefoot.types.tools import ToolResult

_DEEPEST = 100  # containers inside containers that are still written; what lies deeper is named only
_LONGEST = 14_000  # bits of an integer that is written out; Python refuses to write one of more than 4,300 digits

Schema = dict[str, object]

_DAY, _TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[0-9]{2}:[0-9]{2}:[0-9.:Z+-]{2,24}"  # such as `is_runnable` can run
_WHOLE: Mapping[object, Mapping[str, object]] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    types.NoneType: {"type": "null"},
    date: {"type": "string", "format": "date", "pattern": f"^{_DAY}$"},
    time: {"type": "string", "format": "time", "pattern": f"^{_TIME}$"},
    datetime: {"type": "string", "format": "date-time", "pattern": f"^{_DAY}T{_TIME}$"},
    UUID: {
        "type": "string",
        "format": "uuid",
        "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    },
}
_MANY = (
    *(list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable),
    *(collections.abc.Collection, collections.abc.Set),
)
_BY_KEY = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_WHOLE_KEY = "^-?[0-9]+$"
_PIECES = re.compile(
    r"(?P<open>\((?:\?:|(?!\?)))|(?P<close>\))|(?P<either>\|)|[A-Za-z0-9_:/@#=,%&~!<>;'\"-]|\\[d.+*/?()\[\]{}|^$\\-]"
    r"|\[(?:[A-Za-z0-9_.:/@#+=-]|\\[d.-])+\]|[*+?]|\{[0-9]+(?:,[0-9]*)?\}"
)


def text_of(value: object) -> str:
    """The text of any value; never raises.

    Not-a-number and infinities are "NaN", "Infinity" and "-Infinity", in quotes inside containers, as JSON has no such
    numbers. Bytes are described. A structure that holds itself is told as such. Half a surrogate pair, which no journal
    could store, becomes U+FFFD.
    """
    if isinstance(value, str):
        return _storable(str.__str__(value))  # of a text enum its value, not "Colour.RED"
    if value is None:
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return _word(value)
    if isinstance(value, int) and value.bit_length() > _LONGEST:
        return _too_long(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _described(cast("bytes", value))  # all three have a size in bytes
    try:
        text = orjson.dumps(value, default=_default, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        if "null" in text and _has_word(plain := _plain(value, ())):  # which `null` was written for
            return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError, AttributeError):  # what orjson raises for what it cannot write
        try:
            plain = _plain(value, ())
        except _HoldsItself:
            return "(the call was made, but what it returned holds itself and cannot be written as JSON)"
        return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    # A lone word was put in quotes only because `_default` made text of an object, an enum or a date.
    return cast("str", orjson.loads(text)) if text.startswith('"') else text


def with_files(text: str, attached: Sequence[Attachment]) -> ToolResult:
    """A result of a text, what was attached to it, and a line about each file."""
    lines = [one.line if one.digest else one.text for one in attached]
    return ToolResult("\n".join(filter(None, (text, *lines))), files=files_in(attached))


def returns_schema(annotation: object) -> Schema | None:
    """The schema of a closed type; None for every type that may hold free text, and for what is not known.

    Closed are whole types (numbers, booleans, None, dates, UUIDs), `Literal`, enums, text of an anchored pattern
    (`is_identifier_pattern`), and lists, tuples, sets, dicts, dataclasses, typed dicts, named tuples and models of
    these. Never raises.
    """
    return _closed(annotation, ())


def is_identifier_pattern(pattern: str) -> bool:
    r"""Whether only identifiers match: anchored at both ends, and no part that takes a blank or a letter of any script.

    Parts are ASCII letters, digits and signs, `\d`, escaped signs, sets of these, groups and repetitions. All else
    (`.`, `\w`, `\s`, `[^…]`, look-around) could let a sentence through.
    """
    if not (pattern.startswith("^") and pattern.endswith("$") and not pattern.endswith("\\$")):
        return False
    depth, at, end = 0, 1, len(pattern) - 1
    while at < end:
        piece = _PIECES.match(pattern, at, end)
        if piece is None or (piece["either"] and not depth):  # `^a|b$` is anchored at one end only
            return False
        depth += bool(piece["open"]) - bool(piece["close"])
        at = piece.end()
    return depth == 0 and at > 1


class _Word(str):
    """What stands for a number that JSON does not have."""

    __slots__ = ()


def _word(value: float) -> _Word:
    return _Word("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")


def _too_long(value: int) -> str:
    return f"(an integer of {value.bit_length():,} bits)"


def _has_word(plain: object) -> bool:
    if isinstance(plain, dict):
        return any(map(_has_word, cast("dict[str, object]", plain).values()))
    return any(map(_has_word, cast("list[object]", plain))) if isinstance(plain, list) else isinstance(plain, _Word)


class _HoldsItself(Exception):
    """A container was met again inside itself."""


def _default(value: object) -> object:
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
        # A set has no order, a journal wants the same text each time.
        return sorted(cast("AbstractSet[object]", value), key=lambda each: (type(each).__name__, _name(each)))
    return _storable(_name(value))


def _name(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # `__str__` is foreign code; whatever it raises, the call has been made
        return f"<{type(value).__name__}>"


def _described(value: bytes) -> str:
    size = memoryview(value).nbytes
    return f"({size} byte{'s' if size != 1 else ''} of binary data)"


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
    if isinstance(value, int) and value.bit_length() > _LONGEST:
        return _too_long(value)
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
    nearer: object = value
    if type(value) not in (list, tuple, dict):
        try:
            nearer = _default(value)
        except Exception:  # noqa: BLE001  # foreign `model_dump`, `keys` and `__iter__` run here
            nearer = _storable(_name(value))
    if isinstance(nearer, dict):
        members: dict[str, object] = {}
        for key, item in cast("dict[object, object]", nearer).items():
            is_word = key is None or isinstance(key, bool)
            name = key if isinstance(key, str) else _name(key.value if isinstance(key, Enum) else key)
            members[json.dumps(key) if is_word else _storable(name)] = _plain(item, below)
        return members
    if isinstance(nearer, (list, tuple)):
        return [_plain(item, below) for item in cast("list[object]", nearer)]
    return _plain(nearer, below)


def _closed(annotation: object, above: tuple[object, ...]) -> Schema | None:
    """`above` are the records around it: one that holds itself is left out."""
    while isinstance(annotation, typing.NewType):
        annotation = annotation.__supertype__
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None:
        try:
            if (known := _WHOLE.get(annotation)) is not None:
                return {**known}
        except TypeError:  # it cannot be looked up, so it is not a class
            return None
        if not is_class(annotation) or annotation in above:
            return None
        if issubclass(annotation, Enum):
            return None if issubclass(annotation, Flag) else one_of([member.value for member in annotation])
        fields, required = _record(annotation) or (None, [])
        if fields is None:
            return None
        found = {name: _closed(each, (*above, annotation)) for name, each in fields.items()}
        if None in found.values():
            return None
        schema: Schema = {"type": "object", "properties": found, "additionalProperties": False}
        return {**schema, "required": required} if required else schema
    if origin is Literal:
        return one_of([part.value if isinstance(part, Enum) else part for part in parts])
    if origin is Annotated and parts[0] is not str:
        return _closed(parts[0], above)
    if origin is Annotated:  # text with a pattern that can be checked; `Field(pattern=…)` keeps it one level deeper
        marks = (each for mark in parts[1:] for each in (mark, *(getattr(mark, "metadata", None) or ())))
        given: list[object] = [getattr(each, "pattern", None) for each in marks]
        for pattern in (getattr(each, "pattern", each) for each in given):  # it may be compiled
            if isinstance(pattern, str) and is_identifier_pattern(pattern) and is_runnable(pattern):
                return {"type": "string", "pattern": pattern}
        return None
    if origin in _BY_KEY:
        # Keys are text in JSON, so they too must be closed: by a pattern, or as a list of words.
        keys, item = _closed(parts[0], above), _closed(parts[1], above)
        if keys is None or item is None:
            return None
        whole: Schema = {"type": "object", "additionalProperties": False}
        if keys.get("type") == "integer" and "enum" not in keys:
            return {**whole, "patternProperties": {_WHOLE_KEY: item}}
        if keys.get("type") != "string":
            return None
        if "pattern" in keys:
            return {**whole, "patternProperties": {keys["pattern"]: item}}
        return {**whole, "properties": dict.fromkeys(cast("list[str]", keys["enum"]), item)}
    is_union = origin is Union or origin is types.UnionType
    is_many = origin in _MANY or (origin is tuple and parts[-1:] == (Ellipsis,))
    if not (is_union or is_many or origin is tuple):
        return None
    found = [_closed(part, above) for part in (parts[:1] if is_many else parts)]
    if None in found or not found:
        return None
    if is_union:
        return {"anyOf": found}
    size = len(found)
    whole: Schema = {"type": "array"}
    return whole | ({"items": found[0]} if is_many else {"prefixItems": found, "minItems": size, "maxItems": size})


def _record(kind: type[object]) -> tuple[dict[str, object], list[str]] | None:
    """The types of the fields of a record, and the names of those that are always there.

    None for a class that is not a record, and for a model that shows more than its fields, or in another way.
    """
    if (decorators := getattr(kind, "__pydantic_decorators__", None)) is not None:
        if any(getattr(decorators, way, None) for way in ("computed_fields", "field_serializers", "model_serializers")):
            return None
        known: object = getattr(kind, "__pydantic_fields__", None)
        config: object = getattr(kind, "model_config", getattr(kind, "__pydantic_config__", None)) or {}
        if not isinstance(known, dict) or cast("dict[str, object]", config).get("extra") == "allow":
            return None
        found: dict[str, object] = {}
        for name, field in cast("dict[str, Any]", known).items():  # Any: a `FieldInfo`, not imported for its type alone
            marks = tuple(field.metadata)
            found[name] = Annotated[(field.annotation, *marks)] if marks else field.annotation
        return found, [*found]
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif (required := getattr(kind, "__required_keys__", None)) is not None:  # a typed dict
        names = sorted(cast("frozenset[str]", required))
    elif (in_order := getattr(kind, "_fields", None)) is not None and tuple in kind.__mro__:  # a named tuple
        names = [*cast("tuple[str, ...]", in_order)]
    else:
        return None
    try:
        known = typing.get_type_hints(kind, include_extras=True)
    except Exception:  # noqa: BLE001  # annotations are expressions and may raise anything
        return None
    if any(name.startswith("_") for name in names):  # shown by some who write JSON, and left out by others
        return None
    if not hasattr(kind, "__required_keys__"):
        return {name: known.get(name, object) for name in names}, names
    left_out = {name for name, each in known.items() if typing.get_origin(each) is typing.NotRequired}  # also in text
    return typing.get_type_hints(kind), [name for name in names if name not in left_out]
