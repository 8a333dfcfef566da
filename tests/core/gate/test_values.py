"""What a value is, and when two are the same."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.text.look import holds, is_near, is_twin, normal_text, skeleton
from surefoot.core.text.values import hard_tokens, kind_of, norm_of, numbers_of
from surefoot.core.text.words import dates_of


@cases("gate/values")
def test_hard_tokens_stand_out_of_a_text(text: str, tokens: list[tuple[str, str]]) -> None:
    assert [(t.kind, t.norm) for t in hard_tokens(text)] == tokens


@cases("gate/values")
def test_numbers_are_exact_and_no_part_of_anything_else(text: str, numbers: tuple[str, ...]) -> None:
    assert numbers_of(text) == numbers


@cases("gate/values")
def test_days_are_found_in_any_listed_form(text: str, days: set[tuple[int, int, int]]) -> None:
    assert set(dates_of(text)) == days


@cases("gate/values")
def test_a_value_has_one_kind_and_one_form(value: object, kind: str, norm: str) -> None:
    assert (kind_of(value), norm_of(value)) == (kind, norm)


def test_a_name_inside_a_longer_word_is_not_that_name() -> None:
    text = normal_text("Ask Joanne, ann-marie and Ann")
    assert holds(text, "ann")
    assert not holds(normal_text("Joanne"), "ann")
    assert not holds(text, "joann")
    assert holds(normal_text("请发给小明吧"), "小明")


@cases("gate/values")
def test_a_twin_is_drawn_alike_and_is_another(one: str, other: str, twin: bool) -> None:
    assert is_twin(one, other) is twin


@cases("gate/values")
def test_names_that_can_be_mistaken(one: str, other: str, near: bool) -> None:
    assert is_near(one, other) is near
    assert not near or skeleton(one)[:4] == skeleton(other)[:4]


@given(st.text(max_size=300))
def test_any_text_has_tokens_that_stand_in_it(text: str) -> None:
    ends = 0
    for token in hard_tokens(text):
        assert text[token.start : token.end] == token.text
        assert token.start >= ends
        ends = token.end
    numbers_of(text)
    dates_of(text)
    assert norm_of(text).startswith(f"{norm_of(text).partition(':')[0]}:")


@pytest.mark.parametrize(
    "unit", ["a", "a.b", "1 ", "http://", "a@b.", "%20", "1-2-3 ", "A1", "www.", "1(", "://", "1 may "]
)
def test_the_time_grows_with_the_length(unit: str) -> None:
    def seconds(repeats: int) -> float:
        begun = time.process_time()
        hard_tokens(unit * repeats)
        return time.process_time() - begun

    small, large = seconds(2_000), seconds(16_000)
    assert large < 40 * small + 0.2
