"""Names and addresses that are made to be taken for others.

Two texts look alike when they have one skeleton: compatibility forms, letters of other scripts that are drawn the same,
digits that stand for letters, marks and separators taken away. Source: spec/guard.md, sections 4.4 and 4.5; the idea of
a skeleton: Unicode Technical Standard 39, section 4. The table holds the letters that a Latin word can be faked with.
"""

from __future__ import annotations

import unicodedata

_PAIRS = (
    "0430a 0435e 043eo 0440p 0441c 0443y 0445x 0456i "
    "0458j 0455s 04bbh 0501d 051bq 051dw 0261g 0251a 03bfo "
    "03b1a 03c1p 03bdv 03b9i 03bak 03c4t 03c5u 03b2b "
    "03b5e 03b7n 03c9w 03f2c 04cfl 217cl 043ak 043cm 043dh "
    "0442t 0432b 0433r 043fn 0438u 044cb 0437e 0131i "
    "0142l 00f8o 0111d 0127h 1d00a 1d0fo a731s 03c7x 03b3y "
    "03b6z 03bcu 03c3o 0581g 0585o 0578n 057du 0570h"
)
"""Code point in hex, and the Latin letter that it is drawn like."""

_DRAWN_LIKE = {int(pair[:-1], 16): pair[-1] for pair in _PAIRS.split()}
_SIGNS = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "!": "l", "3": "e", "5": "s", "$": "s"})
_SEPARATORS = str.maketrans("", "", "_-. \t\n")


def letters(text: str) -> str:
    """A text with each letter as it is drawn: without marks and format characters, other scripts as Latin."""
    plain = text.casefold()
    if not plain.isascii():
        split = unicodedata.normalize("NFKD", plain)
        plain = "".join(c for c in split if unicodedata.category(c) not in ("Cf", "Mn")).translate(_DRAWN_LIKE)
    return plain


def skeleton(text: str) -> str:
    """What is left of a name when all that the eye may miss is taken away."""
    return letters(text).translate(_SIGNS).replace("rn", "m").replace("vv", "w").translate(_SEPARATORS)


def is_twin(one: str, other: str) -> bool:
    """Whether two different texts are drawn alike through letters of other scripts or invisible ones.

    Digits for letters and separators are no twins here: accounts and ids differ by just these.
    """
    if one.isascii() and other.isascii():
        return False
    return one.casefold() != other.casefold() and letters(one) == letters(other)


def is_near(one: str, other: str) -> bool:
    """Whether two names can be mistaken for each other: one skeleton, or one letter apart."""
    a, b = skeleton(one), skeleton(other)
    return a == b or (min(len(a), len(b)) >= _LEAST_NEAR and _one_edit(a, b))


_LEAST_NEAR = 5
"""Letters below which names that differ by one are simply different."""


def _one_edit(a: str, b: str) -> bool:
    if abs(len(a) - len(b)) > 1:
        return False
    short, long = sorted((a, b), key=len)
    same = next((at for at, letter in enumerate(short) if letter != long[at]), len(short))
    return short[same + 1 :] == long[same + 1 :] if len(short) == len(long) else short[same:] == long[same + 1 :]
