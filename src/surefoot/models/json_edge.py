"""JSON at the edge to a model server: read without trust, written without fail."""

import json
import re

import orjson

from surefoot.core.text.json import plain

Json = dict[str, object]

_HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""An escaped surrogate pair · half of one, as the group · any other escape."""


def mapping(value: object) -> Json:
    """The value as a JSON object; empty when it is something else."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]  # decoded JSON


def items(value: object) -> list[object]:
    """The value as a JSON array; empty when it is something else."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]  # decoded JSON


def first(value: object) -> Json:
    """The first item of a JSON array, as an object; empty when there is none."""
    row = items(value)
    return mapping(row[0]) if row else {}


def text(value: object) -> str:
    """The value as text; empty when it is something else."""
    return value if isinstance(value, str) else ""


def whole(value: object) -> int:
    """The value as a count; 0 when it is not a number."""
    return value if type(value) is int else int(value) if type(value) is float else 0


def read(raw: bytes | str) -> object:
    """Decode JSON; `None` when it is broken or torn."""
    try:
        value: object = orjson.loads(raw)  # it promises nothing about the type, and neither do we
    except orjson.JSONDecodeError:
        return None
    return value


def decoded(raw: bytes) -> tuple[object, bool]:
    """Decode JSON, with U+FFFD for what is not valid Unicode, and tell whether there was any. Raises `ValueError`."""
    try:
        return orjson.loads(raw), False
    except orjson.JSONDecodeError:
        mended = without_halves(raw.decode("utf-8", "replace")).encode()
        if mended == raw:
            raise
        return orjson.loads(mended), True


def without_halves(written: str) -> str:
    """JSON text with U+FFFD for each escaped half of a surrogate pair."""
    return _HALF.sub(lambda found: r"\ufffd" if found[1] else found[0], written)


def write(value: object) -> bytes:
    """Compact JSON in UTF-8. What orjson does not take goes the slower way; half a surrogate pair becomes a "?"."""
    try:
        return orjson.dumps(value, default=plain)
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=plain).encode("utf-8", "replace")
