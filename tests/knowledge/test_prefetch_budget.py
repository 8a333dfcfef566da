"""How a budget is shared. Source: spec/primitives.md, 3.8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.knowledge.prefetch.budget import cut, shares, tokens_of


@pytest.mark.parametrize(
    ("needs", "budget", "given_out"),
    [
        ((), 5, ()),
        ((3, 4), 7, (3, 4)),
        ((100, 1, 1), 10, (8, 1, 1)),
        ((100, 100, 100), 10, (4, 3, 3)),
        ((6, 25), 10, (5, 5)),
        ((2, 9, 9), 10, (2, 4, 4)),
        ((9, 9, 2, 9), 12, (4, 3, 2, 3)),
        ((5, 5), 0, (0, 0)),
        ((5, 5, 5), 2, (1, 1, 0)),
        ((0, 5), 3, (0, 3)),
    ],
)
def test_small_needs_are_met_and_the_rest_is_shared_fairly(
    needs: tuple[int, ...], budget: int, given_out: tuple[int, ...]
) -> None:
    assert shares(needs, budget) == given_out


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(0, 200))
def test_nothing_is_wasted_and_nobody_with_less_got_less_than_one_with_more(needs: list[int], budget: int) -> None:
    given_out = shares(needs, budget)
    assert sum(given_out) == min(budget, sum(needs))
    assert all(got <= need for got, need in zip(given_out, needs, strict=True))
    short = [got for got, need in zip(given_out, needs, strict=True) if got < need]
    assert not short or max(short) - min(short) <= 1
    assert not short or max(given_out) <= max(short) + 1


@pytest.mark.parametrize(
    ("text", "tokens", "kept"),
    [
        ("😀é", 1, "😀"),
        ("数据库", 1, "数"),
        ("数据库", 2, "数据"),
        ("abcd", 1, "abcd"),
        ("abcde", 1, "abcd"),
        ("a", 0, ""),
    ],
)
def test_a_cut_leaves_whole_characters(text: str, tokens: int, kept: str) -> None:
    assert cut(text, tokens) == kept


def test_a_token_is_four_bytes_rounded_up() -> None:
    assert [tokens_of(size) for size in (0, 1, 4, 5, 15)] == [0, 1, 1, 2, 4]
