"""Sequences and mappings that grow by one: what they hold, and what they share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.state.lookup import History, Lookup


@given(st.lists(st.lists(st.integers(), max_size=4), max_size=40), st.integers(-200, 200))
def test_a_history_is_the_sequence_of_what_was_added(added: list[list[int]], at: int) -> None:
    grown, plain = History[int](), list[int]()
    for items in added:
        grown = grown.plus(*items)
        plain += items
    assert (list(grown), list(reversed(grown)), len(grown)) == (plain, plain[::-1], len(plain))
    assert (grown[at:], grown[:at]) == (tuple(plain[at:]), tuple(plain[:at]))
    assert grown == History(plain)
    assert hash(grown) == hash(History(plain))
    if -len(plain) <= at < len(plain):
        assert grown[at] == plain[at]
    else:
        with pytest.raises(IndexError):
            grown[at]


def test_what_is_added_leaves_the_earlier_history_as_it_was() -> None:
    first = History([1, 2, 3])
    one, other = first.plus(4), first.plus(5)
    assert (list(first), list(one), list(other)) == ([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 5])


@given(st.lists(st.dictionaries(st.integers(0, 30), st.integers(), max_size=3), max_size=40))
def test_a_lookup_gives_the_latest_value_of_each_key(added: list[dict[int, int]]) -> None:
    grown, plain = Lookup[int, int](), dict[int, int]()
    for entries in added:
        before, seen = grown, dict(grown)
        grown = grown.plus(entries)
        plain |= entries
        assert before == seen
    assert (grown, len(grown), bool(grown)) == (plain, len(plain), bool(plain))
    assert all((key in grown, grown.get(key)) == (key in plain, plain.get(key)) for key in range(31))


def test_growing_by_one_shares_nearly_everything() -> None:
    grown = History[int]()
    copied = 0
    for number in range(4096):
        before = set(map(id, grown.parts))
        grown = grown.plus(number)
        copied += sum(len(part) for part in grown.parts if id(part) not in before)
    assert copied <= 4096 * 13
    assert len(grown.parts) <= 13
