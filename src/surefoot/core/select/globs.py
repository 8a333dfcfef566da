"""Which names a glob matches: `*` is any run of characters, also empty; `?` exactly one; everything else is itself.

Matching is linear, whatever is matched. A pattern is split at its stars. The first piece has to begin the name and the
last one to end it; each piece between is looked for behind the one before, and the first place where it fits leaves
the most room for the rest, so nothing is ever tried again. Of many names, only those with the right beginning or the
right end are looked at, which two sorted lists tell at once, and only those that hold the longest literal. Not
`fnmatch`, which knows classes and goes by the case rules of the system. Names and patterns are compared by code points:
bring both into the same form of Unicode first.

A piece with a `?` between literals is tried at all places at once (`_places`). That alone is not linear, but so cheap
that a piece of 100,000 characters in a name of 200,000 takes a third of a second; names and patterns are never so long.

Source: spec/primitives.md, section 1.2.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

_FIRST_WINDOW = 64
_WILDCARDS = re.compile(r"[*?]+")


def matched(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each pattern the names that it matches. The pattern "" matches none.

    Costs O(n log n) for n names; then `abc`, `abc*` and `*abc` cost only the names that they match, and other patterns
    one look at each name. One name of any length against one pattern without `?` costs O(name + pattern).
    """
    index = _Index(frozenset(names))
    return {pattern: index.matching(pattern) for pattern in patterns}


class _Index:
    """Names that are asked for by their beginning and their end."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    @cached_property
    def _forward(self) -> list[str]:
        return sorted(self._names)

    @cached_property
    def _backward(self) -> list[str]:
        return sorted(name[::-1] for name in self._names)

    def matching(self, pattern: str) -> frozenset[str]:
        if "*" not in pattern and "?" not in pattern:
            return self._names & {pattern} if pattern else frozenset()
        head, *_, tail = literals = _WILDCARDS.split(pattern)
        if head:
            near = _beginning(self._forward, head)
        elif tail:
            near = [name[::-1] for name in _beginning(self._backward, tail[::-1])]
        else:
            near = self._names
        core = max(literals, key=len)
        if core not in (head, tail):
            near = [name for name in near if core in name]
        if pattern in (f"{head}*", f"*{tail}", f"*{core}*"):
            return frozenset(near)
        shape = _shape(pattern)
        return frozenset(name for name in near if shape.fits(name))


def _beginning(ordered: list[str], head: str) -> list[str]:
    first = bisect_left(ordered, head)
    last = bisect_left(ordered, True, lo=first, key=lambda name: not name.startswith(head))
    return ordered[first:last]


@dataclass(frozen=True, slots=True)
class _Piece:
    """What stands between two stars: so many `?`, a text that begins and ends with a literal, so many `?` again."""

    before: int
    text: str
    behind: int


@dataclass(frozen=True, slots=True)
class _Shape:
    """A pattern with a wildcard: its first piece, those between two stars, and its last (None: it has no star)."""

    first: str
    inner: tuple[_Piece, ...]
    last: str | None

    def fits(self, name: str) -> bool:
        at = len(self.first)
        if self.last is None:
            return len(name) == at and _same(self.first, name)
        end = len(name) - len(self.last)
        if end < at or not _same(self.first, name[:at]) or not _same(self.last, name[end:]):
            return False
        for piece in self.inner:
            found = _find(piece.text, name, at + piece.before, end)
            at = found + len(piece.text) + piece.behind
            if found < 0 or at > end:
                return False
        return True


def _shape(pattern: str) -> _Shape:
    first, *others = pattern.split("*")
    inner = tuple(_piece(piece) for piece in others[:-1] if piece)  # `**` is `*`
    return _Shape(first, inner, others[-1] if others else None)


def _piece(piece: str) -> _Piece:
    rest = piece.lstrip("?")
    text = rest.rstrip("?")
    return _Piece(len(piece) - len(rest), text, len(rest) - len(text))


def _same(piece: str, text: str) -> bool:
    """Whether a piece matches a text of its length."""
    if "?" not in piece:
        return piece == text
    for sign, other in zip(piece, text, strict=True):  # noqa: SIM110 - `all` takes three times as long here
        if sign not in ("?", other):
            return False
    return True


def _find(text: str, name: str, start: int, end: int) -> int:
    """Where the text of a piece first fits inside name[start:end]; -1 when nowhere."""
    if "?" not in text:
        return name.find(text, start, end)  # linear: for long texts it is the two-way search
    width = _FIRST_WINDOW + len(text)
    while start + len(text) <= end:
        fits = _places(text, name[start : min(start + width + len(text) - 1, end)])
        if fits:
            return start + (fits & -fits).bit_length() - 1
        start += width
        width *= 2
    return -1


def _places(text: str, window: str) -> int:
    """The places of a window at which a text with `?` in it fits, as bits: bit 0 is the window's first character.

    One whole number holds where a literal stands in the window; shifted back by the literal's place in the text, it
    tells where the text could begin. So all places are tried at once, some sixty to a step of the processor.
    """
    fits = (1 << (len(window) - len(text) + 1)) - 1
    absent = dict.fromkeys(map(ord, window), "0")
    stands: dict[str, int] = {}
    for place, sign in enumerate(text):
        if sign == "?":
            continue
        if sign not in stands:
            stands[sign] = int(window[::-1].translate({**absent, ord(sign): "1"}), 2)
        fits &= stands[sign] >> place
        if not fits:
            break
    return fits
