"""The words of general language: the lexicon, stems, names split into words, days, and patterns compiled when used.

The lexicon is data, read at first use, so that an agent without a guard pays for none. A glob is a pattern of names:
`*` is any run of characters, also empty; `?` exactly one; everything else is itself. Not `fnmatch`, which knows classes
and goes by the case rules of the system. Names and globs are compared by code points: bring both into the same form of
Unicode first. Source: spec/primitives.md, section 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from pkgutil import get_data
from typing import Any, cast

_LANGUAGES = ("en", "zh")
_PLACEHOLDER = re.compile(r"\{([a-z][a-z_.]+)(\|?)\}")
_VOWEL = re.compile("[aeiouy]")
_SILENT_E = re.compile(r"(?:[^aeiou][aeiou][^aeiouwxy]|[aeiou][^aeiouwxy])\Z")
_DOUBLED = re.compile(r"([b-df-hj-np-tv-xz])\1\Z")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")


@cache
def table(name: str) -> dict[str, Any]:
    """What `data/NAME.toml` holds, read at the first use. The file decides the types; nobody may change the value."""
    import tomllib  # noqa: PLC0415  # a run that looks nothing up does not pay for the parser

    return tomllib.loads(cast("bytes", get_data("surefoot", f"data/{name}.toml")).decode())


class Late:
    """What `late` gives."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, method: str) -> object:
        pattern, flags = self._given
        compiled = re.compile(_filled(pattern), flags)
        for name in ("search", "match", "fullmatch", "finditer", "findall", "sub"):
            setattr(self, name, getattr(compiled, name))
        return getattr(compiled, method)


@cache
def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern compiled at its first use. `{name}` stands for that entry's `pattern`, `{name|}` for its words."""
    return cast("re.Pattern[str]", Late(pattern, flags))


@cache
def phrase(name: str, *, is_last: bool = False) -> re.Pattern[str]:
    """What the lexicon has under a name, in any case; where it `is_last`, only what ends a text."""
    return re.compile(f"(?:{pattern(name)})" + r"\Z" * is_last, re.IGNORECASE)


@cache
def entries(name: str) -> tuple[str, ...]:
    """What the lexicon has under a name, such as "phrases.delete", in all languages."""
    found: list[str] = []
    for language in _LANGUAGES:
        here: object = table(f"lexicon.{language}")
        for part in name.split("."):
            here = cast("Mapping[str, object]", here).get(part, ()) if isinstance(here, dict) else ()  # TOML
        found += [here] if isinstance(here, str) else cast("Iterable[str]", here)
    return tuple(found)


@cache
def pattern(name: str) -> str:
    """The alternation of what the lexicon has under a name, as a regular expression without a group around it."""
    return "|".join(_filled(text.replace("\n", "")) for text in entries(name))


def _filled(text: str) -> str:
    return _PLACEHOLDER.sub(lambda found: "|".join(words(found[1])) if found[2] else pattern(found[1]), text)


@cache
def words(name: str) -> tuple[str, ...]:
    """The words that the lexicon has under a name, as they stand there."""
    return tuple(" ".join(entries(name)).split())


@cache
def word_set(name: str) -> frozenset[str]:
    """The same as a set."""
    return frozenset(words(name))


@cache
def stems_of(*names: str) -> frozenset[str]:
    """The stems of the words that the lexicon has under some names."""
    return frozenset(stem(word) for name in names for word in words(name))


@cache
def rows(*names: str) -> Mapping[str, tuple[str, ...]]:
    """The rows of tables of the lexicon in which a word stands, by its stem, in the order of the first table."""
    order = dict.fromkeys(row for name in names for row in cast("Mapping[str, object]", table("lexicon.en")[name]))
    found: dict[str, tuple[str, ...]] = {}
    for row in order:
        for key in stems_of(*(f"{name}.{row}" for name in names)):
            found[key] = (*found.get(key, ()), row)
    return found


@cache
def _base_forms() -> Mapping[str, str]:
    listed = cast("Mapping[str, str]", table("lexicon.en")["irregular"])
    return {form: base for base, forms in listed.items() for form in forms.split()}


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The stem of an English word, in lower case: one for its plural and the forms in -s, -ed and -ing.

    It is a key for comparing, not always a word ("creat"). A word of another script comes back as it is.
    """
    word = word.lower().replace("’", "'").removesuffix("'s").strip("'")
    if not word.isascii() or len(word) < 3:  # noqa: PLR2004  # too short for an ending
        return word
    word = _base_forms().get(word) or _without_ending(_without_plural(word))
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


def stems(texts: Iterable[str]) -> frozenset[str]:
    """The stems of words."""
    return frozenset(map(stem, texts))


@lru_cache(maxsize=4096)
def words_of_name(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: split where the case changes and at all that is not a letter."""
    return tuple(word.lower() for word in _WORD.findall(name))


@lru_cache(maxsize=4096)
def stems_of_name(name: str) -> frozenset[str]:
    """The stems of the words of a name."""
    return stems(words_of_name(name))


MOST_COMPARED = 500
"""Names that another is compared with, so that a refusal costs some milliseconds at most."""
_MOST_COMPARED_CHARS, _NEARNESS = 60, 0.5


