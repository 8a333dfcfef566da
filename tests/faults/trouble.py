"""Workers that are killed, stopped and talked to at random, over one journal; the judge says what came of it.

    python tests/faults/trouble.py schedules --count 20
    python tests/faults/trouble.py words
    python tests/faults/trouble.py day

A schedule says which process gets which signal where, which runs there are and what people do; its seed reproduces it.
It is over when no run is at work. Then all processes are killed, people settle the doubts by the book, one more worker
drives what is left, and the judge looks. Workers are `surefoot worker`, forked from here where everything is imported
already, so this needs POSIX.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

from judge import Verdict, judge
from people import Habits, answer_all
from work import PLACES, agents, note, task_of

from surefoot.cli import process
from surefoot.cli import worker as _loaded  # noqa: F401  # once, before anything is forked
from surefoot.journal.memory import store_of

FORK = multiprocessing.get_context("fork")
LEASE_S = 3.0
LIMIT_S = 60.0
"""Seconds for each half of a schedule, and for a process to end."""

_LOOK_S = 0.01


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to a process in one life: a signal once it comes to a place (`work.py`), or after so long."""

    signal: int
    trip: str = ""
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is to happen. `workers` has for each worker the faults of its lives, `people` their names by process."""

    seed: int
    runs: Mapping[str, str]
    kinds: Mapping[str, str]
    workers: Sequence[Sequence[Fault]]
    people: Sequence[Sequence[str]] = (("Ada", "Bob"),)
    habits: Habits = Habits()
    lease_s: float = LEASE_S
    limit_s: float = LIMIT_S


def schedule_of(seed: int, runs: int = 20) -> Schedule:
    """The schedule of a seed: two workers with up to three faults each, a stop in every fourth."""
    chance = random.Random(seed)
    named = {f"{'clerk' if chance.random() < 0.7 else 'planner'}-{at}": "" for at in range(runs)}
    tasks = {run_id: task_of(run_id, chance) for run_id in named}
    faults = [[_fault(chance, signal.SIGKILL) for _ in range(chance.randint(1, 3))] for _ in range(2)]
    if seed % 4 == 0:
        faults[0][0] = _fault(chance, signal.SIGSTOP)
    return Schedule(seed, tasks, {run_id: run_id.partition("-")[0] for run_id in tasks}, faults)


def _fault(chance: random.Random, number: int) -> Fault:
    if chance.random() < 1 / 3:
        return Fault(number, after_s=chance.uniform(0.2, 1.5))
    return Fault(number, f"{chance.choice(PLACES)} {chance.randint(1, 40)}")


def _work(journal: str, folder: Path, lease_s: float, trip: str = "", *options: str) -> None:
    """A life of a worker."""
    os.environ["FAULTS_TRIP"] = trip
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    file = str(Path(__file__).parent / "work.py")
    sys.argv = ["surefoot", "worker", "--agents", file, "--journal", journal, "--lease", str(lease_s), *options]
    process()


def _speak(journal: str, folder: Path, names: Sequence[str], habits: Habits, seed: int, limit_s: float) -> None:
    """A life of a process of people."""

    async def speak() -> None:
        store = store_of(journal)
        await answer_all(store, names, folder / "book", habits, seed, limit_s)
        await store.aclose()

    asyncio.run(speak())


@dataclass
class Place:
    """Where a worker lives, again and again: each life has its fault, and the last ones none."""

    begin: Callable[[str], BaseProcess]
    faults: list[Fault]
    lease_s: float
    life: BaseProcess | None = None
    fault: Fault | None = None
    begun_s: float = 0.0
    stopped_s: float | None = None

    def look(self) -> None:
        """Begin a life where there is none, do to it what is due, and see what has become of it."""
        now = time.monotonic()
        if self.life is None or not self.life.is_alive():
            if self.life is not None:
                note(what="gone", victim=self.life.pid, signal=signal.SIGKILL)
            self.fault = self.faults.pop(0) if self.faults else None
            self.begun_s, self.stopped_s = now, None
            trip = f"{self.fault.signal} {self.fault.trip}" if self.fault and self.fault.trip else ""
            self.life = self.begin(trip)
            return
        pid = self.life.pid or 0
        if self.stopped_s is not None:
            if now > self.stopped_s + 2 * self.lease_s:
                self.stopped_s = None
                os.kill(pid, signal.SIGCONT)
        elif os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None:
            note(what="gone", victim=pid, signal=signal.SIGSTOP)
            self.stopped_s = now
        elif self.fault is not None and not self.fault.trip and now > self.begun_s + self.fault.after_s:
            os.kill(pid, self.fault.signal)
            self.fault = None

    def end(self) -> None:
        """Kill it."""
        if self.life is not None:
            self.life.kill()
            self.life.join(LIMIT_S)


def _begun(target: Callable[..., None], *given: object) -> BaseProcess:
    one = FORK.Process(target=target, args=given, daemon=True)
    one.start()
    return one


def _await_line(log: Path, sign: str) -> None:
    until = time.monotonic() + LIMIT_S
    while sign not in (log.read_text() if log.exists() else "") and time.monotonic() < until:
        time.sleep(_LOOK_S)


def play(schedule: Schedule, journal: str, folder: Path, between: Callable[[], None] = lambda: None) -> Verdict:
    """Let a schedule happen, and judge it. `between` is called again and again while it does."""
    os.environ["FAULTS_BOOK"] = str(folder / "book")
    asyncio.run(_start(schedule, journal))
    working = partial(_begun, _work, journal, folder, schedule.lease_s)
    places = [Place(working, list(faults), schedule.lease_s) for faults in schedule.workers]
    speaking = partial(_begun, _speak, journal, folder)
    people = [speaking(names, schedule.habits, schedule.seed + at, schedule.limit_s) for at, names in enumerate(schedule.people)]
    begun = time.monotonic()
    while any(one.is_alive() for one in people) or any(place.stopped_s is not None for place in places):
        for place in places:
            place.look()
        between()
        time.sleep(_LOOK_S)
    for place in places:
        place.end()
    habits, verdict = replace(schedule.habits, cancels=0.0, settles=True), Verdict()
    verdict.waits["a schedule"].append(time.monotonic() - begun)
    last, settling = working(), speaking(("Eve",), habits, schedule.seed, LIMIT_S)
    settling.join(2 * LIMIT_S)
    _await_line(folder / "log", f"worker {last.pid} drives")  # from then on it takes signals
    os.kill(last.pid or 0, signal.SIGTERM)
    last.join(LIMIT_S)
    once = working("", "--once")  # hears what was said at the very end
    once.join(LIMIT_S)
    for name, one in (("worker", last), ("worker --once", once), ("people", settling), *(("people", one) for one in people)):
        if one.exitcode != 0:
            verdict.faults.append(f"{name} ended with {one.exitcode}: {(folder / 'log').read_text()[-2000:]}")
            one.kill()
    verdict.add(asyncio.run(_judged(schedule, journal, folder)))
    return verdict


async def _start(schedule: Schedule, journal: str) -> None:
    store = store_of(journal)
    own = {name: replace(agent, name=name, journal=store) for name, agent in agents.items()}
    for run_id, task in schedule.runs.items():
        await own[schedule.kinds[run_id]].start(task, run_id=run_id)
    await store.aclose()


async def _judged(schedule: Schedule, journal: str, folder: Path) -> Verdict:
    store = store_of(journal)
    verdict = await judge(store, folder / "book", schedule.runs)
    await store.aclose()
    return verdict


def schedules(given: argparse.Namespace) -> Verdict:
    """So many schedules, one after the other."""
    verdict = Verdict()
    for seed in range(given.first, given.first + given.count):
        folder = Path(tempfile.mkdtemp(prefix=f"seed-{seed}-"))
        one = play(schedule_of(seed), str(folder / "runs.db"), folder)
        if not one.faults:
            shutil.rmtree(folder)
        one.faults = [f"seed {seed}: {fault}" for fault in one.faults]
        print(f"{folder}: {one.waits['a schedule'][0]:.1f} s, {len(one.faults)} faults", *one.faults, sep="\n  ", flush=True)
        verdict.add(one)
    return verdict


def main(arguments: Sequence[str]) -> int:
    """Do what was asked for; 1 if there was any fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    kinds = parser.add_subparsers(required=True)
    many = kinds.add_parser("schedules")
    many.add_argument("--count", type=int, default=20)
    many.add_argument("--first", type=int, default=0)
    many.set_defaults(do=schedules)
    given = parser.parse_args(arguments)
    verdict: Verdict = given.do(given)
    print(verdict.told())
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
