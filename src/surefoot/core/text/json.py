"""Text that can be written down, bytes and JSON values as text, what stands in JSON of an unknown shape; and pins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import cast

import orjson

from surefoot.types.tools import ToolSpec


def clean(text: str) -> str:
    """The text with each half of a surrogate pair, which UTF-8 cannot carry, replaced by a question mark."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def json_text(value: object, *, sort_keys: bool = False) -> str:
    """A JSON value as compact text, not ASCII-escaped. Integers of any size, which not every encoder takes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if sort_keys else None).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


def plain(value: object) -> object:
    """What JSON has in place of a mapping or a set. Raises `TypeError` for anything else."""
    if isinstance(value, frozenset):
        return sorted(cast("frozenset[object]", value), key=str)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    raise TypeError(f"a value of type {type(value).__name__!r} is not JSON")


def shared_of(schema: Mapping[str, object]) -> dict[str, object]:
    """The definitions of a JSON Schema: its references lead to them from the root of whatever it is put into."""
    return {key: schema[key] for key in ("$defs", "definitions") if key in schema}


def object_schema(properties: Mapping[str, object], *optional: str) -> dict[str, object]:
    """The JSON Schema of an object with these properties and no other."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def at(value: object, *keys: str) -> object:
    """What stands at a path of keys in JSON of an unknown shape; None where there is nothing."""
    for key in keys:
        value = cast("Mapping[str, object]", value).get(key) if isinstance(value, Mapping) else None
    return value


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
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101  # to ask for a dict is quick
        return value  # pyright: ignore[reportUnknownVariableType]  # JSON has text keys only
    return None


def as_list(value: object) -> list[object] | None:
    """The value as a JSON list, if it is one."""
    return value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]  # of anything


def inner_of(value: object) -> Iterable[object]:
    """The values that stand right inside a JSON object or list; none in any other."""
    members = as_object(value)
    return members.values() if members is not None else as_list(value) or ()


def decoded(data: bytes, *, is_cut: bool = False) -> str | None:
    """Bytes as UTF-8 text; None when they are not text. `is_cut`: the last character may be torn, and is left out."""
    if b"\0" in data:
        return None
    for torn in range(min(4, len(data) + 1) if is_cut else 1):
        try:
            return data[: len(data) - torn].decode()
        except UnicodeDecodeError:
            continue
    return None


def shortened(text: str, most: int, mark: str = "…") -> str:
    """At most `most` characters, the last of them `mark` where something is missing; `{}` in it is the whole length."""
    if len(text) <= most:
        return text
    mark = mark.format(len(text))
    return text[: max(0, most - len(mark))] + mark[:most]


def pin_of(spec: ToolSpec) -> str:
    """SHA-256 (hex) of what a model sees of a tool, and its server; no declaration of the developer changes it."""
    pinned = [spec.server, spec.name, spec.description, spec.parameters, spec.output]
    return sha256(json_text(pinned, sort_keys=True).encode(errors="replace")).hexdigest()
