"""Texts made fit to be read by a person, whoever wrote them, and values as JSON on a line.

Whatever a model or a tool wrote is made visible first: control characters could otherwise hide what a person is asked
to approve, or take over the terminal.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from typing import Literal, cast

import orjson

from surefoot.core.state.turn import Call
from surefoot.core.text import json_text
from surefoot.core.text.json import plain
from surefoot.types.messages import Usage

Style = Literal["", "head", "dim", "call", "result", "good", "warn", "bad"]
PartRole = Literal["runtime", "model", "tool", "person"]
Said = str | tuple[str, PartRole]
"""A text, and whose it is; the runtime's own goes without."""

_HIDDEN = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
"""Categories of Unicode whose characters show nothing of their own, or steer how others are shown."""
_YEAR_9999 = 253_370_764_800
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters of Hangul that show nothing."""
_USER = re.compile(r"(?<=://)[^/?#\s]*@")
_UNQUOTED = re.compile(r"[^\s\"',;=]+")
_MOST_CELLS = 32
_MARKS = frozenset(("Mn", "Me", "Cf"))
"""Categories of Unicode whose characters take no room of their own."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or a paragraph that may be wrapped. `indent` counts cells."""

    text: str
    style: Style = ""
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a row, and whose words it is."""

    text: str
    role: PartRole = "runtime"


def visible(text: str) -> str:
    """A text in which nothing is hidden: whatever shows nothing, or steers the rest, is written out."""
    if text.isprintable() and (text.isascii() or _FILLERS.isdisjoint(text)):
        return text
    shown: list[str] = []
    for c in text:
        if c == "\n" or (c not in _FILLERS and unicodedata.category(c) not in _HIDDEN):
            shown.append(c)
        else:
            shown.append(" " if c == "\t" else f"\\u{ord(c):04x}" if c <= "\uffff" else f"\\U{ord(c):08x}")
    return "".join(shown)


def visible_json(value: object) -> object:
    """A JSON value in which no text, and no name of a member, hides anything."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return visible_members(cast("Mapping[str, object]", value))  # JSON
    return [visible_json(one) for one in cast("Sequence[object]", value)] if isinstance(value, list | tuple) else value


def visible_members(members: Mapping[str, object]) -> dict[str, object]:
    """The same for the members of an object."""
    return {visible(name): visible_json(one) for name, one in members.items()}


def moment(at: float) -> datetime:
    """A time of a record, in seconds since the epoch; a journal from elsewhere may hold any number."""
    return datetime.fromtimestamp(at if 0 <= at < _YEAR_9999 else 0.0, UTC)


def one_line(text: str) -> str:
    """A text without breaks, and with nothing hidden in it."""
    return visible(" ".join(text.split()))


def without_password(text: str) -> str:
    """The text with `user:password@` taken out of each URL in it."""
    return _USER.sub("", text)


def cells(text: str) -> int:
    """How many cells of a terminal a text takes; wide characters take two."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, most: int) -> str:
    """At most that many cells of a text; wide characters count two."""
    most = max(most, 2)
    head, used = text[:most], 0  # no character is narrower than nothing, and the whole may be long
    if len(head) == len(text) and cells(text) <= most:
        return text
    for at, character in enumerate(head):
        used += _width(character)
        if used >= most:
            return head[:at].rstrip() + "…"
    return head + "…"


def count(number: int, what: str, several: str = "") -> str:
    """A number of things. `several`: their name when it is not `what` with an s."""
    return f"{number:,} {what if number == 1 else several or what + 's'}"


def tokens(usage: Usage) -> str:
    """Tokens in and out."""
    about = "about " if usage.estimated else ""
    return f"{about}{usage.input_tokens:,} + {usage.output_tokens:,} tokens"


def program_text(call: Call) -> str:
    """A call as it might be written in a program."""
    values = ((name, json.dumps(value, ensure_ascii=False, default=str)) for name, value in call.arguments.items())
    return f"{call.name}({', '.join(f'{name}={value}' for name, value in values)})"


def brief_parameters(parameters: Mapping[str, object]) -> str:
    """Parameters on one line; the first goes without its name."""
    given = list(parameters.items())
    return " ".join([*(_brief(v) for _, v in given[:1]), *(f"{name}={_brief(v)}" for name, v in given[1:])])


def _brief(value: object) -> str:
    """A value as it is, where that is short, else how much there is of it."""
    if isinstance(value, str) and _UNQUOTED.fullmatch(value):
        return value
    text = json_text(value)
    return _size_of(value) or text if len(text) > _MOST_CELLS else text


def brief_output(text: str) -> str:
    """A result: of data how much there is, of words the first line."""
    if text.strip()[:1] in ("{", "["):
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # it only looks like data
        else:
            data = json_text(value)
            return data if len(data) <= _MOST_CELLS else _size_of(value)
    lines = text.strip().splitlines() or ["(nothing)"]
    return lines[0] + (f"  … {count(len(lines) - 1, 'more line')}" if len(lines) > 1 else "")


def _size_of(value: object) -> str:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)  # JSON
        parts = ((name, _size_of(one) or cut(json_text(one), _MOST_CELLS)) for name, one in members.items())
        return ", ".join(f"{name}: {size}" for name, size in parts)
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)  # the same
        return count(len(items), "row" if items and all(isinstance(one, Mapping) for one in items) else "value")
    return ""


def json_line(value: object, run_id: str = "") -> str:
    """The value as JSON on one line; dataclasses are objects. Fields that begin with "_" are left out.

    An object about a run begins with its `run_id`, wherever a command writes one.
    """
    try:
        line = orjson.dumps(value, default=_plain).decode()
    except TypeError:  # lone surrogates and whole numbers beyond 64 bits, which only the slower writer can write
        line = json.dumps(value, default=_plain)
    if not run_id or line.startswith('{"run_id":'):
        return line
    return f'{{"run_id":{json.dumps(run_id)},{line[1:]}'


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if not field.name.startswith("_")}
    return plain(value)
