"""Where the model's file is, and whether it is right: small files stand for the large one."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from cases import cases
from surefoot.models.files import (
    QWEN_CODER,
    cache_directory,
    is_present,
    is_verified,
    known_models,
    verify,
    weights_file,
)
from surefoot.types.errors import ModelError

DATA = b"weights of a small model"
SMALL = replace(QWEN_CODER, size=len(DATA), sha256=hashlib.sha256(DATA).hexdigest())


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SUREFOOT_MODEL_FILE", raising=False)
    path = tmp_path / "model.gguf"
    path.write_bytes(DATA)
    return path


@cases("models/model_files")
def test_cache_is_where_the_platform_has_it(environ: dict[str, str], platform: str, expected: str) -> None:
    assert cache_directory(environ, platform, Path("home")) == Path(expected)


def test_named_file_comes_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUREFOOT_MODEL_FILE", raising=False)
    assert weights_file(QWEN_CODER, tmp_path) == tmp_path / QWEN_CODER.file
    monkeypatch.setenv("SUREFOOT_MODEL_FILE", str(tmp_path / "mine.gguf"))
    assert weights_file(QWEN_CODER, tmp_path) == tmp_path / "mine.gguf"


def test_right_file_is_hashed_once(file: Path, tmp_path: Path) -> None:
    read: list[int] = []
    verify(file, SMALL, tmp_path, read.append)
    assert read == [len(DATA)]
    assert is_verified(file, SMALL, tmp_path)
    verify(file, SMALL, tmp_path, read.append)
    assert read == [len(DATA)]


def test_changed_file_is_hashed_again(file: Path, tmp_path: Path) -> None:
    verify(file, SMALL, tmp_path)
    stat = file.stat()
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert not is_verified(file, SMALL, tmp_path)


def test_wrong_file_is_refused_with_both_hashes_and_the_remedy(file: Path, tmp_path: Path) -> None:
    wrong = replace(SMALL, sha256="0" * 64)
    with pytest.raises(ModelError) as refused:
        verify(file, wrong, tmp_path)
    said = str(refused.value)
    assert str(file) in said
    assert "0" * 64 in said
    assert SMALL.sha256 in said
    assert "surefoot model pull" in said
    assert not is_verified(file, wrong, tmp_path)


def test_cache_that_cannot_be_written_only_costs_time(file: Path) -> None:
    verify(file, SMALL, file)  # a file where the directory should be
    assert not is_verified(file, SMALL, file)


def test_present_means_the_right_size(file: Path, tmp_path: Path) -> None:
    assert is_present(file, SMALL)
    assert not is_present(file, QWEN_CODER)
    assert not is_present(tmp_path / "none", SMALL)


def test_list_tells_what_is_known(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (model,) = known_models(tmp_path)
    assert (model.name, model.present, model.verified) == ("qwen2.5-coder-1.5b-instruct", False, False)
    monkeypatch.setenv("SUREFOOT_MODEL_FILE", str(file))
    assert known_models(tmp_path)[0].path == file