def nearest(name: str, among: Sequence[str], most: int) -> list[str]:
    """The names that another may have been meant for, the nearest first."""
    by_cut = {one[:_MOST_COMPARED_CHARS]: one for one in among[:MOST_COMPARED]}
    close = get_close_matches(name[:_MOST_COMPARED_CHARS], list(by_cut), n=most, cutoff=_NEARNESS)
    return [by_cut[cut] for cut in close]


def matched(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each pattern the names that it matches; for "" none. O(name × pattern) at most, O(name) without a `?`."""
    known = tuple(dict.fromkeys(names))
    found: dict[str, frozenset[str]] = {}
    for pattern in patterns:
        expression = _expression(pattern)
        found[pattern] = frozenset(name for name in known if pattern and expression.fullmatch(name))
    return found


def fits(pattern: str, name: str) -> bool:
    """Whether a glob matches a name."""
    return bool(pattern) and _expression(pattern).fullmatch(name) is not None


@lru_cache(256)
def _expression(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression that never tries a piece between two stars at a second place.

    The first place where a piece fits leaves the most room for what follows, so it is the only one that counts.
    """
    first, *inner = ("".join("." if sign == "?" else re.escape(sign) for sign in piece) for piece in pattern.split("*"))
    between = "".join(f"(?>.*?{piece})" for piece in inner[:-1] if piece)
    return re.compile(f"{first}{between}{f'.*{inner[-1]}' if inner else ''}", re.DOTALL)


Day = tuple[int, int, int]
"""Month, day, and year or 0."""

_DATE_NUMERIC = late(r"(?:(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|(\d{1,2})[/.](\d{1,2})[/.](\d{4}))(?!\d)")
_DATE_CHINESE = late(r"(?:(\d{4})\s*年\s*)?(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)"
)
_LONGEST_MONTH = 15
_DATE_DAY_FIRST = late(rf"(\d{{1,2}})(?:st|nd|rd|th)?\s{{1,3}}(?:of\s)?{_MONTH}\b\.?(?:,?\s(\d{{4}}))?", re.IGNORECASE)
_DATE_RANGE = late(
    r"(\d{1,2})(?:st|nd|rd|th)?\s?(?:to|until|till|through|and|-|\u2013)\s?(?:the\s)?(?=\d)", re.IGNORECASE
)
_DATE_MONTH_FIRST = late(
    rf"(?<!\w){_MONTH}\.?\s(?:the\s)?(\d{{1,2}})(?:st|nd|rd|th)?(?!\d|:\d)(?:,?\s(\d{{4}}))?", re.IGNORECASE
)
_RUN_OF_DIGITS = late(r"\d+")


def dates_of(text: str) -> tuple[Day, ...]:
    """The days that a text names, as (month, day, year or 0)."""
    return tuple(day for day, _, _ in dates_in(text))


@lru_cache(maxsize=2)
def dates_in(text: str) -> tuple[tuple[Day, int, int], ...]:
    """The days of a text with their places; looks only around digits."""
    found: list[tuple[Day, int, int]] = []
    until = 0
    for run in _RUN_OF_DIGITS.finditer(text):
        at = run.start()
        if at < until or run.end() - at > 4:  # noqa: PLR2004  # a year is the longest number of a date
            continue
        for m, month, day, year in _dates_at(text, at):
            if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:  # noqa: PLR2004  # the calendar
                found.append(((int(month), int(day), int(year or 0)), m.start(), m.end()))
                until = m.end()
    return tuple(found)


def _dates_at(text: str, at: int) -> Iterator[tuple[re.Match[str], str, str, str | None]]:
    """What a number may begin or stand in: the match, the month, the day, the year."""
    if m := _DATE_NUMERIC.match(text, at):
        if m[1]:
            yield m, m[2], m[3], m[1]
        else:  # day and month come in either order
            yield m, m[4], m[5], m[6]
            yield m, m[5], m[4], m[6]
    elif m := _DATE_CHINESE.match(text, at):
        yield m, m[2], m[3], m[1]
    elif (m := _DATE_DAY_FIRST.match(text, at)) and not text[at - 1 : at].isalnum():
        yield m, _month(m[2]), m[1], m[3]
    elif (m := _DATE_RANGE.match(text, at)) and (last := _DATE_DAY_FIRST.match(text, m.end())):
        yield m, _month(last[2]), m[1], last[3]
    elif text[at - 1 : at].isspace() and (text[at - 2 : at - 1].isalpha() or text[at - 2 : at - 1] == "."):
        m = _DATE_MONTH_FIRST.search(text, max(0, at - _LONGEST_MONTH), at + 16)
        if m is not None and m.start(2) == at:
            yield m, _month(m[1]), m[2], m[3]


def _month(name: str) -> str:
    return str(_MONTHS.index(name[:3].casefold()) + 1)


def same_day(one: Day, other: Day) -> bool:
    """Whether two days may be the same one, where the year need not be said."""
    return one[:2] == other[:2] and (not other[2] or not one[2] or one[2] == other[2])


def day_number(day: Day) -> int:
    """The number of a day in the Gregorian calendar, so that days can be counted; 0 for one without a year."""
    month, of_month, year = day
    if not year:
        return 0
    shifted = year - (month <= 2)  # noqa: PLR2004  # the year begins in March, so that a leap day stands last
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + of_month
    return 365 * shifted + shifted // 4 - shifted // 100 + shifted // 400 + of_year
