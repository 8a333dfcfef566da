"""The programs beside this file in short: real kills, counted from outside. Run them by hand for more."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL"),
]


def run(program: str, *given: str, limit_s: float) -> None:
    command = [sys.executable, str(Path(__file__).parent / program), *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_few_kills_leave_every_write_made_once_and_every_run_ended() -> None:
    run("kills.py", "--kills", "20", "--limit-s", "120", limit_s=240)


def test_what_workers_do_that_are_killed_stopped_and_talked_to_is_judged_right() -> None:
    run("trouble.py", "schedules", "--count", "2", limit_s=500)


def test_a_server_that_is_killed_and_drained_loses_nothing_and_repeats_nothing() -> None:
    run("served.py", "--kills", "3", limit_s=500)


@pytest.mark.scale
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("program", "given"),
    [
        ("trouble.py", ("schedules", "--count", "200")),
        ("trouble.py", ("words",)),
        ("trouble.py", ("day",)),
        ("served.py", ("--kills", "50")),
    ],
)
def test_trouble_in_full(program: str, given: tuple[str, ...]) -> None:
    run(program, *given, limit_s=7000)
