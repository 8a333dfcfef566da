"""The display filter: what is shown while a reply streams. Source: spec/react.md, section 11."""

import time

import pytest

from cases import each
from surefoot.core.parse.stream import DisplayFilter

LONG = "and this goes on for long enough that nobody has to wait for what it is going to be."


def shown(*chunks: str) -> tuple[str, str]:
    display = DisplayFilter()
    pairs = [display.feed(chunk) for chunk in chunks]
    return "".join(text for text, _ in pairs), "".join(thought for _, thought in pairs)


@each(
    ("text", "visible", "reasoning"),
    [
        (f"<think>a < b</think>\n\nHello world, {LONG}", f"Hello world, {LONG}", "a < b"),
        (f"<THINK mode=x>a</think>Hello, {LONG}", f"Hello, {LONG}", "a"),
        (f"Sure, {LONG} <tool_call>{{}}</tool_call> {LONG}", f"Sure, {LONG}", ""),
        (f"Sure.\n{{}} {LONG}", "Sure.", ""),
        (f"Sure.\n1. **Action:** search {LONG}", "Sure.", ""),
        (f"Sure.\n```python\nsearch(x=1) {LONG}\n```\n", "Sure.", ""),
        (f"Sure.\nsearch(x=1) {LONG}", "Sure.", ""),
        (f"a < b and <i>c</i>, {LONG}\n", f"a < b and <i>c</i>, {LONG}", ""),
        (f"Thought: I wonder, {LONG}\nAction: search\nAction Input: {{}} {LONG}", "", f"I wonder, {LONG}\n"),
        (f"Thought: hm\n**Final Answer:** It is 42, {LONG}", f"It is 42, {LONG}", "hm\n"),
        (f"See\n```\nx = 1\nsearch(1)\n```\nand {LONG}", f"See\n```\nx = 1\nsearch(1)\n```\nand {LONG}", ""),
        (f'Sure, <b>{{\n  "name": "search"}} {LONG}', "Sure, <b>", ""),
        ("Not yet known", "", ""),
        ("A line.\n  \n", "A line.", ""),
    ],
)
def test_what_is_shown(text: str, visible: str, reasoning: str) -> None:
    assert shown(text) == (visible, reasoning)
    assert shown(*text) == (visible, reasoning)


@each(
    ("text", "visible", "reasoning"),
    [
        ("Paris", "Paris", ""),
        ("The capital", "The capital", ""),
        ('See {"a": [1]} and search(x=1', 'See {"a": [1]} and search(x=1', ""),
        ("search(x=1)\n- one\n- two", "search(x=1)\n- one\n- two", ""),
        ("**Thought:** hm\nFinal Answer: It is 42", "It is 42", "hm\n"),
        ("3. Thought: hm\n3 apples", "", "hm\n3 apples"),
        ("<think>a</think>Hello", "Hello", "a"),
        ("A line.\n```python\nx = [1]\n```\nmore", "A line.\n```python\nx = [1]\n```\nmore", ""),
        ("Done.<|im_end|>", "Done.", ""),
    ],
)
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
@pytest.mark.parametrize(
    ("start", "piece"),
    [
        *(
            ("a", one)
            for one in ("\n", "<", "`", "```\n", "a\n", "<think>", "<think>x</think>", " ", "Thought: x\n", "[1] ")
        ),
        ("a\n", "`"),
        ("a\n", "~"),
        ("```x\n", "\n"),
    ],
)
def test_it_is_linear(start: str, piece: str) -> None:
    def seconds(size: int) -> float:
        began = time.thread_time()
        shown(*f"{start}{piece * (size // len(piece))}")
        return time.thread_time() - began

    seconds(1_000)
    assert seconds(100_000) < 40 * max(seconds(10_000), 0.005)
