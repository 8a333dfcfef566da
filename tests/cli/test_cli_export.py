"""`surefoot export`: a run as a text to keep, on stdout or in a file."""

import json
from pathlib import Path

from cli_world import Command


def test_a_run_is_written_in_each_form(surefoot: Command, finished: str, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    wrote = surefoot("export", finished, "--form", "html", "--output", str(page))
    assert (wrote.out, wrote.err) == ("", f"written to {page}\n")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "六乘七" in text
    lines = surefoot("export", finished, "--form", "jsonl").out.splitlines()
    assert lines == surefoot("show", finished, "--events").out.splitlines()
    assert json.loads(lines[0])["event"]["type"] == "RunStarted"
