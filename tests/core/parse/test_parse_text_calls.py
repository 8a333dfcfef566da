"""Where a call stands in the words of a reply, and that asking for it never raises and stays linear."""

import random
import time

import pytest
from tools_for_parsing import TOOLS, rows

from cases import cases
from surefoot.core.parse.reply import parse
from surefoot.core.parse.text_calls import TextCall, text_call
from surefoot.types.reply import Parsed

CALL = '{"name": "search", "arguments": {"query": "x"}}'


def read(text: str, dialect: str) -> Parsed:
    return parse(text, TOOLS, dialect=dialect)


def found(text: str) -> TextCall | None:
    return text_call(text, TOOLS, read)


@cases("parse/text_calls")
def test_where_a_call_stands(text: str, standing: str, decodes: bool) -> None:
    call = found(text)
    assert call is not None
    assert (call.tool, call.standing) == ("search", standing)
    assert decodes == (call.parsed is not None) or standing == "alone"


@cases("parse/text_calls")
def test_words_that_hold_no_call(text: str) -> None:
    assert found(text) is None


def test_a_call_keeps_the_words_before_it_and_says_nothing_that_the_reply_does_not() -> None:
    call = found('I look.\nsearch(query="x")')
    assert call is not None
    assert call.parsed is not None
    assert (call.parsed.content, call.parsed.used) == ("I look.\n", -1)
    odd = found('<Tool_Call>{"name": "search", "arguments": {"query": "a < Tool_Call > b"}}</Tool_Call>')
    assert odd is not None
    assert odd.parsed is None  # its argument would be another one


PIECES = rows("pieces_of_calls")


def test_it_never_raises() -> None:
    rng = random.Random(7)  # noqa: S311  # the same texts in every run
    for _ in range(3_000):
        found("".join(rng.choice(PIECES) for _ in range(rng.randint(1, 14))))


@pytest.mark.slow
@cases("parse/text_calls")
def test_it_is_linear(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece)) + "\nsearch(query="
        began = time.thread_time()
        found(text)
        return time.thread_time() - began

    seconds(1_000)
    assert seconds(200_000) < 40 * max(seconds(20_000), 0.005)  # ten times the text, and a hundred times if squared
