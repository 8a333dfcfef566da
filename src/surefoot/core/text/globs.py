"""Which names a glob matches: `*` is any run of characters, also empty; `?` exactly one; everything else is itself.

Not `fnmatch`, which knows classes and goes by the case rules of the system. Names and patterns are compared by code
points: bring both into the same form of Unicode first. Source: spec/primitives.md, section 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


def matched(patterns: Iterable[str], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each pattern the names that it matches. The pattern "" matches none.

    Costs about O(name) each where a pattern has no `?`, at most O(name × pattern).
    """
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
