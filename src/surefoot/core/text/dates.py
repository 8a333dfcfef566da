"""The days that a text names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from surefoot.core.text.words import late

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
