"""The gate from the shell: its table, its options, and its files, which no tool of a run may write."""

from pathlib import Path

import pytest
from cli_world import Command, calls, chat_server, run_id_in, says, texts

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


def test_a_rule_of_a_file_refuses_a_call(surefoot: Command, folder: Path) -> None:
    wanted = calls(
        ("file_write", {"path": "plan.md", "text": "the plan"}),
        ("file_write", {"path": "plan.txt", "text": "the plan"}),
    )
    with chat_server(wanted, says("done")) as chat:
        asked = ("--write", "--rules", "rules.toml", "Write the plan to 'plan.md' and 'plan.txt'.")
        done = surefoot("run", "--model", chat.model, *asked)
    assert done.code == 0, done.err
    assert "No notes here." in texts(chat.bodies[1], "tool")[0]
    assert not (folder / "plan.md").exists()
    assert (folder / "plan.txt").read_text() == "the plan"


def test_a_run_keeps_the_gate_that_it_was_started_with(surefoot: Command, folder: Path) -> None:
    with chat_server(401, calls(("file_write", {"path": "plan.md", "text": "x"})), says("done")) as chat:
        run_id = run_id_in(
            surefoot("run", "--model", chat.model, "--write", "--rules", "rules.toml", "Write 'plan.md'.").err
        )
        for option in (("--guard", "off"), ("--rules", "rules.toml"), ("--cedar", "house.cedar")):
            done = surefoot("resume", run_id, *option)
            assert done.code == 2
            assert "keeps the gate that it was started with" in done.err
        (folder / "rules.toml").write_text("")
        assert surefoot("resume", run_id).code == 0
    assert "No notes here." in texts(chat.bodies[2], "tool")[0]
