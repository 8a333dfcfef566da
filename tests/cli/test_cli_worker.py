"""`surefoot worker` as a process: it drives what was started elsewhere, and leaves on a signal without harm."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from processes import AGENTS, LIMIT_S, Forked, command, limited, told_until
from surefoot.cli.agents_file import agents_in
from surefoot.journal.sqlite import SqliteJournal

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def _agents(tmp_path: Path) -> None:
    (tmp_path / "agents.py").write_text(AGENTS, encoding="utf-8")


def started(folder: Path, *tasks: str) -> list[str]:
    """Runs of the clerk that nobody drives yet."""

    async def start() -> list[str]:
        journal = folder / "runs.db"
        agent = agents_in(folder / "agents.py", SqliteJournal(journal), str(journal))["clerk"]
        runs = [(await agent.start(one)).id for one in tasks]
        await agent.aclose()
        return runs

    return asyncio.run(start())


def statuses(folder: Path, runs: Sequence[str]) -> list[str]:
    async def look() -> list[str]:
        store = SqliteJournal(folder / "runs.db", read_only=True)
        found = [(await store.summary(one)).status for one in runs]
        await store.aclose()
        return found

    return asyncio.run(look())


def until(path: Path) -> None:
    limit = time.monotonic() + LIMIT_S
    while not path.exists():
        assert time.monotonic() < limit, path.name
        time.sleep(0.01)


@contextmanager
def child(folder: Path, *options: str) -> Generator[Forked]:
    given = ("--agents", "agents.py", "--journal", "runs.db", *options)
    with command("worker", *given, folder=folder) as process:
        try:
            with limited(process):
                yield process
        finally:
            process.kill()


def test_what_was_started_elsewhere_is_driven_until_nothing_is_ready(tmp_path: Path) -> None:
    runs = started(tmp_path, "say hello", "say it again")
    with child(tmp_path, "--once", "--drive", "1") as process:
        told, wrong = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, wrong) == (0, "")
    first, last = told.splitlines()
    assert re.fullmatch(rf"surefoot worker \d+ drives one run of clerk at once, from {tmp_path}/runs\.db", first)
    assert last == f"surefoot worker {process.pid} has ended; no run is ready"
    assert statuses(tmp_path, runs) == ["completed", "completed"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_the_next_worker_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    runs = started(tmp_path, "wait")
    with child(tmp_path) as process:
        until(tmp_path / "begun")
        process.send_signal(number)
        told, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0
    assert "runs left to others, or to the next start: 1" in told
    assert statuses(tmp_path, runs) == ["queued"]
    (tmp_path / "go").touch()
    with child(tmp_path, "--once") as process:
        assert process.wait(timeout=LIMIT_S) == 0
    assert statuses(tmp_path, runs) == ["completed"]


def test_a_second_signal_leaves_at_once_and_the_call_is_in_doubt(tmp_path: Path) -> None:
    runs = started(tmp_path, "write it slowly")
    with child(tmp_path, "--grace", "600") as process:
        until(tmp_path / "begun")
        process.terminate()
        told_until("a second signal exits at once", process, process.stderr)
        process.terminate()
        assert process.wait(timeout=LIMIT_S) == 1
    with child(tmp_path, "--once") as process:
        assert process.wait(timeout=LIMIT_S) == 0
    assert statuses(tmp_path, runs) == ["paused"]


def test_each_option_is_on_the_page_of_workers() -> None:
    page = (DOCS / "workers.md").read_text(encoding="utf-8")
    assert not [name for name in ("agents", "journal", "drive", "lease", "grace", "once") if f"--{name}" not in page]
