"""`doctor` and `model list`: what is there, what is missing, how to mend it."""

from pathlib import Path

import pytest
from cli_world import Command


def test_doctor_names_keys_and_never_their_values(surefoot: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    done = surefoot("doctor", "--model", "openai:m")
    assert done.code == 0
    assert "✓ API keys set: OPENAI_API_KEY" in done.out
    assert "server api.openai.com:443: not asked" in done.out
    assert "sk-secret" not in done.out


def test_pull_refuses_a_file_that_is_gone(surefoot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_MODEL_FILE", str(tmp_path / "gone.gguf"))
    done = surefoot("model", "pull")
    assert done.code == 2
    assert "gone.gguf" in done.err
    assert done.err.count("\n") == 1
