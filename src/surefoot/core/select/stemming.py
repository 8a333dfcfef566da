"""The stem of an English word: what its plural, its verb forms and its nouns have in common.

Lighter than Porter's: one ending of the noun or verb is taken off, and as good for finding tools. Words that would meet
another of quite another meaning are kept (news, new). Source: spec/planning.md, section 15.
"""

from __future__ import annotations

_SHORTEST = 4
"""Letters below which a word has no endings."""
_KEPT = frozenset({"always", "lens", "news", "series", "species"})
_NO_PLURAL = ("ss", "us", "is")
_PLURAL_ES = ("sses", "xes", "ches", "shes", "zes")
_ENDINGS = {
    "t": (("ement", 3), ("ment", 3)),
    "n": (("ion", 3),),
    "g": (("ing", 3),),
    "d": (("ed", 3),),
    "y": (("edly", 3), ("ly", 3)),
    "r": (("er", 4), ("or", 4)),
}
"""By their last letter: an ending, and the letters that must be left. The first that fits is taken off."""
_DOUBLES_KEPT = "lsz"
_LONG = 7
"""Letters from which a final `at` is an ending: calculat(e, ion, or) and calcul, but not creat(e)."""


def stem(word: str) -> str:
    """The stem of a word in lower case; the word itself where it is short, or not in Latin letters."""
    if len(word) < _SHORTEST or word in _KEPT:
        return word
    if word.endswith("ies") and len(word) > _SHORTEST:
        word = word[:-3] + "y"
    elif word.endswith(_PLURAL_ES):
        word = word[:-2]
    elif word[-1] == "s" and not word.endswith(_NO_PLURAL):
        word = word[:-1]
    for ending, left in _ENDINGS.get(word[-1], ()):
        if word.endswith(ending) and len(word) - len(ending) >= left:
            word = word[: -len(ending)]
            if len(word) >= _SHORTEST and word[-1] == word[-2] and word[-1] not in _DOUBLES_KEPT:
                word = word[:-1]
            break
    if len(word) >= _SHORTEST and word[-1] == "e":
        word = word[:-1]
    if len(word) >= _LONG and word.endswith("at"):
        return word[:-2]
    return word[:-1] + "i" if len(word) >= _SHORTEST and word[-1] == "y" else word
