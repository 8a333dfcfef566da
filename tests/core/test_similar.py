"""Which errors are the same, and what is left of an error before it is compared."""

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases, each
from surefoot.core.text.look import likeness, masked, normal, similarity


@cases("core/similar")
def test_what_changes_from_try_to_try_does_not_make_another_error(one: str, other: str) -> None:
    assert likeness(normal(one), normal(other), 0.85) is not None
    assert "<" in masked(one) or normal(one) == normal(other)


@cases("core/similar")
def test_another_number_or_another_cause_is_another_error(one: str, other: str) -> None:
    assert likeness(normal(one), normal(other), 0.85) is None


@each("word", ["deadbeef", "decade", "country 5", "100-200", "bad-1", "v1.2.3", "------", "10-x"])
def test_words_and_small_numbers_stay(word: str) -> None:
    assert masked(word) == word


def test_an_unfinished_escape_does_not_swallow_the_error() -> None:
    assert "no such table" in masked("\x1b]0;title no such table")


def test_the_threshold_itself_is_the_same_error() -> None:
    assert likeness("abcd", "abcx", 0.75) == 0.75
    assert likeness("abcd", "abcx", 0.76) is None
    assert likeness("abc", "xyz", 0.0) == 0.0
    assert likeness("", "", 1.0) == 1.0
    assert likeness(normal("a" * 20_000), normal("b" * 20_000), 0.85) is None


def test_of_a_long_error_both_ends_count() -> None:
    """adv-long-inputs: only the ends are compared, so that a check costs no square of its length."""
    long = normal("head " + "x" * 1_000_000 + " tail")
    assert len(long) == 2_000
    assert long.startswith("head")
    assert long.endswith("tail")


@given(st.text(max_size=60), st.text(max_size=60))
def test_similarity_is_a_share_and_the_same_from_both_sides(a: str, b: str) -> None:
    assert 0 <= similarity(a, b) <= 1
    assert similarity(a, b) == similarity(b, a)
    assert (similarity(a, b) == 1) is (a == b)


@given(st.text(max_size=80), st.text(max_size=80), st.sampled_from([0.0, 0.5, 0.85, 1.0]))
def test_likeness_agrees_with_similarity_where_no_number_differs(a: str, b: str, threshold: float) -> None:
    a, b = ("".join(c for c in text if not c.isdecimal()) for text in (a, b))
    alike = likeness(a, b, threshold)
    assert (alike is not None) is (similarity(a, b) >= threshold - 1e-9)
    assert alike is None or alike == pytest.approx(similarity(a, b))


@given(st.text(st.characters(exclude_characters="\x1b\x9b"), max_size=400))
def test_an_error_is_the_same_error_as_itself_in_whatever_form(error: str) -> None:
    assert normal(error) == normal(f" {normalize('NFD', error)}\n")
    assert len(normal(error)) <= 2_000
