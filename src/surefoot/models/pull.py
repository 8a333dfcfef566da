"""Fetch the file of a model that runs in this process, once and whole."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from surefoot.models.sources import Source, SourceFailed, default_sources, length
from surefoot.models.weights import (
    QWEN_CODER,
    Weights,
    cache_directory,
    is_present,
    verify,
    weights_file,
)
from surefoot.types.errors import ConfigError, ModelError, ModelUnreachable

OnProgress = Callable[[int, int, str], None]
"""Called with the bytes done, the bytes in all, and what is being done: a source's name, "verifying" or "waiting"."""

FreeBytes = Callable[[Path], int]

_LOCK_POLL_S = 0.5
_SLACK_BYTES = 64 << 20


def disk_free(directory: Path) -> int:
    """Bytes that can still be written there."""
    return shutil.disk_usage(directory).free


async def pull(
    on_progress: OnProgress | None = None,
    *,
    weights: Weights = QWEN_CODER,
    directory: Path | None = None,
    sources: Sequence[Source] | None = None,
    free_bytes: FreeBytes = disk_free,
) -> Path:
    """The path of the verified file, fetched if it is not there yet.

    A file named in the variable of its weights (`SUREFOOT_MODEL_FILE`) is used as it stands, or refused. Else the
    sources are asked in order, each going on from what an earlier one, or an interrupted pull, has left. Two pulls at
    once: the second waits. Raises `ModelUnreachable` when no source gives the file, `ModelError` when the disk is too
    small or the hash is another (the file is then removed), `ConfigError` when the variable names no file.
    """
    report = on_progress or _silent
    where = directory or cache_directory()
    if os.environ.get(weights.variable):
        path = weights_file(weights)
        if length(path) == 0:
            raise ConfigError(weights.variable, str(path), "there is no such file; unset it, or name the model's file")
        await _verified(path, weights, where, report)
        return path
    where.mkdir(parents=True, exist_ok=True)
    target, partial = where / weights.file, where / f"{weights.file}.part"
    async with _only_one(where / f"{weights.file}.lock", lambda: report(length(partial), weights.size, "waiting")):
        if not is_present(target, weights):
            await _fetch(weights, partial, default_sources() if sources is None else sources, report, free_bytes)
            partial.replace(target)
        try:
            await _verified(target, weights, where, report)
        except ModelError:
            target.unlink()  # ours, and of no use; the next pull begins afresh
            raise
    return target


async def _fetch(
    weights: Weights, partial: Path, sources: Sequence[Source], report: OnProgress, free_bytes: FreeBytes
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


async def _verified(path: Path, weights: Weights, directory: Path, report: OnProgress) -> None:
    loop = asyncio.get_running_loop()

    def tell(done: int) -> None:
        loop.call_soon_threadsafe(report, done, weights.size, "verifying")

    await asyncio.to_thread(verify, path, weights, directory, tell)


@asynccontextmanager
async def _only_one(lock: Path, on_wait: Callable[[], None]) -> AsyncGenerator[None]:
    """Hold the lock file; the system frees it when this process dies, so a stale one never blocks."""
    with lock.open("ab") as file:
        while not _try_lock(file):
            on_wait()
            await asyncio.sleep(_LOCK_POLL_S)
        yield


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def _silent(done: int, total: int, doing: str) -> None:
    """Nobody asked."""
