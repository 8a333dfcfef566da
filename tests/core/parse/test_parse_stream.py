"""The display filter: what is shown while a reply streams. Source: spec/react.md, section 11."""

import time

import pytest

from cases import cases
from surefoot.core.parse.stream import DisplayFilter

LONG = "and this goes on for long enough that nobody has to wait for what it is going to be."


def shown(*chunks: str) -> tuple[str, str]:
    display = DisplayFilter()
    pairs = [display.feed(chunk) for chunk in chunks]
    return "".join(text for text, _ in pairs), "".join(thought for _, thought in pairs)


@cases("parse/stream")
def test_what_is_shown(text: str, visible: str, reasoning: str) -> None:
    assert shown(text) == (visible, reasoning)
    assert shown(*text) == (visible, reasoning)


@cases("parse/stream")
def test_without_tools_nothing_waits_for_a_call(text: str, visible: str, reasoning: str) -> None:
    for chunks in ((text,), text):
        display = DisplayFilter(calls=False)
        pairs = [display.feed(chunk) for chunk in chunks]
        assert ("".join(one for one, _ in pairs), "".join(one for _, one in pairs)) == (visible, reasoning)


def test_a_reset_forgets_everything() -> None:
    display = DisplayFilter()
    display.feed("<think>a <tool_call")
    display.reset()
    assert display.feed(f"Hello there, {LONG}") == (f"Hello there, {LONG}", "")


@pytest.mark.slow
@cases("parse/stream")
def test_it_is_linear(start: str, piece: str) -> None:
    def seconds(size: int) -> float:
        began = time.thread_time()
        shown(*f"{start}{piece * (size // len(piece))}")
        return time.thread_time() - began

    seconds(1_000)
    assert seconds(100_000) < 40 * max(seconds(10_000), 0.005)
