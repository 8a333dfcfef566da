"""Which tools may be registered at all: one name, one tool, and a name that is what it looks like.

A name can be made to pass for another: by characters that show nothing or steer how others are shown, by letters of
another script, by another form of the same characters. Such a tool is dropped before any pattern is asked.

Source: spec/primitives.md, section 1.4; what is one script: Unicode Technical Standard 39, section 5.1.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from surefoot.types.errors import ConfigError
from surefoot.types.profile import Dropped
from surefoot.types.tools import ToolSpec

MOST_SHOWN_CHARS = 60
MOST_MARKS_IN_A_ROW = 30
"""The most combining marks in a row, as in Unicode's Stream-Safe Text Format (Standard Annex 15, section 13)."""

_SHOWS_NOTHING = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0").union(
    map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0))
)
"""Letters and marks that are counted as printable and show nothing: fillers, joiners, variation selectors."""

_SYSTEMS: dict[str, frozenset[str]] = {
    "CJK": frozenset({"Chinese", "Japanese", "Korean"}),
    "IDEOGRAPHIC": frozenset({"Chinese", "Japanese", "Korean"}),
    "BOPOMOFO": frozenset({"Chinese"}),
    "HIRAGANA": frozenset({"Japanese"}),
    "KATAKANA": frozenset({"Japanese"}),
    "KATAKANA-HIRAGANA": frozenset({"Japanese"}),
    "HANGUL": frozenset({"Korean"}),
}
"""First word of a letter's name in Unicode -> the ways of writing that it belongs to, where these are not that word.

Ways of writing that use several scripts count as one, as Unicode counts them.
"""


def register(tools: Sequence[ToolSpec]) -> tuple[tuple[ToolSpec, ...], tuple[Dropped, ...]]:
    """The tools that may be registered, their names in NFC, and those that may not, under the names they came with.

    Both in the order given. Raises `ConfigError` when a local tool has a name that another tool already has: that is a
    mistake in the program, or somebody else's tool in the place of ours.
    """
    if _are_plain([tool.name for tool in tools]):
        return tuple(tools), ()
    kept: dict[str, ToolSpec] = {}
    dropped: list[Dropped] = []
    for tool in tools:
        name = canonical(tool.name)
        fault = _fault(name)
        if not fault and name in kept:
            if tool.origin == "local":
                raise ConfigError("tools", tool.name, "another tool already has this name; give one of them another")
            fault = "another tool already has this name"
        if fault:
            dropped.append((tool.name, "registration", fault))
        else:
            kept[name] = tool if name == tool.name else replace(tool, name=name)
    return tuple(kept.values()), tuple(dropped)


def canonical(text: str) -> str:
    """A name or a pattern in NFC. Too many combining marks in a row become one sign that no name may have.

    Ordering such marks takes time that grows with the square of their number, and anybody may choose a name.
    """
    if text.isascii():
        return text
    if any(map(unicodedata.combining, text)):  # soon asked, and mostly none is
        for mark, run in groupby(text, _is_mark):
            if mark and sum(1 for _ in run) > MOST_MARKS_IN_A_ROW:
                return "\0"
    return unicodedata.normalize("NFC", text)


def shown(text: str) -> str:
    """A name or a pattern in quotes, on one line, escaped and cut."""
    return repr(f"{text[:MOST_SHOWN_CHARS]}…" if len(text) > MOST_SHOWN_CHARS else text)


def _are_plain(names: Sequence[str]) -> bool:
    """Whether all names are printable ASCII without a blank, which is in NFC and of one script, and no two the same.

    So it mostly is, and this is soon asked.
    """
    text, unique = "".join(names), set(names)
    return text.isascii() and text.isprintable() and " " not in text and len(unique) == len(names) and "" not in unique


def _fault(name: str) -> str:
    """Why a name in NFC may not be registered; "" when it may."""
    if not name:
        return "the name is empty"
    if not name.isprintable() or " " in name or not (name.isascii() or _SHOWS_NOTHING.isdisjoint(name)):
        return "the name holds white space, or a character that shows nothing or steers how others are shown"
    if not name.isascii() and not _is_of_one_script(name):
        return "the letters of the name come from more than one script"
    return ""


def _is_of_one_script(name: str) -> bool:
    scripts = set(map(_script, name)).difference(("",))
    systems = [_SYSTEMS.get(script, frozenset({script})) for script in scripts]
    return not systems or bool(systems[0].intersection(*systems))


@lru_cache(4096)
def _script(character: str) -> str:
    """The first word of a letter's name: its script; "" for other characters.

    Letters that are named otherwise count as scripts of their own.
    """
    return unicodedata.name(character, character).partition(" ")[0] if character.isalpha() else ""


def _is_mark(character: str) -> bool:
    return unicodedata.combining(character) != 0
