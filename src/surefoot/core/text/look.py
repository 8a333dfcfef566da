"""How a text looks and how it is compared: its normal form, whole words in it, and what is drawn alike or not at all.

A value is compared only whole: a name inside a longer word, a host inside a longer host prove nothing. Two texts look
alike when they have one skeleton: compatibility forms, letters of other scripts that are drawn the same, digits that
stand for letters, marks and separators taken away. Source: spec/guard.md, sections 4.4 and 4.5; the idea of a skeleton:
Unicode Technical Standard 39, section 4.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import cast

from surefoot.core.text.words import late, table

_CJK = late(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_DOT = late(r"(?<=[A-Za-z0-9-])[。．｡](?=[a-z]{2,24}(?![A-Za-z0-9]))")
"""A full stop of another script that is read as the dot of a host."""
_JOINTS = frozenset("-./\\@+%~")
_SIGNS = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "!": "l", "3": "e", "5": "s", "$": "s"})
_SEPARATORS = str.maketrans("", "", "_-. \t\n")
_LEAST_NEAR = 5
"""Letters below which names that differ by one are simply different."""


def without_format(text: str) -> str:
    """The text in NFKC, without format characters."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKC", text)
    hidden = {ord(c): None for c in set(plain) if unicodedata.category(c) == "Cf"}
    return plain.translate(hidden) if hidden else plain


def folded(text: str) -> tuple[str, Sequence[int]]:
    """A text as what opens or pays reads it, and the place of each character that is left; none if all kept theirs.

    Compatibility forms, dashes and spaces are those of ASCII, and signs that do not show are gone.
    """
    signs: dict[str, str] = {}  # the sign of ASCII for which a character stands, "" for one that does not show
    for c in filter(lambda c: not c.isascii(), set(text)):
        plain, category = unicodedata.normalize("NFKC", c), unicodedata.category(c)
        signs[c] = plain if len(plain) == 1 and plain.isascii() else c
        if category in ("Pd", "Zs") or c in "\u2212\u2043":
            signs[c] = " " if category == "Zs" else "-"
        elif category == "Cf":
            signs[c] = ""
    folded = _DOT.sub(".", text.translate({ord(c): sign for c, sign in signs.items() if sign}))
    hidden = frozenset(c for c, sign in signs.items() if not sign)
    if not hidden:
        return folded, ()
    places = [at for at, c in enumerate(text) if c not in hidden]
    return "".join(folded[at] for at in places), places


def normal_text(text: str) -> str:
    """A text as texts are compared: NFKC, no format characters, casefold, single spaces, outer quotes off."""
    if not text.isascii():
        text = without_format(text)
    return " ".join(text.casefold().split()).strip("\"'`“”‘’「」『』《》 ")


def hides(text: str) -> bool:
    """Whether a text holds characters that do not show."""
    return not text.isascii() and any(unicodedata.category(c) == "Cf" for c in text)


def is_chinese(text: str) -> bool:
    """Whether a text is all letters of a script without spaces."""
    return bool(text) and all(c.isalnum() and _CJK.match(c) for c in text)


def holds(text: str, part: str) -> bool:
    """Whether `part` stands in `text` in whole words; both in their normal form. Never inside a word."""
    return place_in(text, part) >= 0


def place_in(text: str, part: str) -> int:
    """Where `part` first stands in `text` in whole words, as in `holds`; -1 where it does not."""
    at = text.find(part) if part else -1
    while at >= 0:
        end = at + len(part)
        if (not at or _is_edge(text[at - 1], part[0])) and (end == len(text) or _is_edge(text[end], part[-1])):
            return at
        at = text.find(part, at + 1)
    return -1


def holds_token(text: str, part: str) -> bool:
    """Whether `part` stands in `text` in whole words, not as a piece of a path, a file name or a hyphenated word."""
    return next(places_in(text, part), -1) >= 0


def places_in(text: str, part: str) -> Iterator[int]:
    """Where `part` stands so in `text`."""
    at = text.find(part) if part else -1
    while at >= 0:
        end = at + len(part)
        if _is_end(text[max(0, at - 2) : at][::-1], part[0]) and _is_end(text[end : end + 2], part[-1]):
            yield at
        at = text.find(part, at + 1)


def _is_end(outside: str, inside: str) -> bool:
    """Whether a token ends between what is inside and what follows outside, read away from it."""
    if not outside or not _is_edge(outside[0], inside):
        return not outside
    is_joined = outside[0] in _JOINTS and outside[1:].isalnum()
    return not is_joined and not (inside in _JOINTS and outside[0].isalnum() and not _CJK.match(outside[0]))


def _is_edge(outside: str, inside: str) -> bool:
    """Whether a word ends between two neighbouring characters. Chinese has no such ends, so each character is one."""
    if not (outside.isalnum() or outside == "_") or not (inside.isalnum() or inside == "_"):
        return True
    return bool(_CJK.match(outside) or _CJK.match(inside))


