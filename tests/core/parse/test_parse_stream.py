"""The display filter: what is shown does not depend on the chunks. Source: spec/react.md, section 11."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.core.parse.labels import DEFAULT_LABELS, Labels
from surefoot.core.parse.marks import MARKERS
from surefoot.core.parse.stream import DisplayFilter
from surefoot.core.parse.visible import END_TOKENS, TURN_TOKENS


def shown(chunks: list[str], labels: Labels | None = DEFAULT_LABELS) -> tuple[str, str]:
    display = DisplayFilter(labels)
    pairs = [display.feed(chunk) for chunk in chunks]
    pairs.append(display.finish())
    return "".join(text for text, _ in pairs), "".join(thought for _, thought in pairs)


@pytest.mark.parametrize(
    ("text", "visible", "reasoning"),
    [
        ("Hello <think>a < b</think>\n\nworld", "Hello world", "a < b"),
        ("<THINK mode=x>a</think>b", "b", "a"),
        ("Sure. <tool_call>{...}</tool_call> done", "Sure. ", ""),
        (
            "I do not need <tool_call> now, nor <function_call>.",
            "I do not need <tool_call> now, nor <function_call>.",
            "",
        ),
        ("a < b and [c] and <i>d</i>", "a < b and [c] and <i>d</i>", ""),
        ("Thought: hm\nAction: search\nAction Input: {}", "", "hm\n"),
        ("Thought: hm\n**Final Answer:** 42\nok", "42\nok", "hm\n"),
        ("Final Answer: 42\n\nQuestion: next", "42\n\n", ""),
        ("Actions speak.\nAct\nAction 1 is", "Actions speak.\nAct\nAction 1 is", ""),
        ("See\n```\nAction: x\n<tool_call>{\n```\nok", "See\n```\nAction: x\n<tool_call>{\n```\nok", ""),
        ("a <|python_start|>[f()]<|python_end|> b<|im_end|>", "a  b", ""),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
            "b",
            "a",
        ),
        ("<|channel|>commentary to=functions.f<|message|>{}<|call|>", "", ""),
        ("x </think> y", "x y", ""),
    ],
)
def test_what_is_shown(text: str, visible: str, reasoning: str) -> None:
    assert shown([text]) == (visible, reasoning)
    assert shown(list(text)) == (visible, reasoning)


def test_without_labels_they_are_text() -> None:
    assert shown(["Action: x\n", "Final Answer: y"], None) == ("Action: x\nFinal Answer: y", "")


def test_what_cannot_become_a_marker_any_more_is_released_at_once() -> None:
    display = DisplayFilter()
    assert display.feed("Hello") == ("Hello", "")
    assert display.feed(" <tool") == (" ", "")
    assert display.feed("box> and") == ("<toolbox> and", "")
    assert display.feed("\nAct") == ("\n", "")
    assert display.feed("or") == ("Actor", "")


def test_a_reset_forgets_everything() -> None:
    display = DisplayFilter()
    display.feed("<think>a <tool_call")
    display.reset()
    assert display.feed("Hello there") == ("Hello there", "")


SNIPPETS = st.sampled_from(
    [
        *MARKERS,
        *END_TOKENS,
        *TURN_TOKENS,
        "assistant",
        "model",
        "<think>",
        "</think>",
        "<reasoning x>",
        "<|message|>",
        "<|end|>",
        "<|call|>",
        "<|python_end|>",
        "<function_call_result>",
        "<function=",
        "</tool_call>",
        "{",
        "[",
        "`",
        "```",
        "```\n",
        "~~~\n",
        "\n",
        " ",
        "**",
        "Action",
        " Input",
        ":",
        "Action: ",
        "Thought: ",
        "Final Answer: ",
        "Answer: ",
        "Question: ",
        "analysis",
        "final",
        " to=functions.f",
        "word",
        "<",
        "1",
        "中",
        "Observation: ",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(SNIPPETS, max_size=14).map("".join), st.data())
def test_any_cutting_shows_the_same(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for labels in (DEFAULT_LABELS, None):
        whole = shown([text], labels)
        assert shown(chunks, labels) == whole
        assert shown(list(text), labels) == whole
