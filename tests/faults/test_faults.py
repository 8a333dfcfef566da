"""The programs beside this file in short: real kills, counted from outside. Run them by hand for more."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL"),
]


def test_a_few_kills_leave_every_write_made_once_and_every_run_ended() -> None:
    command = [sys.executable, str(Path(__file__).parent / "kills.py"), "--kills", "20", "--limit-s", "120"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
