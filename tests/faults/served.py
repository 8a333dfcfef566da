"""`surefoot serve` killed at random moments with twenty runs in flight, started again each time; then drained.

    python tests/faults/served.py --kills 50

Runs are started over HTTP, each with an idempotency key under which it is asked for again if the answer was lost. After
the last kill people settle the doubts. Twenty more runs are under way when the server is told to end: it has to leave
nothing in doubt, since every call has time to end. Then one more start, and the judge (`judge.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from urllib.error import URLError

from judge import Verdict, judge
from people import AT_WORK, Habits
from trouble import AGENTS, LIMIT_S, begun, logged, looked, speak
from work import note, noted, task_of

from surefoot.cli import process
from surefoot.types.ports import JournalStore

IN_FLIGHT = 20
GRACE_S = 10
_LOOK_S = 0.02


@dataclass
class Served:
    """A server that is started again and again over one journal; `life` is the process that lives now."""

    folder: Path
    life: BaseProcess = field(init=False)
    base: str = ""

    @property
    def journal(self) -> str:
        return str(self.folder / "runs.db")

    def start(self) -> None:
        """Start it, and wait until it says where."""
        log = self.folder / "log"
        log.touch()
        before = log.stat().st_size
        where = ("--journal", self.journal, "--port", "0", "--no-token")
        self.life = begun(_serve, self.folder, "serve", *where, "--grace", str(GRACE_S), "--drive", "32")
        until = time.monotonic() + LIMIT_S
        while not (told := log.read_text()[before:].partition("surefoot serves ")[2].partition("\n")[0]):
            if not self.life.is_alive() or time.monotonic() > until:
                raise TimeoutError(f"the server did not start: {log.read_text()[before:]}")
            time.sleep(_LOOK_S)
        self.base = told

    def await_work(self, runs: int) -> None:
        """Wait until so many runs were started, and one of them has got on in this life."""
        until, pid = time.monotonic() + LIMIT_S, self.life.pid
        while time.monotonic() < until:
            lines = noted(self.folder / "book")
            is_at_work = any(line["what"] == "made" and line["pid"] == pid for line in lines)
            if is_at_work and sum(line["what"] == "started" for line in lines) >= runs:
                return
            time.sleep(_LOOK_S)

    def end(self, number: int) -> float:
        """Send it a signal; the seconds until it has ended."""
        begun_s = time.monotonic()
        os.kill(self.life.pid or 0, number)
        self.life.join(LIMIT_S)
        return time.monotonic() - begun_s


def _serve(folder: Path, *given: str) -> None:
    """A life of the server."""
    logged(folder)
    sys.argv = ["surefoot", *given, "--agents", str(AGENTS)]
    process()


def start_runs(served: Served, seed: int, most: int, in_flight: int) -> None:
    """A process that asks for runs until there are `most`, or nobody answers; first for those whose answer was lost."""
    with suppress(ConnectionError, URLError):
        looked(served.journal, lambda store: _started(store, served, seed, most, in_flight))


async def _started(store: JournalStore, served: Served, seed: int, most: int, in_flight: int) -> None:
    answered = {line["key"] for line in noted(served.folder / "book") if line["what"] == "started"}
    for key in (f"k{at}" for at in range(most) if f"k{at}" not in answered):
        while sum(one.status in AT_WORK for one in (await store.list(limit=200)).runs) >= in_flight:  # noqa: ASYNC110  # what others do
            await asyncio.sleep(_LOOK_S)
        task = task_of(key, random.Random(f"{seed} {key}"))
        data = json.dumps({"agent": "clerk", "task": task}).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        request = urllib.request.Request(f"{served.base}v1/runs", data, headers)
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:  # noqa: ASYNC210  # nothing else goes on here
            note(what="started", key=key, started=json.load(answer)["run_id"], task=task)


async def judged(store: JournalStore, served: Served, wanted: int) -> Verdict:
    """What the judge says of all runs, one for each key."""
    started = {line["started"]: line["task"] for line in noted(served.folder / "book") if line["what"] == "started"}
    verdict = await judge(store, served.folder / "book", started)
    if not await store.count() == len(started) == wanted:
        verdict.faults.append(f"{wanted} runs were asked for, {await store.count()} are there")
    return verdict


async def doubts(store: JournalStore) -> Sequence[str]:
    """The runs that stand in doubt."""
    return [one.run_id for one in (await store.list(limit=1_000)).runs if one.standing == "in_doubt"]


def play(served: Served, kills: int, seed: int) -> Verdict:
    """Kill it so many times, settle what is in doubt, drain it, and judge."""
    os.environ.update(FAULTS_BOOK=str(served.folder / "book"), FAULTS_WORK_S="0.3")
    chance, verdict, most = random.Random(seed), Verdict(), 100_000
    served.start()
    people = partial(begun, speak, served.journal, served.folder)
    at_work = served.folder / "at-work"
    at_work.touch()
    speaking = people(("Ada", "Bob"), Habits(stays=str(at_work), limit_s=7_200))
    for _ in range(kills):
        starting = begun(start_runs, served, seed, most, IN_FLIGHT)
        served.await_work(IN_FLIGHT)
        time.sleep(chance.uniform(0, 1))
        served.end(signal.SIGKILL)
        starting.kill()
        starting.join(LIMIT_S)
        note(what="gone", victim=served.life.pid, signal=int(signal.SIGKILL))
        served.start()
    at_work.unlink()
    most = 1 + max(int(line["key"][1:]) for line in noted(served.folder / "book") if line["what"] == "started")
    starting = begun(start_runs, served, seed, most + 1, most)  # with the one whose answer may be lost
    _through(verdict, starting, speaking)
    _through(verdict, people(("Eve",), Habits(settles=True, limit_s=5 * LIMIT_S)))
    starting = begun(start_runs, served, seed, most + 1 + IN_FLIGHT, most)
    _through(verdict, starting)
    verdict.waits[f"drained, with a grace of {GRACE_S} s"].append(served.end(signal.SIGTERM))
    if served.life.exitcode != 0:
        verdict.faults.append(f"told to end, the server left with {served.life.exitcode}")
    verdict.faults += [f"{run_id}: in doubt behind a drain" for run_id in looked(served.journal, doubts)]
    served.start()
    _through(verdict, people(("Eve",), Habits(settles=True, limit_s=5 * LIMIT_S)))
    served.end(signal.SIGTERM)
    verdict.add(looked(served.journal, lambda store: judged(store, served, most + 1 + IN_FLIGHT)))
    return verdict


def _through(verdict: Verdict, *processes: BaseProcess) -> None:
    """Wait for processes that have to come to their end."""
    for one in processes:
        one.join(6 * LIMIT_S)
        if one.exitcode != 0:
            verdict.faults.append(f"{one.name} ended with {one.exitcode}")
            one.kill()


def main(arguments: Sequence[str]) -> int:
    """Kill, drain and judge; 1 if there was any fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    served = Served(Path(tempfile.mkdtemp(prefix="served-")))
    verdict = play(served, given.kills, given.seed)
    print(verdict.told())
    if verdict.faults:
        print(served.folder, (served.folder / "log").read_text()[-3000:])
        return 1
    shutil.rmtree(served.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
