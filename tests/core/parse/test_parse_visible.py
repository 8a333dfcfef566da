"""The visible part of a reply, and where it stood. Source: spec/react.md, section 5."""

from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.core.parse.scan import Seeker, whole_fence
from surefoot.core.parse.stream import visible, without_leaked_tokens


@cases("parse/visible")
def test_reasoning_and_end_tokens_go_but_not_out_of_values(reply: str, text: str) -> None:
    assert visible(reply).text == text


def test_open_reasoning_is_told() -> None:
    assert visible("<think>a").open_reasoning
    assert not visible("<think>a</think>").open_reasoning


@given(
    st.lists(st.sampled_from(["a", "bc", " ", "<think>x</think>", "\n", "{", "<|im_end|>"]), max_size=12).map("".join)
)
def test_every_place_leads_back_to_its_sign(reply: str) -> None:
    shown = visible(reply)
    for at, sign in enumerate(shown.text):
        assert reply[shown.in_reply(at + 1) - 1] == sign
    assert "".join(shown.unbroken()) == shown.text


def test_leaked_tokens_at_the_end_go() -> None:
    assert without_leaked_tokens("a<|tool_call_end|> <|x|>\n") == "a"
    assert without_leaked_tokens("| a | b |>") == "| a | b |>"


@cases("parse/visible")
def test_a_text_that_is_one_fence(text: str, inner: str | None) -> None:
    fence = whole_fence(text)
    assert (fence.content(text) if fence else None) == inner


@given(st.text("ab", max_size=30), st.lists(st.integers(0, 30), max_size=8))
def test_the_seeker_finds_what_find_finds(text: str, starts: list[int]) -> None:
    seek = Seeker(text)
    for start in starts:
        assert seek.find("ab", start) == text.find("ab", start)
