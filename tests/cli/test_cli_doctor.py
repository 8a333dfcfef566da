"""`doctor` and `model list`: what is there, what is missing, how to mend it."""

from pathlib import Path

import pytest
from cli_world import Command, chat_server


def test_doctor_is_content_with_a_server_that_listens(surefoot: Command) -> None:
    with chat_server() as chat:
        done = surefoot("doctor", "--model", chat.model)
    assert done.code == 0
    assert done.out.endswith("ready: surefoot run can work\n")
    for text in (
        "✓ python: 3.",
        "✓ pydantic: ",
        "✓ extra cli: rich",
        "✓ extra server: h11",
        "listening",
        "journal.db, will be created by the first run",
    ):
        assert text in done.out


def test_doctor_says_how_to_mend_what_is_missing(surefoot: Command) -> None:
    done = surefoot("doctor")
    assert done.code == 1
    assert "→ surefoot model pull" in done.out
    silent = surefoot("doctor", "--model", "http://127.0.0.1:1/v1#m")
    assert silent.code == 1
    assert "✗ server 127.0.0.1:1: is not listening" in silent.out


def test_doctor_names_keys_and_never_their_values(surefoot: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    done = surefoot("doctor", "--model", "openai:m")
    assert done.code == 0
    assert "✓ API keys set: OPENAI_API_KEY" in done.out
    assert "server api.openai.com:443: not asked" in done.out
    assert "sk-secret" not in done.out


def test_doctor_looks_at_the_journal(surefoot: Command, tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("hello")
    done = surefoot("doctor", "--model", "http://10.0.0.1/v1#m", "--journal", "no.db")
    assert done.code == 1
    assert "✗ journal: " in done.out


def test_model_list_tells_what_is_here(surefoot: Command, tmp_path: Path) -> None:
    done = surefoot("model", "list")
    assert done.code == 0
    assert "qwen2.5-coder-1.5b-instruct" in done.out
    assert "no: surefoot model pull" in done.out
    assert str(tmp_path / "cache") in done.out
    assert "ollama:MODEL" in done.out
    assert "plug-ins: aisuite:MODEL, litellm-lib:MODEL" in done.out


def test_pull_refuses_a_file_that_is_not_there(
    surefoot: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUREFOOT_MODEL_FILE", str(tmp_path / "gone.gguf"))
    done = surefoot("model", "pull")
    assert done.code == 2
    assert "gone.gguf" in done.err
    assert done.err.count("\n") == 1
