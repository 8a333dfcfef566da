"""Numbers as people write them: in digits, groups, scales, and words of two languages. Source: spec/guard.md, 4.5."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import cache

from surefoot.core.text.words import late, words

_SIGN = late(r"[a-z]|[零一二三四五六七八九十百千万亿两]")
_TOKEN = late(r"\d+(?:,\d{3})*(?:\.\d+)?|[a-z]+|[零一二三四五六七八九十百千万亿两]")
_DECIMAL_COMMA = late(r"(\D*)(\d+|\d{1,3}(?:\.\d{3})+),(\d{1,2})(?!\d)")
_POINTS_IN_GROUPS = late(r"[1-9]\d{0,2}(?:\.\d{3})+")
_DIGITS = {**dict(zip("零一二三四五六七八九", range(10), strict=True)), "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_PARTS = {"hundred": 100, "dozen": 12}
_WHOLES = {"k": 3, "thousand": 3, "万": 4, "m": 6, "million": 6, "bn": 9, "billion": 9, "trillion": 12}
"""Powers of ten."""
_NOTHING = Decimal(0)


def number(text: str) -> str:
    """The exact decimal of a number, without currency and group marks: "1,200.50" is "1200.5", "5k" is "5000".

    A comma before one or two last digits is that of a decimal: "1.200,50" is "1200.5". Words count: "fifty" is "50".
    """
    if "," in text and (m := _DECIMAL_COMMA.match(text)):
        text = f"{m[1]}{m[2].replace('.', '')}.{m[3]}{text[m.end() :]}"
    elif text.count(".") > 1:
        text = _POINTS_IN_GROUPS.sub(lambda m: m[0].replace(".", ""), text)
    small = text.lower()
    said = _in_words(small) if _SIGN.search(small) else None
    try:
        if said is None:
            said = Decimal(re.sub(r"[^0-9.eE+-]", "", re.sub(r"[A-Za-z]{3}$", "", text)) or text)
        value = said.normalize()
    except InvalidOperation:
        return text
    return format(value, "f") if abs(value.adjusted()) < 40 else str(value)  # noqa: PLR2004  # no longer written out


def readings(text: str) -> tuple[str, ...]:
    """What a number in the words may mean: "1.200" is 1200 to some readers and 1.2 to others."""
    whole = number(text.replace(".", "")) if _POINTS_IN_GROUPS.fullmatch(text) else ""
    return tuple(dict.fromkeys((number(text), whole) if whole else (number(text),)))


@cache
def _values() -> Mapping[str, int]:
    tens = {word: 10 * at for at, word in enumerate(words("number_tens"), 2)}
    return {**{word: at for at, word in enumerate(words("number_units"), 1)}, **tens}


def _in_words(text: str) -> Decimal | None:
    """The value of a number that holds words or scales, in lower case; None where it holds none of them."""
    whole, part, digit, unit, is_said = _NOTHING, _NOTHING, _NOTHING, 1, False
    for word in _TOKEN.findall(text):
        here = part + digit
        if word[0].isdecimal():
            digit = Decimal(word.replace(",", ""))
            continue
        if word in _DIGITS:
            digit, unit = Decimal(_DIGITS[word]), unit if word != "零" else 1
        elif word in _values():
            part += _values()[word]
        elif word in _UNITS:
            unit = _UNITS[word]
            part, digit = part + (digit or 1) * unit, _NOTHING
        elif word in _PARTS:
            part, digit = (here or 1) * _PARTS[word], _NOTHING
        elif word in _WHOLES:
            unit = 10 ** _WHOLES[word]
            whole, part, digit = whole + (here or 1) * unit, _NOTHING, _NOTHING
        elif word == "亿":
            unit = 10**8
            whole, part, digit = (whole + here or 1) * unit, _NOTHING, _NOTHING
        else:
            continue
        is_said = True
    if not is_said:
        return None
    is_short = digit < 10 and digit == int(digit)  # noqa: PLR2004  # 三百五 is 350
    found = whole + part + digit * (unit // 10 if unit > 1 and is_short else 1)
    return -found if text.lstrip().startswith("-") else found
