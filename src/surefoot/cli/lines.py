"""Lines for a person, and texts made fit to stand in them.

Whatever a model or a tool wrote is made visible first: control characters could otherwise hide what a person is asked
to approve, or take over the terminal.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len, set_cell_size

from surefoot.core.state import Call
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
