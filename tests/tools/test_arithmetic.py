"""Exact, bounded arithmetic."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.tools.arithmetic import arithmetic_tool, calculate
from surefoot.tools.call import ToolFailed


@cases("tools/arithmetic")
def test_values(expression: str, value: str) -> None:
    assert calculate(expression) == value


@cases("tools/arithmetic")
def test_refusals_are_words(expression: str, words: str) -> None:
    with pytest.raises(ToolFailed) as caught:
        calculate(expression)
    assert words in str(caught.value)


pieces = st.sampled_from([
    *"0123456789+-*/%().,^ ×[]e", "**", "//", "sqrt(", "factorial(", "lcm(", "9**999", "1e308", "exp(", "pi", "round(",
])  # fmt: skip


@given(st.lists(pieces, max_size=40).map("".join) | st.text(max_size=30))
def test_whatever_is_written_it_ends_soon_in_words(expression: str) -> None:
    before = time.process_time()
    with suppress(ToolFailed):
        assert calculate(expression)
    assert time.process_time() - before < 1


def test_what_it_promises() -> None:
    spec = arithmetic_tool().spec
    assert (spec.name, spec.effect) == ("arithmetic", "read")
    assert not any(each.isdigit() for each in repr(spec.parameters))
