"""Lines for a person, and texts made fit to stand in them: nothing hidden, cut where they are too long.

Whatever a model or a tool wrote is made visible first: control characters could otherwise hide what a person is asked
to approve, or take over the terminal.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Literal, cast

import orjson
from rich.cells import cell_len, set_cell_size

from surefoot.core.state.state import Call
from surefoot.core.text import json_text
from surefoot.types.messages import Usage

Style = Literal["", "head", "dim", "call", "result", "good", "warn", "bad"]

_HIDDEN = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
"""Categories of Unicode whose characters show nothing of their own, or steer how others are shown."""
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters of Hangul that show nothing."""

_GAP = 2
_LEAST_CELLS = 4


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or a paragraph that may be wrapped. `indent` counts cells."""

    text: str
    style: Style = ""
    indent: int = 0


def written(call: Call) -> str:
    """A call as it might be written in a program."""
    return f"{call.name}({', '.join(f'{name}={_value(value)}' for name, value in call.arguments.items())})"


def tokens(usage: Usage) -> str:
    """Tokens in and out."""
    about = "about " if usage.estimated else ""
    return f"{about}{usage.input_tokens:,} + {usage.output_tokens:,} tokens"


def visible(text: str) -> str:
    """A text in which nothing is hidden: whatever shows nothing, or steers the rest, is written out."""
    if text.isprintable() and _FILLERS.isdisjoint(text):
        return text
    return "".join(c if c == "\n" or not _is_hidden(c) else " " if c == "\t" else _escaped(c) for c in text)


def cut(text: str, cells: int) -> str:
    """At most that many cells of a text; wide characters count two."""
    head = text[: max(cells, 2)]  # no character is narrower than nothing, and the whole may be long
    if len(head) == len(text) and cell_len(text) <= cells:
        return text
    return set_cell_size(head, max(cells, 2) - 1).rstrip() + "…" if cell_len(head) >= cells else head + "…"


def in_columns(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Rows of cells under each other, in at most `width`; where that is not enough, the widest column gives way."""
    wide = [min(max(map(cell_len, column)), max(width, 1)) for column in zip(*rows, strict=True)]
    while sum(wide) + _GAP * sum(map(bool, wide)) > width + _GAP and max(wide) > _LEAST_CELLS:
        wide[wide.index(max(wide))] -= 1
    lines: list[str] = []
    for row in rows:
        cells = [set_cell_size(cut(cell, most), most) for cell, most in zip(row, wide, strict=True) if most]
        lines.append(cut((" " * _GAP).join(cells).rstrip(), max(width, 1)))
    return lines


def count(number: int, what: str, several: str = "") -> str:
    """A number of things. `several`: their name when it is not `what` with an s."""
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def _is_hidden(character: str) -> bool:
    return character in _FILLERS or unicodedata.category(character) in _HIDDEN


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - as Python writes them


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_USER = re.compile(r"(?<=://)[^/?#\s]*@")


def without_password(text: str) -> str:
    """The text with `user:password@` taken out of each URL in it."""
    return _USER.sub("", text)


_UNQUOTED = re.compile(r"[^\s\"',;=]+")
_MOST_CELLS = 32


def brief_parameters(parameters: Mapping[str, object]) -> str:
    """Parameters on one line; the first goes without its name."""
    given = list(parameters.items())
    return " ".join([*(_brief(v) for _, v in given[:1]), *(f"{name}={_brief(v)}" for name, v in given[1:])])


def _brief(value: object) -> str:
    """A value as it is, where that is short, else how much there is of it."""
    if isinstance(value, str) and _UNQUOTED.fullmatch(value):
        return value
    written = json_text(value)
    return _size_of(value) or written if len(written) > _MOST_CELLS else written


def brief_output(text: str) -> str:
    """A result: of data how much there is, of words the first line."""
    value = _data_in(text)
    if value is not None:
        written = json_text(value)
        return written if len(written) <= _MOST_CELLS else _size_of(value)
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
    return cut(json_text(value), _MOST_CELLS)


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


def json_line(value: object) -> str:
    """The value as JSON on one line; dataclasses are objects. Fields that begin with "_" are left out."""
    try:
        return orjson.dumps(value, default=_plain).decode()
    except TypeError:  # lone surrogates and whole numbers beyond 64 bits, which only the slower writer can write
        return json.dumps(value, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(cast("frozenset[str]", value))  # the sets of events hold words
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))  # orjson knows dicts only
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if not field.name.startswith("_")}
    raise TypeError(f"a {type(value).__name__} is no JSON value")
