"""Values in a few words: parameters and results of steps, for a line that a person reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

import orjson

from surefoot.cli.lines import count, cut, visible
from surefoot.core.text import json_text

_PLAIN = re.compile(r"[^\s\"',;=]+")
_SHORT = 32


def brief_parameters(parameters: Mapping[str, object]) -> str:
    """Parameters on one line; the first goes without its name."""
    given = list(parameters.items())
    return " ".join([*(_brief(v) for _, v in given[:1]), *(f"{name}={_brief(v)}" for name, v in given[1:])])


def _brief(value: object) -> str:
    """A value as it is, where that is short, else how much there is of it."""
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    written = json_text(value)
    return _size_of(value) or written if len(written) > _SHORT else written


def brief_output(text: str) -> str:
    """A result: of data how much there is, of words the first line."""
    value = _data_in(text)
    if value is not None:
        written = json_text(value)
        return written if len(written) <= _SHORT else _size_of(value)
    lines = text.strip().splitlines() or ["(nothing)"]
    return lines[0] + (f"  … {count(len(lines) - 1, 'more line')}" if len(lines) > 1 else "")


def _size_of(value: object) -> str:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)  # JSON
        return ", ".join(f"{name}: {_size_of(one) or _brief_leaf(one)}" for name, one in members.items())
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)  # the same
        return count(len(items), "row" if items and all(isinstance(one, Mapping) for one in items) else "value")
    return ""


def _brief_leaf(value: object) -> str:
    return cut(json_text(value), _SHORT)


def one_line(text: str) -> str:
    """A text without breaks, and with nothing hidden in it."""
    return visible(" ".join(text.split()))


def _data_in(text: str) -> object:
    if text.strip()[:1] not in ("{", "["):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
