"""WordPiece as BERT has it, on a small vocabulary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.models.wordpiece import BEGIN, END, UNKNOWN, WordPiece

PIECES = ["play", "##ing", "##s", "the", ",", "cafe", "$", "天", "气", "°", "##°", "5", "a"]
TOKENIZER = WordPiece({piece: 1000 + at for at, piece in enumerate(PIECES)})


def pieces(text: str, most: int = 128) -> list[str]:
    numbers = TOKENIZER.numbers(text, most)
    assert (numbers[0], numbers[-1]) == (BEGIN, END)
    return ["?" if number == UNKNOWN else PIECES[number - 1000] for number in numbers[1:-1]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The plays", ["the", "play", "##s"]),
        ("Playing, café", ["play", "##ing", ",", "cafe"]),
        ("$5", ["$", "5"]),
        ("5°", ["5", "##°"]),
        ("the天气a", ["the", "天", "气", "a"]),
        ("the\tunheard\u200b\n", ["the", "?"]),
        ("play" * 30, ["?"]),
        ("", []),
    ],
)
def test_words_are_taken_apart_into_the_longest_pieces(text: str, found: list[str]) -> None:
    assert pieces(text) == found


def test_what_is_too_long_is_cut() -> None:
    assert pieces("the the the the", 5) == ["the"] * 3


def test_a_vocabulary_is_a_piece_a_line() -> None:
    assert WordPiece.of("[PAD]\nthe\nplay\n").numbers("play the", 9) == [BEGIN, 2, 1, END]


@given(st.text())
def test_any_text_has_numbers(text: str) -> None:
    assert len(TOKENIZER.numbers(text, 16)) <= 16