@cache
def _confusables() -> Mapping[int, str]:
    """What each character is drawn like, by the table of UTS 39; some are of ASCII themselves ("1" like "l")."""
    lines = (line.partition(":") for line in cast("str", table("lookalikes")["confusables"]).split("\n"))
    drawn = (("".join(chr(int(code, 16)) for code in to.split("+")), codes) for to, _, codes in lines if to)
    return {int(code, 16): to for to, codes in drawn for code in codes.split()}


@cache
def _mistaken() -> Mapping[int, str]:
    """The table without ASCII and with the letters that it keeps apart."""
    more = cast("Mapping[str, str]", table("lookalikes")["more"])
    others = {int(code, 16): letter for letter, codes in more.items() for code in codes.split()}
    return {code: to for code, to in _confusables().items() if code >= _ASCII} | others


_ASCII = 128


@lru_cache(maxsize=4096)
def _letters(text: str) -> str:
    """A text with each letter as it is drawn: without marks and format characters, other scripts as Latin.

    Capitals are looked up before they are made small: a capital may be drawn like another letter than its small one.
    """
    plain = text
    for _ in range(0 if text.isascii() else 2):
        split = unicodedata.normalize("NFKD", plain).translate(_mistaken())
        split = unicodedata.normalize("NFKD", split.casefold())
        plain = "".join(c for c in split if unicodedata.category(c) not in ("Cf", "Mn"))
    return plain.casefold()


def skeleton(text: str) -> str:
    """What is left of a name when all that the eye may miss is taken away."""
    return _letters(text).translate(_SIGNS).replace("rn", "m").replace("vv", "w").translate(_SEPARATORS)


def is_twin(one: str, other: str) -> bool:
    """Whether two different texts are drawn alike through letters of other scripts or invisible ones.

    What differs within ASCII alone ("1" for "l") and separators are no twins: accounts and ids differ by just these.
    """
    short, long = sorted((len(one), len(other)))
    if (one.isascii() and other.isascii()) or long > _MOST_WIDER * short:
        return False
    if _pairs(one.casefold()) == _pairs(other.casefold()):
        return False
    return _pairs(_letters(one)) == _pairs(_letters(other))


_MOST_WIDER = 8


def _pairs(text: str) -> str:
    """A small text with one sign for those of ASCII that are drawn alike."""
    return text.replace("rn", "m").translate(_LIKE_L)


_LIKE_L = str.maketrans("1|i0", "lllo")


def is_near(one: str, other: str) -> bool:
    """Whether two names can be mistaken for each other: one skeleton, or one letter apart."""
    short, long = sorted((skeleton(one), skeleton(other)), key=len)
    if short == long or len(short) < _LEAST_NEAR or len(long) - len(short) > 1:
        return short == long
    same = next((at for at, letter in enumerate(short) if letter != long[at]), len(short))
    return short[same + 1 :] == long[same + 1 :] if len(short) == len(long) else short[same:] == long[same + 1 :]


def in_full(text: str) -> str:
    """A text on one line with nothing hidden: invisible and control characters are spelled out, so are look-alikes.

    A letter that is not ASCII in a text that is otherwise ASCII is told by its code point. A run of characters that do
    not show is told by its length, so that it pushes nothing out of sight.
    """
    if text.isascii() and text.isprintable() and _GAP not in text:
        return text
    has_ascii_letters = any(c.isascii() and c.isalpha() for c in text)
    parts: list[str] = []
    at = 0
    for run in _REPEATED.finditer(text):
        character, times = run[1], len(run[0])
        spelled = _spelled(character, in_ascii=has_ascii_letters)
        if spelled != character or character == " ":
            parts += [_spelled(c, in_ascii=has_ascii_letters) for c in text[at : run.start()]]
            parts.append(f"<{times} spaces>" if character == " " else f"<{times} × {spelled[1:-1]}>")
            at = run.end()
    parts += [_spelled(c, in_ascii=has_ascii_letters) for c in text[at:]]
    return "".join(parts)


_GAP = " " * 8
_REPEATED = late(r"(.)\1{7,}", re.DOTALL)
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that are drawn as nothing."""


def _spelled(character: str, *, in_ascii: bool) -> str:
    if character.isascii():
        return character if character.isprintable() else f"<{ord(character):02X}>"
    category = unicodedata.category(character)
    if category[0] in "CZ" or category == "Mn" or character in _BLANK:
        return f"<U+{ord(character):04X}>"
    if in_ascii and category[0] in "LN":  # it may be read as a letter of ASCII: by the table, or its script has many
        drawn = _confusables().get(ord(character), "")
        is_wide = "\uff00" <= character <= "\uffef"
        of_likes = unicodedata.name(character, "").split(" ")[0] in ("CYRILLIC", "GREEK")
        if of_likes or (not is_wide and drawn.isascii() and drawn.isalnum()):
            return f"{character}<U+{ord(character):04X}>"
    return character
