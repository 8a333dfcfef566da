"""How much of each content fits: fair shares of a budget of tokens. Source: spec/primitives.md, 3.8."""

from __future__ import annotations

from collections.abc import Sequence

BYTES_A_TOKEN = 4


def tokens_of(size: int) -> int:
    """How many tokens so many bytes of UTF-8 count for: a quarter, rounded up."""
    return -(-size // BYTES_A_TOKEN)


def shares(needs: Sequence[int], budget: int) -> tuple[int, ...]:
    """How many tokens each gets of a budget. Nobody gets more than needed; together it is never more than the budget.

    Whoever needs no more than an equal share of what is left gets all of it, which leaves more for the others; when
    nobody does, each gets the share, and what it leaves over goes one each in order.
    """
    given = [0] * len(needs)
    waiting = list(range(len(needs)))
    left = budget
    while waiting:
        share = left // len(waiting)
        content = [at for at in waiting if needs[at] <= share]
        if not content:
            over = left - share * len(waiting)
            for place, at in enumerate(waiting):
                given[at] = share + (place < over)
            break
        for at in content:
            given[at] = needs[at]
            left -= needs[at]
        waiting = [at for at in waiting if needs[at] > share]
    return tuple(given)


def cut(text: str, tokens: int) -> str:
    """As much from the beginning as so many tokens hold, without a torn character."""
    data = text.encode()
    most = tokens * BYTES_A_TOKEN
    return text if len(data) <= most else data[:most].decode(errors="ignore")
