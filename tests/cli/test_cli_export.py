"""`surefoot export`: a run as a text to keep, on stdout or in a file."""

import json
from pathlib import Path

from cli_world import Command


def test_a_run_is_written_in_each_form(surefoot: Command, finished: str, tmp_path: Path) -> None:
    told = surefoot("export", finished[:6])
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"# Run {finished}\n")
    assert '- ` → arithmetic(expression="6*7")  #1.0 `' in told.out
    assert "六乘七" in told.out
    page = tmp_path / "run.html"
    wrote = surefoot("export", finished, "--form", "html", "--output", str(page))
    assert (wrote.out, wrote.err) == ("", f"written to {page}\n")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "六乘七" in text
    lines = surefoot("export", finished, "--form", "jsonl").out.splitlines()
    assert lines == surefoot("show", finished, "--events").out.splitlines()
    assert json.loads(lines[0])["event"]["type"] == "RunStarted"


def test_what_cannot_be_exported_is_said(surefoot: Command, finished: str, tmp_path: Path) -> None:
    assert surefoot("export", "nobody").code == 2
    there = surefoot("export", finished, "-o", str(tmp_path))
    assert there.code == 2
    assert str(tmp_path) in there.err
    assert surefoot("export", finished, "--form", "pdf").code == 2
