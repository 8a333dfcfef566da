"""The commands that look after journals: copies, exports and imports, old runs removed, replays."""

import json
import os
import re
import time
from pathlib import Path

import pytest
from cli_world import Command

from surefoot.cli.journal import seconds_in
from surefoot.types.errors import UsageError

HOME = Path(".surefoot", "journal.db")


def replayed(surefoot: Command, run_id: str, journal: Path) -> bool:
    return surefoot("replay", run_id, "--journal", str(journal)).out.endswith("all alike\n")


def test_runs_go_to_another_journal_by_a_file(surefoot: Command, finished: str, tmp_path: Path) -> None:
    file, other = tmp_path / "runs.jsonl", tmp_path / "other.db"
    told = surefoot("export", finished[:6], "--form", "journal", "--output", str(file))
    assert (told.code, told.out, told.err) == (0, "", f"written to {file}\n")
    assert json.loads(file.read_text(encoding="utf-8").splitlines()[0])["runs"] == 1
    for mark in ("", "\ufeff"):  # again changes nothing
        file.write_text(mark + file.read_text(encoding="utf-8"), encoding="utf-8")
        told = surefoot("import", str(file), "--journal", str(other))
        assert (told.code, told.out) == (0, "imported 1 run\n")
    assert replayed(surefoot, finished, other)
    printed = surefoot("export", finished, "--form", "journal", "--journal", str(other)).out
    assert printed == file.read_text(encoding="utf-8-sig")


def test_of_a_file_that_is_torn_nothing_is_imported(surefoot: Command, finished: str, tmp_path: Path) -> None:
    file, other = tmp_path / "runs.jsonl", tmp_path / "other.db"
    lines = surefoot("export", finished, "--form", "journal").out.splitlines()
    file.write_text("\n".join([*lines[:-1], lines[-1][:50]]), encoding="utf-8")
    told = surefoot("import", str(file), "--journal", str(other))
    assert (told.code, told.out) == (1, "")
    assert f"line {len(lines)} cannot be imported" in told.err
    for nothing in ("", "\n \n"):  # what a pipe gives whose other end failed
        file.write_text(nothing, encoding="utf-8")
        told = surefoot("import", str(file), "--journal", str(other))
        assert told.err.startswith("surefoot: there is nothing to import")
    assert not other.exists()


def test_a_journal_is_copied_with_what_lies_beside_it(surefoot: Command, finished: str, tmp_path: Path) -> None:
    other = tmp_path / "folder" / "other.db"
    HOME.with_name("journal.db.pins.json").write_text('{"t": {"pin": "x"}}', encoding="utf-8")
    assert surefoot("journal", "backup", "back.up").code == 0
    assert Path("back.up.pins.json").read_text(encoding="utf-8") == '{"t": {"pin": "x"}}'
    for day in ("1", "2"):  # a backup beside the journal is none of its files
        assert surefoot("journal", "backup", f"{HOME}.day{day}").code == 0
    beside = [one.name for one in HOME.parent.glob("*.json")]
    assert sorted(beside) == ["journal.db.day1.pins.json", "journal.db.day2.pins.json", "journal.db.pins.json"]
    Path("new.db.paths.json").touch()  # which would be restored
    told = surefoot("journal", "backup", "new.db")
    assert (told.code, Path("new.db").exists()) == (2, False)
    assert told.err == "surefoot: new.db.paths.json is there already; name another file\n"
    before = HOME.read_bytes()
    for itself in (("backup", str(HOME)), ("copy", str(HOME), str(HOME.absolute()))):
        told = surefoot("journal", *itself)
        assert (told.code, told.out) == (2, "")
        assert "; name another" in told.err
    assert HOME.read_bytes() == before
    for _ in range(2):
        told = surefoot("journal", "copy", str(HOME), str(other))
        assert (told.code, told.err) == (0, "")
        assert told.out == f"copied 1 run to {other}\n"
    assert replayed(surefoot, finished, other)
    assert json.loads(other.with_name("other.db.pins.json").read_text(encoding="utf-8")) == {"t": {"pin": "x"}}
    assert surefoot("journal", "verify", "--journal", str(other), "--sample", "5").out == "all is well\n"
    assert surefoot("journal", "copy", str(HOME), str(other), "--since", "1h").out == f"copied 1 run to {other}\n"
    assert surefoot("journal", "copy", "nowhere.db", str(other)).code == 2


def test_old_runs_are_removed_once_somebody_says_so(surefoot: Command, finished: str) -> None:
    prune = ("journal", "prune", "--older", "0m")
    assert surefoot("journal", "prune", "--older", "1d").out == "removed 0 runs\n"
    assert surefoot(*prune, "--dry-run").out == "1 run would be removed\n"
    assert surefoot(*prune, "--status", "failed").out == "removed 0 runs\n"
    assert surefoot(*prune, "--by", "Ada").out == "removed 1 run\n"
    assert surefoot("show", finished).code == 2
    assert surefoot("journal", "verify").out == "all is well\n"
    (file,) = Path(".surefoot").glob("journal.db.pruned-*.json")
    told = json.loads(file.read_text(encoding="utf-8"))
    assert told[finished]["by"] == "Ada"
    assert re.fullmatch(r"[0-9a-f]{64}", told[finished]["hash"])
    assert told[finished]["at"] <= time.time()
    assert os.name != "posix" or file.stat().st_mode & 0o077 == 0


def test_ages() -> None:
    assert [seconds_in(age, "--older") for age in ("90d", "1.5h", " 30m ")] == [7_776_000, 5_400, 1_800]
    for age in ("", "90", "d", "1w", "-1d"):
        with pytest.raises(UsageError, match="such as 90d"):
            seconds_in(age, "--older")
