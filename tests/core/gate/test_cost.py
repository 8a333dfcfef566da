"""What a hostile text may cost the gate: work in line with its length, counted and not timed."""

import sys
from collections.abc import Callable
from types import FrameType

from gate_world import CONTACTS, SEND, Run

from surefoot.core.gate.intent import read_words


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


def test_many_records_of_one_name_open_nothing() -> None:
    run = Run("Send the report to Ann Lee.")
    run.read(CONTACTS, [{"name": "Ann Lee", "email": f"a{at}@x.example"} for at in range(100)])
    run.read(CONTACTS, [{"name": "Ann Lee", "email": "a5@x.example"}])
    assert run.verdict(SEND, to=["a5@x.example"], subject="the report", body="the report") == "ask"


def test_a_long_run_of_digits_is_read() -> None:
    assert read_words("1" * 100_000).effects_asked == {"read"}  # quadratic, this would take minutes


def test_a_value_that_the_words_say_thousands_of_times_costs_no_verdict_more() -> None:
    def judge(many: int) -> int:
        run = Run("Send the report to ann@x.example, " * many)
        return _lines(lambda: run.verdict(SEND, to=["ann@x.example"], subject="the report", body="the report"))

    judge(10)
    assert judge(2_000) < 2 * judge(200)
