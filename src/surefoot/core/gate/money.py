"""The sums of money of a call: how much, and in which currency. A quantity, a count and a share are none."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from surefoot.core.gate import name_words
from surefoot.core.gate.forms import number
from surefoot.core.gate.late import Late
from surefoot.core.gate.stems import stems, words_of_name
from surefoot.types.dataclass import dataclass
from surefoot.types.guard import Role

_COUNTS = stems(name_words.QUANTITY_WORDS)
_PRICES = stems(name_words.PRICE_WORDS)
_CURRENCIES = frozenset(name_words.CURRENCIES.split())
_WORD = Late(r"[^\W\d_]+|[$€£¥₹]")


@dataclass(frozen=True, slots=True)
class Sum:
    """An amount, None where it cannot be read, and the currencies of which it may be; none where nobody says.

    `times` is how often it may be meant: the quantity beside a price.
    """

    amount: Decimal | None
    currencies: frozenset[str] = frozenset()
    times: Decimal = Decimal(1)


def sums_of(values: Iterable[tuple[str, Role, object]]) -> tuple[Sum, ...]:
    """The sums of money among the named values of a call."""
    given = [(stems(words_of_name(name)), role, str(value)) for name, role, value in values]
    named = frozenset(one for words, _, text in given if "currency" in words for one in currencies_in(text) or {text})
    amounts = [(words, text) for words, role, text in given if role == "amount"]
    counts = [_decimal(text) for words, text in amounts if not words.isdisjoint(_COUNTS)]
    times = max((one for one in counts if one is not None), default=Decimal(1))
    return tuple(
        Sum(
            _decimal(text),
            currencies_in(text) or named,
            Decimal(1) if words.isdisjoint(_PRICES) else max(times, Decimal(1)),
        )
        for words, text in amounts
        if words.isdisjoint(_COUNTS)
    )


def currencies_in(text: str) -> frozenset[str]:
    """The currencies, by their codes of ISO 4217, that a text names; the sign of one may stand for several."""
    found: set[str] = set()
    for word in _WORD.findall(text):
        code = word.upper()
        found.update(
            (code,)
            if code in _CURRENCIES
            else name_words.CURRENCY_NAMES.get(word.lower().removesuffix("s"), "").split()
        )
    return frozenset(found)


def _decimal(text: str) -> Decimal | None:
    try:
        value = Decimal(number(text))
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
