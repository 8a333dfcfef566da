"""What holds for any reply: nothing raises, nothing is made up, time is linear. Source: spec/react.md, section 13."""

import re
from collections.abc import Callable, Iterator, Mapping
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_parse_families import ONE_CALL
from tools_for_parsing import TOOLS, rows

from surefoot.core.parse.marks import MARKERS
from surefoot.core.parse.reply import parse
from surefoot.core.parse.stream import visible
from surefoot.core.view.observations import tell
from surefoot.types.messages import NativeCall
from surefoot.types.reply import Parsed

DIALECTS = ["auto", "react", "tags", "native", "schema", "hermes", "pythonic", "llama3_json"]

VALID = [*ONE_CALL.values(), *rows("valid_replies")]

SIGNS = rows("signs")
PIECES = st.sampled_from([*MARKERS, *VALID, *SIGNS])


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid reply, with pieces put in, taken out and doubled."""
    text = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        piece = draw(st.one_of(PIECES, st.just(text[start:end] * 2), st.just("")))
        text = text[:start] + piece + text[end:]
    return text


REPLIES = st.one_of(mutated(), st.lists(PIECES, max_size=10).map("".join), st.text(max_size=60))
FINISH = st.sampled_from(["stop", "length", "tool_calls", "unknown"])


@given(REPLIES, st.sampled_from(DIALECTS), FINISH, st.booleans())
def test_no_reply_raises_and_every_reading_is_of_one_kind(text: str, dialect: str, finish: str, tools: bool) -> None:
    parsed = parse(text, TOOLS if tools else (), dialect=dialect, finish_reason=finish)
    settled_by = [bool(parsed.calls or parsed.errors), parsed.final is not None]
    assert sum(settled_by) <= 1
    assert any(settled_by) or parsed.error is not None or parsed.content is not None
    assert parsed.final is None or parsed.error is None
    assert -1 <= parsed.used <= len(text)
    positions = sorted([call.position for call in parsed.calls] + [faulty.position for faulty in parsed.errors])
    assert positions == list(range(len(positions)))
    if parsed.error is not None:
        assert len(tell(parsed.error, TOOLS, "text")) < 3_000


@given(REPLIES, FINISH)
def test_no_native_arguments_raise(text: str, finish: str) -> None:
    parsed = parse("", TOOLS, tool_calls=(NativeCall("c", "search", text),), finish_reason=finish)
    assert len(parsed.calls) + len(parsed.errors) == 1


@given(REPLIES, st.sampled_from(DIALECTS), FINISH, st.booleans())
def test_no_argument_holds_text_that_was_not_in_the_reply(text: str, dialect: str, finish: str, tools: bool) -> None:
    parsed = parse(text, TOOLS if tools else (), dialect=dialect, finish_reason=finish)
    forms = [text, _unescaped(text), _unescaped(_unescaped(text))]
    for piece in _texts(parsed):
        assert any(piece in form for form in forms), piece


@given(REPLIES, st.sampled_from(DIALECTS))
def test_nothing_in_reasoning_is_a_call(text: str, dialect: str) -> None:
    if "</" in text or not visible(f"<think>{text}").open_reasoning:
        return
    assert parse(f"<think>{text}", TOOLS, dialect=dialect).calls == ()


def _texts(parsed: Parsed) -> Iterator[str]:
    waiting: list[object] = [call.arguments for call in parsed.calls]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting += item.values()  # type: ignore[reportUnknownArgumentType,reportUnknownMemberType]  # decoded JSON
        elif isinstance(item, list):
            waiting += item  # type: ignore[reportUnknownArgumentType]  # decoded JSON


def _unescaped(text: str) -> str:
    """All that an escape of JSON or Python can stand for, put in its place."""
    signs = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "\n": ""}

    def of(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code:
            return chr(int(code, 16))
        if match[3][0] in "01234567":
            return chr(int(match[3], 8))
        return signs.get(match[3][0], match[3])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-7]{1,3}|.))", of, text, flags=re.DOTALL)


UNITS = rows("units")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["auto", "react", "tags"])
@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_no_faster_than_the_reply(unit: str, dialect: str) -> None:
    assert_linear(lambda size: parse((unit * (size // len(unit) + 1))[:size], TOOLS, dialect=dialect))


@pytest.mark.parametrize("unit", ['"', "\\", "{", "[", '{"a":', "{'a", "/*", "x "])
def test_time_grows_no_faster_than_native_arguments(unit: str) -> None:
    assert_linear(
        lambda size: parse(
            "", TOOLS, tool_calls=(NativeCall("c", "search", '{"query": ' + unit * (size // len(unit))),)
        )
    )


def assert_linear(run: Callable[[int], object]) -> None:
    """Twice the size takes less than three times as long, give or take a few milliseconds of a busy machine."""

    def cost(size: int) -> float:
        before = process_time()
        run(size)
        return process_time() - before

    def is_in_line() -> bool:
        half, whole = cost(20_000), cost(40_000)
        return whole < 3 * half + 0.015

    assert is_in_line() or is_in_line()  # a busy machine may spoil one measurement
