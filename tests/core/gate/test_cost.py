"""What a hostile text may cost the gate: work in line with its length, counted and not timed."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from gate_world import CONTACTS, SEND, Run
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.gate.forbids import MOST_RULES
from surefoot.core.gate.intent import MOST_READ, read_words
from surefoot.core.gate.slots import Words


def _lines(work: Callable[[], object]) -> int:
    """How many lines of Python some work runs."""
    count = 0

    def trace(_frame: FrameType, event: str, _arg: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # pyright: ignore[reportArgumentType]  # a tracer that returns itself
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_many_records_of_one_name_cost_in_line_with_their_number() -> None:
    def read(many: int) -> int:
        run = Run("Send the report to Ann Lee.")
        return _lines(lambda: run.read(CONTACTS, [{"name": "Ann Lee", "n": str(at)} for at in range(many)]))

    read(100)
    assert read(800) < 3 * read(400)


def test_a_long_run_of_digits_is_read() -> None:
    assert read_words("1" * 100_000).effects_asked == {"read"}  # quadratic, this would take minutes


def test_a_value_that_the_words_say_thousands_of_times_costs_no_verdict_more() -> None:
    def judge(many: int) -> int:
        run = Run("Send the report to ann@x.example, " * many)
        return _lines(lambda: run.verdict(SEND, to=["ann@x.example"], subject="the report", body="the report"))

    judge(10)
    assert judge(2_000) < 2 * judge(200)


@pytest.mark.slow
@cases("gate/cost")
def test_long_words_of_one_kind_are_read(piece: str) -> None:
    """Each of these took minutes, or would at this length, where one pass over a sentence starts another."""
    text = piece * (MOST_READ // 2 // len(piece))
    assert "read" in read_words(text).effects_asked


@pytest.mark.parametrize(
    "words",
    [
        "Send the report to ann@x.example. " + "The sky is blue. " * 20_000,
        "The sky is blue. " * 20_000 + "Send the report to ann@x.example.",
        "Send the report to ann@x.example. " + "Do not call Bob. " * MOST_RULES,
        "把报告发给 ann@x.example。" + "不要给李华打电话。" * MOST_RULES,
        "把报告发给 ann@x.example。" + "天空是蓝色的。" * 20_000,
    ],
)
def test_of_words_that_are_not_read_whole_each_effect_is_a_question(words: str) -> None:
    run = Run(words)
    assert run.verdict(SEND, to=["ann@x.example"], subject="the report", body="the report") == "ask"
    assert run.verdict(CONTACTS) == "allow"


@pytest.mark.parametrize("words", ["Send the report to ann@x.example. ", "把报告发给 ann@x.example。"])
def test_words_that_are_read_whole_need_no_question(words: str) -> None:
    run = Run(words + "The sky is blue. " * 5_000 + "Do not call Bob. " * (MOST_RULES // 2))
    assert run.verdict(SEND, to=["ann@x.example"], subject="the report", body="the report") == "allow"


@given(st.text("\n .,:;-*1a", max_size=40), st.integers(1, 40))
def test_blank_lines_change_no_clause(text: str, lines: int) -> None:
    clauses = [read_words(f"Send a.txt to:\n{blank}{text}").clauses for blank in ("\n", "\n" * lines)]
    assert clauses[0] == clauses[1]


def test_the_words_of_an_anchor_are_made_once() -> None:
    """So what a thread has made of long words is not made again on the loop, when the run is folded."""
    anchor = read_words("Send the report to ann@x.example.")
    assert Words.of(anchor) is Words.of(anchor)
