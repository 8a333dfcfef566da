"""Stretches of a text that are references, and the classes of characters that they are told by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MOST_SPANS = 5_000
"""Stretches of one type that are read in one text; nobody means more, and each costs time."""

LONGEST_REFERENCE = 2_048
"""Characters of a value that is resolved."""

CJK = (
    "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Ideographs, kana, hangul, and the punctuation and full-width forms used with them; for a character class."""
CJK_PUNCTUATION = (
    "\u2014\u2018-\u201f\u2026\u3000-\u3004\u3008-\u3020\u3030\u303d\u30fb\ufe10-\ufe1f\ufe30-\ufe4f"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
"""What ends a url: full-width and CJK punctuation, with the quotes, dashes and dots of Chinese text."""


class Span(NamedTuple):
    """The text from `start` up to `end` is a reference; `value` is what it refers to. Two of one `key` are the same.

    `rank` settles who comes first at one place and equal length: a custom pattern by its place in the list, then the
    built-in ones. A named tuple, since hostile text makes tens of thousands of them.
    """

    start: int
    end: int
    type: str
    value: str
    key: object
    rank: int = 1 << 16
    lines: tuple[int, int] | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Spans of one type in order; `cut`: there were more than are read."""

    spans: Sequence[Span] = ()
    cut: bool = False
