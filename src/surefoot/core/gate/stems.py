"""Words in the form in which they are compared: the stem of an English word, and the words of a name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from surefoot.core.gate.late import Late

_IRREGULAR = {
    form: base
    for base, forms in {
        "send": "sent",
        "pay": "paid",
        "repay": "repaid",
        "buy": "bought",
        "sell": "sold",
        "write": "wrote written",
        "rewrite": "rewrote rewritten",
        "tell": "told",
        "give": "gave given",
        "take": "took taken",
        "make": "made",
        "do": "did done does",
        "go": "went gone goes",
        "get": "got gotten",
        "find": "found",
        "lend": "lent",
        "spend": "spent",
        "hold": "held",
        "know": "knew known",
        "see": "saw seen",
        "build": "built",
        "keep": "kept",
        "withdraw": "withdrew withdrawn",
        "choose": "chose chosen",
        "throw": "threw thrown",
        "have": "has had",
        "is": "are was were been",
        "id": "ids",
        "person": "persons",
        "child": "children",
        "people": "peoples",
    }.items()
    for form in forms.split()
}
_VOWEL = Late("[aeiouy]")
_SILENT_E = Late(r"(?:[^aeiou][aeiou][^aeiouwxy]|[aeiou][^aeiouwxy])\Z")
_DOUBLED = Late(r"([b-df-hj-np-tv-xz])\1\Z")
_WORD = Late(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The stem of an English word, in lower case: one for its plural and the forms in -s, -ed and -ing.

    It is a key for comparing, not always a word ("creat"). A word of another script comes back as it is.
    """
    word = word.lower().replace("’", "'").removesuffix("'s").strip("'")
    if not word.isascii() or len(word) < 3:  # noqa: PLR2004  # too short for an ending
        return word
    word = _IRREGULAR[word] if word in _IRREGULAR else _without_ending(_without_plural(word))
    if len(word) > 4 and word.endswith("e"):  # noqa: PLR2004  # what is left has four letters at least
        word = word[:-1]
    return word[:-1] if len(word) > 3 and _DOUBLED.search(word) else word  # noqa: PLR2004  # "add" stays


def _without_plural(word: str) -> str:
    if not word.endswith("s") or len(word) < 4 or word.endswith(("ss", "us", "is")):  # noqa: PLR2004  # "gas", "pass"
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]  # noqa: PLR2004  # "ties"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]


def _without_ending(word: str) -> str:
    if word.endswith("ied"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]  # noqa: PLR2004  # "died"
    left = word[:-3] if word.endswith("ing") else word[:-2] if word.endswith("ed") else ""
    if len(left) < 2 or word.endswith("eed") or not _VOWEL.search(left):  # noqa: PLR2004  # "need", "bring"
        return word
    if len(left) > 3 and _DOUBLED.search(left):  # noqa: PLR2004  # "getting", not "adding"
        return left[:-1]
    return left + "e" if len(left) <= 3 and _SILENT_E.match(left) else left  # noqa: PLR2004  # "moving", "using"


def stems(words: str | Iterable[str]) -> frozenset[str]:
    """The stems of words, given one by one or as a text with spaces between them."""
    return frozenset(stem(word) for word in (words.split() if isinstance(words, str) else words))


def words_of_name(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: split where the case changes and at all that is no letter."""
    return tuple(word.lower() for word in _WORD.findall(name))
