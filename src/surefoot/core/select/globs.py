"""Which names a glob matches: `*` is any run of characters, also empty; `?` exactly one; everything else is itself.

A pattern is split at its stars. The first piece has to begin the name and the last one to end it; each piece between is
looked for behind the one before, and the first place where it fits leaves the most room for the rest, so nothing is
ever tried again. Not `fnmatch`, which knows classes and goes by the case rules of the system. Names and patterns are
compared by code points: bring both into the same form of Unicode first.

Names of the usual length are put into one text and looked for by one regular expression a pattern, which is many times
faster than to ask each name. It looks for a piece place by place, which longer texts would make slow; they are asked
one by one, in a way that is linear but for a piece with a `?` between literals. That one is tried at all places at once
(`_places`), which is so cheap that 100,000 characters in a name of 200,000 take a third of a second.

Source: spec/primitives.md, section 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_USUAL_NAME = 64
_USUAL_PATTERN = 64
_TRIED_AGAIN = 2
_BETWEEN = "\0"
"""Stands between the names in their text; no registered name holds it."""
_ONE = f"[^{_BETWEEN}]"

_FIRST_WINDOW = 64
_WILDCARDS = re.compile(r"[*?]+")


def matched(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each pattern the names that it matches. The pattern "" matches none.

    Costs O(characters of the names) a pattern. One name of any length against one pattern without `?` costs O(name +
    pattern).
    """
    known = tuple(dict.fromkeys(names))
    usual = [name for name in known if len(name) <= _USUAL_NAME and _BETWEEN not in name]
    others = [] if len(usual) == len(known) else list(set(known).difference(usual))
    text = _BETWEEN.join(("", *usual, ""))
    return {pattern: frozenset(_matching(pattern, known, text, others)) for pattern in patterns}


def _matching(pattern: str, known: Sequence[str], text: str, others: Sequence[str]) -> Iterable[str]:
    """The names that a pattern matches; `text` holds the usual ones of those known, `others` are the rest."""
    literals = _WILDCARDS.split(pattern)
    literal = max(literals, key=len)
    if literal not in text and not others:  # soon asked
        return ()
    if len(literals) == 1:
        return (pattern,) if pattern and pattern in known else ()
    if pattern == f"*{literal}*":
        return [name for name in known if literal in name]
    if len(pattern) <= _USUAL_PATTERN and _BETWEEN not in pattern:
        return (*re.findall(_expression(pattern), text), *_fitting(pattern, others))
    return _fitting(pattern, known)


def _expression(pattern: str) -> str:
    """What finds the names in their text, by trying places from the last to the first, as it is soonest done.

    Only the last two pieces may be tried at another place again: no name takes longer than the square of its length.
    """
    first, *pieces = (
        "".join(_ONE if sign == "?" else re.escape(sign) for sign in piece) for piece in pattern.split("*")
    )
    is_open = pieces[-1:] == [""]
    pieces = [piece for piece in pieces if piece]
    earlier, later = pieces[:-_TRIED_AGAIN], pieces[-_TRIED_AGAIN:]
    found = "".join(f"(?>{_ONE}*?{piece})" for piece in earlier) + "".join(f"{_ONE}*{piece}" for piece in later)
    return f"{_BETWEEN}({first}{found}{f'{_ONE}*+' if is_open else ''})(?={_BETWEEN})"


def _fitting(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a pattern matches, each asked by itself."""
    shape = _shape(pattern)
    return [name for name in names if shape.fits(name)]


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
