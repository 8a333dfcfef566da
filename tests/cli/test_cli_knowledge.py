"""`knowledge add`, `search`, `verify`: the commands alone, as `app.py` takes them in."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from surefoot.cli.stores import app
from surefoot.knowledge.bridge import KnowledgeBridge
from surefoot.types.knowledge import ConventionsConfig, Knowledge

Command = Callable[..., Result]


@pytest.fixture
def knowledge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREFOOT_KNOWLEDGE", raising=False)
    return lambda *arguments: CliRunner().invoke(app, arguments)


def stored_by_a_model(root: Path, text: str) -> None:
    async def store() -> None:
        (root / ".surefoot").mkdir(exist_ok=True)
        bridge = KnowledgeBridge(ConventionsConfig(str(root), store=str(root / ".surefoot" / "knowledge.db")))
        await bridge.add([Knowledge(text, scope="src", source="model", run_id="r1", call_id="2.0")], by="")
        await bridge.aclose()

    asyncio.run(store())


def test_what_a_model_stored_is_shown_with_its_run_until_a_person_vouches(knowledge: Command, tmp_path: Path) -> None:
    stored_by_a_model(tmp_path, "use \x1b[31mtabs")
    assert "unverified, run r1 call 2.0" in knowledge("search", "use").output
    assert "\x1b" not in knowledge("search", "use").output
    assert knowledge("search", "go", "--directory", "src").output == "nothing found\n"
    assert "verified by Ada" in knowledge("verify", "1", "--by", "Ada").output
    assert "from src, verified by Ada" in knowledge("search", "go", "--directory", "src").output
    assert knowledge("verify", "1").exit_code == 2


def test_a_store_by_option_or_environment(knowledge: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge("add", "a", "b", "c", "--store", "one.db")
    monkeypatch.setenv("SUREFOOT_KNOWLEDGE", str(tmp_path / "one.db"))
    assert "a b c" in knowledge("search", "a").output
