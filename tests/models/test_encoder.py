"""The encoder: likeness of texts, vectors kept on disk by hash; WordPiece. A small arithmetic stands in."""

import asyncio
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from surefoot.models.encoder import BEGIN, END, UNKNOWN, LocalEncoder, WordPiece
from surefoot.models.files import ENCODER, VOCABULARY, is_present, weights_file
from surefoot.types.errors import ConfigError, ModelError

pytestmark = pytest.mark.anyio

PIECES = ["play", "##ing", "##s", "the", ",", "cafe", "$", "天", "气", "°", "##°", "5", "a"]
TOKENIZER = WordPiece({piece: 1000 + at for at, piece in enumerate(PIECES)})


class Letters:
    """Encodes a text as whether it holds an `a` and a `b`, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> bytes:
        self.asked.append(text)
        return struct.pack("2f", float("a" in text), float("b" in text))


@pytest.fixture
def numpy() -> None:
    pytest.importorskip("numpy", reason="numpy is not installed (extra `encoder`)")


@pytest.mark.usefixtures("numpy")
async def test_each_text_is_compared_to_each_asked() -> None:
    encoder = LocalEncoder(Letters())
    assert await encoder.likeness(["a", "b"], ["xa", "ab", "x"]) == [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    assert await encoder.likeness([], ["a"]) == [[]]
    assert await encoder.likeness(["a"], []) == []


@pytest.mark.usefixtures("numpy")
async def test_texts_are_remembered_on_disk_and_questions_are_not(tmp_path: Path) -> None:
    file = tmp_path / "vectors" / "v.sqlite"
    first, second = Letters(), Letters()
    texts = [f"a{at}" for at in range(1200)]
    before = await LocalEncoder(first, file).likeness(["b"], texts)
    encoder = LocalEncoder(second, file)
    assert await encoder.likeness(["b"], [*texts, "new"]) == [*before, [0.0]]
    await encoder.likeness(["b"], texts)
    assert first.asked == [*texts, "b"]
    assert second.asked == ["new", "b", "b"]


@pytest.mark.usefixtures("numpy")
async def test_several_may_ask_at_once(tmp_path: Path) -> None:
    letters = Letters()
    encoder = LocalEncoder(letters, tmp_path / "v")
    found = await asyncio.gather(*(encoder.likeness(["a"], ["a", "b"]) for _ in range(8)))
    assert found == [[[1.0], [0.0]]] * 8
    assert letters.asked.count("b") == 1


async def test_a_broken_file_of_vectors_is_told(tmp_path: Path) -> None:
    file = tmp_path / "v"
    file.write_bytes(b"no database" * 100)
    with pytest.raises(ModelError, match="remove that file"):
        await LocalEncoder(Letters(), file).likeness(["a"], ["a"])


def test_without_its_files_it_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="surefoot model pull --encoder"):
        LocalEncoder.from_default(tmp_path)


@pytest.mark.real_model
async def test_the_real_encoder_knows_what_is_alike() -> None:
    if not all(is_present(weights_file(one), one) for one in (ENCODER, VOCABULARY)):
        pytest.skip("the encoder is not here: surefoot model pull --encoder")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra `encoder`)")
    encoder = LocalEncoder.from_default()
    ((weather, mail),) = await encoder.likeness(["will it rain tomorrow?", "write a letter"], ["Weather forecast"])
    assert weather > 0.4 > mail


def pieces(text: str, most: int = 128) -> list[str]:
    numbers = TOKENIZER.numbers(text, most)
    assert (numbers[0], numbers[-1]) == (BEGIN, END)
    return ["?" if number == UNKNOWN else PIECES[number - 1000] for number in numbers[1:-1]]


@cases("models/encoder")
def test_words_are_taken_apart_into_the_longest_pieces(text: str, found: list[str]) -> None:
    assert pieces(text) == found


def test_what_is_too_long_is_cut() -> None:
    assert pieces("the the the the", 5) == ["the"] * 3


def test_a_vocabulary_is_a_piece_a_line() -> None:
    assert WordPiece.of("[PAD]\nthe\nplay\n").numbers("play the", 9) == [BEGIN, 2, 1, END]


@given(st.text())
def test_any_text_has_numbers(text: str) -> None:
    assert len(TOKENIZER.numbers(text, 16)) <= 16
