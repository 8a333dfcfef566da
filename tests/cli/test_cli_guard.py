"""The gate from the shell: its table, its options, and its files, which no tool of a run may write."""

from pathlib import Path

import pytest
from cli_world import Command, calls, chat_server, run_id_in, says, texts

from surefoot import LoopConfig
from surefoot.cli.options import Options
from surefoot.cli.settings import changed, config_in
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


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("mode = 'soft'", "[guard] mode='soft': choose one of off, observe, enforce"),
        ("strict = 1", "[guard] strict=1: give true or false"),
        ("max_asks = -1", "[guard] max_asks=-1: give a whole number"),
        ("rules = []", "[guard] has no field 'rules'; choose from mode, strict"),
        ("standing = []", "[guard] has no field 'standing'"),
        ("rules_file = 3", "[guard] rules_file=3: give the path of a file"),
        ("rules_file = 'gone.toml'", "gone.toml': the file cannot be read"),
        ("rules_file = 'house.cedar'", "not valid TOML"),
        ("cedar_file = 'gone.cedar'", "[guard] cedar='"),
        ("cedar_file = 'rules.toml'", "not valid Cedar"),
        ("lexicon = { sending = ['ping'] }", "[guard] lexicon='sending': choose one of read, write"),
        ("lexicon = { read = 'ping' }", "[guard] lexicon.read='ping': give a list of words"),
    ],
)
def test_what_the_table_cannot_mean_is_one_line(surefoot: Command, folder: Path, written: str, said: str) -> None:
    (folder / "surefoot.toml").write_text(f"[guard]\n{written}\n")
    done = surefoot("run", "--model", "http://127.0.0.1:1/v1#m", "x")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"surefoot: {folder / 'surefoot.toml'}: ")
    assert said in done.err


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


@pytest.mark.parametrize("how", ["option", "table"])
def test_no_tool_of_a_run_writes_its_rules_and_policies(surefoot: Command, folder: Path, how: str) -> None:
    wanted = calls(
        ("file_write", {"path": "rules.toml", "text": ""}), ("file_write", {"path": "house.cedar", "text": PERMIT})
    )
    named: tuple[str, ...] = ("--rules", "rules.toml", "--cedar", "house.cedar", "--guard", "observe")
    if how == "table":
        (folder / "surefoot.toml").write_text(
            "[guard]\nmode = 'observe'\nrules_file = 'rules.toml'\ncedar_file = 'house.cedar'"
        )
        named = ("--config", "surefoot.toml")
    with chat_server(wanted, says("done")) as chat:
        surefoot("run", "--model", chat.model, "--write", *named, "Write 'rules.toml' and 'house.cedar'.")
    assert all("closed to tools" in text for text in texts(chat.bodies[1], "tool"))
    assert (folder / "rules.toml").read_text() == RULES


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
