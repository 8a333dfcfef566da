"""The gate from the shell: its table, its options, and its files, which no tool of a run may write."""

from pathlib import Path

import pytest

from surefoot import LoopConfig
from surefoot.cli.options import Options, changed, config_in
from surefoot.types.errors import UsageError
from surefoot.types.guard import GuardConfig

RULES = """
[[rule]]
id = "no-notes"
when = { tool = "file_write", arg = "path", matches = "*.md" }
then = "deny"
reason = "No notes here."
"""
PERMIT = "permit(principal, action, resource);"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.toml").write_text(RULES)
    (tmp_path / "house.cedar").write_text(PERMIT)
    return tmp_path


def config(folder: Path, written: str) -> LoopConfig:
    (folder / "surefoot.toml").write_text(written)
    return config_in(folder / "surefoot.toml")


def test_the_table_sets_the_gate_and_names_files_beside_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    guard = config(
        folder,
        """
        [guard]
        mode = "observe"
        strict = true
        max_asks = 3
        lexicon = { communicate = ["ping"] }
        rules_file = "rules.toml"
        cedar_file = "house.cedar"
        """,
    ).guard
    assert guard is not None
    assert (guard.mode, guard.strict, guard.max_asks, guard.cedar) == ("observe", True, 3, PERMIT)
    assert guard.lexicon == {"communicate": ("ping",)}
    assert [one.id for one in guard.rules] == ["no-notes"]


def test_an_empty_table_turns_the_gate_on_and_none_leaves_it_off(folder: Path) -> None:
    assert config(folder, "[guard]").guard == GuardConfig()
    assert config(folder, "").guard is None


def test_options_beat_the_table_and_turn_the_gate_on(folder: Path) -> None:
    def guard(before: GuardConfig | None = None, **options: object) -> GuardConfig | None:
        made = changed(Options(**options), LoopConfig(guard=before))  # type: ignore[arg-type]  # options by name
        return made.guard if made else None

    assert guard() is None
    assert guard(GuardConfig(strict=True), settings={"guard": {"mode": "off"}}) == GuardConfig(mode="off", strict=True)
    assert guard(settings={"guard": {"mode": "observe"}}) == GuardConfig(mode="observe")
    assert guard(cedar=folder / "house.cedar") == GuardConfig(cedar=PERMIT)
    ruled = guard(rules=folder / "rules.toml")
    assert ruled is not None
    assert (ruled.mode, [one.id for one in ruled.rules]) == ("enforce", ["no-notes"])
    ruled = guard(GuardConfig(mode="off"), rules=folder / "rules.toml")
    assert ruled is not None
    assert ruled.mode == "enforce"
    with pytest.raises(UsageError, match="--guard off would ignore --rules and --cedar"):
        guard(rules=folder / "rules.toml", settings={"guard": {"mode": "off"}})
