"""Exact, bounded arithmetic."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases, each
from surefoot.tools.arithmetic import arithmetic_tool, calculate
from surefoot.tools.call import ToolFailed


@each(("expression", "value"), [
    ("0.1 + 0.2", "0.3"), ("81 + 92", "173"), ("1/3", "0.333333333333333"), ("1/3 + 1/3 + 1/3", "1"),
    ("2**100", str(2**100)), ("2**-2", "0.25"), ("10^3", "1000"), ("-2**2", "-4"), ("7 // 2", "3"), ("-7 % 3", "2"),
    ("100 * 1.1**3", "133.1"), ("3 × 4 ÷ 5 − 1", "1.4"), ("3x4", "12"), ("0x10", "16"), ("3^2 + sqrt(16)", "13"),
    ("2.0 x 3", "6"), ("0 x 4", "0"),
    ("1,234,567 + 1", "1234568"), ("max(1,234)", "234"), ("sum([1, 2, 3])", "6"), ("mean(1, 2)", "1.5"),
    ("round(2.5)", "3"), ("round(-2.5)", "-3"), ("round(2.675, 2)", "2.68"), ("round(1234, -2)", "1200"),
    ("sqrt(0.25)", "0.5"), ("2 ** 0.5", "1.4142135623731"), ("gcd(12, 18) + lcm(4, 6)", "18"),
    ("factorial(5)", "120"), ("log(8, 2)", "3"), ("sin(pi / 2)", "1"), ("19 * 3 = ?", "57"),
    ("1e-20", "0.00000000000000000001"), ("12.50 * 2", "25"), ("(-1) ** (10**100)", "1"),
    ("+".join(["1"] * 500), "500"),
])  # fmt: skip
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
