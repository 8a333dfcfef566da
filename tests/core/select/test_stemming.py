"""The stemmer: forms of a word meet, other words do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.core.select.terms import stem


@pytest.mark.parametrize("forms", [
    "calculate calculates calculated calculating calculation calculator",
    "translate translation translating translations", "book books booked booking", "city cities",
    "delete deletes deleting deletion", "create creating creation created", "box boxes",
    "plan plans planned planning planner", "search searches searching searched", "pay pays payment",
    "transform transformation", "query queries querying",
])  # fmt: skip
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    ("one", "other"), [("news", "new"), ("species", "specie"), ("address", "addre"), ("status", "statu")]
)
def test_what_is_no_ending_stays(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@given(st.text(max_size=40))
def test_any_text_has_a_stem_that_is_no_longer(word: str) -> None:
    assert len(stem(word)) <= len(word)
    assert bool(stem(word)) == bool(word)
