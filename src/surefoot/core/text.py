"""Text that can be written down, and values as text."""

import json

import orjson


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
