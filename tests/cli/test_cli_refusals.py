"""What cannot be meant is one clear line: the file, the option or the field, and what to do."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli_world import Command

from cases import rows


@pytest.mark.parametrize("case", rows("cli_refusals"))
def test_what_cannot_be_meant_is_one_clear_line(surefoot: Command, tmp_path: Path, case: Mapping[str, Any]) -> None:
    files: Mapping[str, str] = case.get("files", {})
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = surefoot(*case["argv"])
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert case["said"] in done.err
    assert "Traceback" not in done.err
    assert "sk-1234" not in done.err
    assert "surefoot.toml" not in files or done.err.startswith(f"surefoot: {tmp_path / 'surefoot.toml'}: ")
