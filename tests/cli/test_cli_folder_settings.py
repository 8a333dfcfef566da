"""A settings file that was only found in the folder: it may tighten and limit, and nothing else without a word."""

import os
import re
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from cli_world import Command, Json, chat_server, says

from cases import rows
from surefoot import SqliteJournal
from surefoot.cli.options import FILES, config_in
from surefoot.journal import sqlite_file
from surefoot.types.config import TABLES
from surefoot.types.errors import UsageError, extra_needed
from surefoot.types.settings import rows as settings_of

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
STANDING = """
[[standing]]
id = "any"
tool = "pay"
pin = "{pin}"
by = "Ada"
expires_at = 2027-01-31
covers = ["touch", "intent", "provenance"]
when = [{{ arg = "account", equals = "X" }}]
""".format(pin="0" * 64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "standing.toml").write_text(STANDING)
    (tmp_path / "rules.toml").write_text('[[rule]]\nid = "no"\nwhen = { effect = "delete" }\nthen = "deny"\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("/")
    return tmp_path


@pytest.mark.parametrize("case", rows("cli_found_settings"))
def test_a_found_file_may_tighten_and_limit_not_loosen_nor_choose(folder: Path, case: Mapping[str, str]) -> None:
    path = folder / "surefoot.toml"
    path.write_text(f"[{case['table']}]\n{case['lines']}\n")
    config = config_in(path)
    if "refused" not in case:
        assert config_in(path, is_found=True) == config
        return
    with pytest.raises(UsageError) as refused:
        config_in(path, is_found=True)
    told = str(refused.value)
    assert told.startswith(f"{path}: [{case['table']}] {case['refused']}: ")
    assert "give --config surefoot.toml to use all of it, or " in told
    assert "evil" not in told


def test_a_link_that_leaves_the_folder_is_not_read(surefoot: Command, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Path.cwd()
    own = folder / "surefoot.toml"
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret"
    elsewhere.write_text("[token]\nvalue = 'hunter2'\n")
    own.symlink_to(elsewhere)
    done = surefoot("run", "--model", "http://127.0.0.1:1/v1#m", "x")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "a link that leads out of the folder, so it is not read; give --config surefoot.toml to use it" in done.err
    named = surefoot("run", "--model", "http://127.0.0.1:1/v1#m", "--config", "surefoot.toml", "x")
    assert "unknown table or field 'token'" in named.err
    own.unlink()
    (folder / "mine.toml").write_text("[budget]\nmax_steps = 3\n")
    own.symlink_to("mine.toml")
    assert config_in(own, is_found=True).budget.max_steps == 3
    own.unlink()
    own.symlink_to(own)
    for given, why in (((), "settings cannot be read"), (("--config=", "--journal=surefoot.toml/x.db"), "cannot make")):
        circle = surefoot("run", "--model", "http://127.0.0.1:1/v1#m", *given, "x")
        assert (circle.err.count("\n"), why in circle.err) == (1, True)


@pytest.mark.parametrize(
    "line", ['rules_file = "../outside.toml"', 'cedar_file = "/etc/hostname"', 'rules_file = "link"']
)
def test_no_file_outside_of_the_folder_is_read(folder: Path, line: str) -> None:
    path = folder / "surefoot.toml"
    path.write_text(f"[guard]\n{line}\n")
    with pytest.raises(UsageError, match=r"cannot read files outside its folder; give --config surefoot\.toml"):
        config_in(path, is_found=True)


def test_what_is_not_always_taken_is_on_the_page() -> None:
    section = PAGE.split("## What a file that was only found may not say", 1)[1].split("\n## ", 1)[0]
    told = [(name, row) for kind in TABLES.values() for name, row in settings_of(kind).items() if row.in_files]
    assert not [name for name, row in told if row.found != "any" and f"`{name}`" not in section]
    assert all(f"`{name}`" in section for name in FILES)


def test_the_example_of_the_page_is_one_that_a_folder_may_have(tmp_path: Path) -> None:
    path = tmp_path / "surefoot.toml"
    path.write_text(PAGE.split("```toml\n", 1)[1].split("```", 1)[0])
    assert config_in(path, is_found=True) == config_in(path)


@pytest.mark.parametrize("table", ["guard", "plan"])
def test_a_folder_sends_no_key_out(
    surefoot: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setenv("SUREFOOT_API_KEY", "sk-secret")
    with chat_server(*[says("hi")] * 3) as evil, chat_server(*[says("hi")] * 3) as chat:
        line = f'anchor = "model"\njudge = "{evil.model}"' if table == "guard" else f'model = "{evil.model}"'
        (folder / "surefoot.toml").write_text(f"[{table}]\n{line}\n")
        reasoner = ("--reasoner", "plan") if table == "plan" else ()
        done = surefoot("run", "--model", chat.model, *reasoner, "Say hello.")
        assert (done.code, done.err.count("\n"), evil.bodies, chat.bodies) == (2, 1, [], [])
        surefoot("run", "--model", chat.model, *reasoner, "--config", "surefoot.toml", "Say hello.")
        assert evil.bodies


def test_a_fork_and_a_resumed_run_offer_no_option_that_they_refuse(surefoot: Command) -> None:
    for command, offered, hidden in (
        (
            "fork",
            ("--model", "--tools"),
            ("--guard", "--rules", "--max-steps", "--include", "--reasoner", "--on-stuck"),
        ),
        ("resume", ("--model", "--max-steps"), ("--guard", "--rules", "--cedar", "--reasoner")),
        ("run", ("--guard", "--max-steps", "--reasoner"), ()),
    ):
        told = set(re.findall(r"^│[* ]*(--[a-z-]+)", surefoot(command, "--help").out, re.MULTILINE))
        assert told >= set(offered)
        assert not told & set(hidden)


def test_an_extra_is_named_the_same_way_everywhere() -> None:
    remedy = "install the extra mcp: pip install 'surefoot[mcp]' (in a checkout: pip install '.[mcp]')"
    assert extra_needed("mcp") == remedy
    source = Path(__file__).parents[2] / "src" / "surefoot"
    told = [path for path in source.rglob("*.py") if "pip install 'surefoot" in path.read_text(encoding="utf-8")]
    assert [path.name for path in told] == ["errors.py"]


@pytest.fixture
def kept(surefoot: Command, folder: Path) -> Path:
    with chat_server(says("hi")) as chat:
        assert surefoot("run", "--model", chat.model, "x").code == 0
    return folder / ".surefoot" / "journal.db"


def test_a_journal_without_a_log_is_read_and_nothing_is_made_beside_it(kept: Path) -> None:
    assert not sqlite_file.has_log(kept)
    before = {path: path.stat().st_mtime_ns for path in (kept.parent, *kept.parent.iterdir())}
    db = sqlite_file.connect_to_read(kept)
    assert db.execute("SELECT count(*) FROM run").fetchone() == (1,)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("DELETE FROM run")
    db.close()
    assert {path: path.stat().st_mtime_ns for path in (kept.parent, *kept.parent.iterdir())} == before


def test_a_journal_that_is_open_elsewhere_is_read_with_its_log(kept: Path) -> None:
    writing = sqlite_file.connect(kept)
    writing.execute("INSERT INTO run (run_id, started_at) VALUES ('r2', 1.0)")
    assert sqlite_file.has_log(kept)
    db = sqlite_file.connect_to_read(kept)
    assert db.execute("SELECT count(*) FROM run").fetchone() == (2,)
    db.close()
    writing.close()


@pytest.mark.anyio
async def test_a_store_that_only_reads_drives_nothing(kept: Path) -> None:
    store = SqliteJournal(kept, read_only=True)
    (info,) = await store.runs()
    with pytest.raises(UsageError, match="to be read only"):
        await store.open(info.run_id)
    with pytest.raises(UsageError, match="to be read only"):
        await store.fork(info.run_id, 1, "r2")
    await store.aclose()


def close(folder: Path) -> None:
    """Take the right to write from a folder."""
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        folder.chmod(0o700)
        pytest.skip("whoever runs this may write everywhere")


def test_a_journal_in_a_folder_that_cannot_be_written_is_listed_and_shown(surefoot: Command, kept: Path) -> None:
    kept.chmod(0o400)
    close(kept.parent)
    try:
        (told,) = surefoot("runs", "--json").json_lines
        assert told["status"] == "completed"
        run_id = str(cast("Json", told["run"])["run_id"])
        assert "hi" in surefoot("show", run_id).out
        assert "all alike" in surefoot("replay", run_id).out
        followed = surefoot("show", run_id, "--follow")
        assert followed.code == 1
        assert "make the file and its folder writable" in followed.err
        doctor = surefoot("doctor", "--model", "http://10.0.0.1/v1#m")
        assert "can be read but not written" in doctor.out
        assert doctor.code == 1
    finally:
        kept.parent.chmod(0o700)


def test_a_log_in_a_folder_that_is_not_writable_says_what_to_do(surefoot: Command, kept: Path, tmp_path: Path) -> None:
    writing = sqlite_file.connect(kept)
    writing.execute("INSERT INTO run (run_id, started_at) VALUES ('r2', 1.0)")
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("journal.db", "journal.db-wal"):
        shutil.copy(kept.with_name(name), copy)
    writing.close()
    close(copy)
    try:
        done = surefoot("runs", "--journal", "copy/journal.db")
    finally:
        copy.chmod(0o700)
    assert done.code == 1
    assert "copy it with all files of its name to a folder of yours" in done.err
