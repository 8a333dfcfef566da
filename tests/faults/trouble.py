"""Workers that are killed, stopped and talked to at random, over one journal; the judge says what came of it.

    python tests/faults/trouble.py schedules --count 20
    python tests/faults/trouble.py words
    python tests/faults/trouble.py day

A schedule says which process gets which signal where, which runs there are and what people do; its seed reproduces it.
It is over when no run is at work. Then all processes are killed, people settle the doubts by the book, one more worker
drives what is left, and the judge looks. Processes are forked from here, where everything is imported already, so this
needs POSIX.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar

from database import Database, harms_of
from disk import Harm
from judge import Verdict, judge
from people import Habits, Person, answer_all
from work import PLACES, agents, note, noted, task_of

from surefoot.cli.agents_file import agents_in
from surefoot.journal.memory import store_of
from surefoot.types.errors import JournalError, RunExists
from surefoot.types.ports import JournalStore
from surefoot.worker import Worker

T = TypeVar("T")
_LOG = logging.getLogger("trouble")

FORK = multiprocessing.get_context("fork")
AGENTS = Path(__file__).parent / "work.py"
LEASE_S = 6.0
LIMIT_S = 60.0
"""Seconds for each half of a schedule, and for a process to end."""
JUMPS_S = {signal.SIGUSR1: 3600.0, signal.SIGUSR2: -3600.0}
"""Signals that set a worker's clock wrong, and by how much."""

_LOOK_S = 0.01
_SUBMIT_S = 0.1
_MOST_TRIES = 200


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to a process in one life: a signal once it comes to a place (`work.py`), or after so long."""

    signal: int
    trip: str = ""
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is to happen. `runs` are their tasks, by ids that begin with the name of the agent.

    `workers` has for each worker the faults of its lives, `people` their names by process. A tool takes up to `work_s`
    seconds before its effect, and again after it. So many runs, the last ones, are submitted `late`: once the work has
    begun, one after the other.
    """

    seed: int
    runs: Mapping[str, str]
    workers: Sequence[Sequence[Fault]]
    people: Sequence[Sequence[str]] = (("Ada", "Bob"),)
    habits: Habits = Habits()
    work_s: float = 0.01
    harms: Sequence[Harm] = ()
    late: int = 0


def schedule_of(seed: int) -> Schedule:
    """Twenty runs, two workers with up to three faults each, in every fourth schedule a stop."""
    chance = random.Random(seed)
    runs = runs_of(chance, 20, ("clerk", "clerk", "planner"))
    faults = [[_fault(chance, signal.SIGKILL) for _ in range(chance.randint(1, 3))] for _ in range(2)]
    if seed % 4 == 0:
        faults[0][0] = _fault(chance, signal.SIGSTOP)
    return Schedule(seed, runs, faults, harms=harms_of(chance))


def words_of(seed: int) -> Schedule:
    """Two hundred runs whose workers live, and four people in three processes, who leave alone what `hasty` asks."""
    runs = runs_of(random.Random(seed), 200, ("clerk", "planner", "hasty"))
    habits = Habits(cancels=0.05, leaves="hasty", limit_s=600)
    return Schedule(seed, runs, ((), ()), (("Ada", "Bob"), ("Cy",), ("Dan",)), habits, work_s=0.1)


def day_of(seed: int) -> Schedule:
    """Five hundred runs with questions, four workers that are killed thirty times, one stopped for two leases.

    The server of a database is restarted five times.
    """
    chance = random.Random(seed)
    faults = [[Fault(signal.SIGKILL, after_s=chance.uniform(4, 16)) for _ in range(at)] for at in (8, 8, 7, 7)]
    faults[3].append(Fault(signal.SIGSTOP, f"in call {chance.randint(5, 40)}"))
    harms = [(chance.uniform(5, 15), "server restarted", chance.uniform(0, 20)) for _ in range(5)]
    runs, people = runs_of(chance, 500, ("clerk", "clerk", "planner")), (("Ada", "Bob"), ("Cy",), ("Dan",))
    return Schedule(seed, runs, faults, people, Habits(limit_s=1800), work_s=2.0, harms=harms)


def runs_of(chance: random.Random, count: int, kinds: Sequence[str]) -> Mapping[str, str]:
    """So many tasks, by ids that begin with the name of an agent."""
    names = [f"{chance.choice(kinds)}-{at}" for at in range(count)]
    return {name: task_of(name, chance) for name in names}


def _fault(chance: random.Random, number: int) -> Fault:
    if chance.random() < 1 / 3:
        return Fault(number, after_s=chance.uniform(0.2, 1.5))
    return Fault(number, f"{chance.choice(PLACES)} {chance.randint(1, 40)}")


def logged(folder: Path) -> None:
    """Have what this process says in the log."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logging.basicConfig(level=logging.INFO, force=True)


def _work(journal: str, folder: Path, trip: str = "", *, once: bool = False) -> None:
    """A life of a worker."""
    os.environ["FAULTS_TRIP"] = trip
    logged(folder)
    for number, jump_s in JUMPS_S.items():
        signal.signal(number, partial(_jump, jump_s))

    async def drive(store: JournalStore) -> None:
        served = agents_in(AGENTS, store, str(folder))
        note(what="born")
        await Worker(store, served, most=32, lease_s=LEASE_S).run(once=once)

    looked(journal, drive)


def _jump(by_s: float, *_: object) -> None:
    """Set the wall clock of this process wrong by so much."""
    time.time = lambda: time.clock_gettime(time.CLOCK_REALTIME) + by_s


def speak(journal: str, folder: Path, names: Sequence[str], habits: Habits) -> None:
    """A life of a process of people."""

    chance = random.Random(habits.seed)
    looked(
        journal,
        lambda store: answer_all([Person(name, store, folder / "book", habits, chance) for name in names]),
    )


@dataclass
class Place:
    """Where a worker lives, again and again: each life has its fault, and the last ones none."""

    begin: Callable[[str], BaseProcess]
    faults: list[Fault]
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
            if now > self.stopped_s + 2 * LEASE_S:
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


def begun(target: Callable[..., None], *given: object) -> BaseProcess:
    one = FORK.Process(target=target, args=given, daemon=True)
    one.start()
    return one


def play(
    schedule: Schedule, folder: Path, journal: str, suffer: Callable[[Sequence[Harm]], None] | None = None
) -> Verdict:
    """Let a schedule happen over a journal, to which `suffer` does harm, and judge it."""
    os.environ.update(FAULTS_BOOK=str(folder / "book"), FAULTS_WORK_S=str(schedule.work_s))
    runs = list(schedule.runs.items())
    first, late = runs[: len(runs) - schedule.late], runs[len(runs) - schedule.late :]
    looked(journal, lambda store: _start(store, first))
    working = partial(begun, _work, journal, folder)
    places = [Place(working, list(faults)) for faults in schedule.workers]
    speaking = partial(begun, speak, journal, folder)
    seeded = enumerate(schedule.people, schedule.seed)
    people = [speaking(names, replace(schedule.habits, seed=at)) for at, names in seeded]
    others = [("people", one) for one in people]
    if suffer is not None:
        others.append(("harm", begun(_harm, suffer, schedule.harms, folder / "book")))
    if late:
        others.append(("late", begun(_submit, late, journal, folder)))
    since = time.monotonic()
    while any(one.is_alive() for _, one in others) or any(place.stopped_s is not None for place in places):
        for place in places:
            place.look()
        time.sleep(_LOOK_S)
    for place in places:
        place.end()
    habits, verdict = replace(schedule.habits, cancels=0.0, leaves="", settles=True, limit_s=10 * LIMIT_S), Verdict()
    verdict.waits["a schedule"].append(time.monotonic() - since)
    last, settling = working(), speaking(("Eve",), habits)
    settling.join(11 * LIMIT_S)
    last.kill()
    last.join(LIMIT_S)
    once = begun(partial(_work, once=True), journal, folder)  # hears what was said at the very end
    once.join(LIMIT_S)
    for name, one in (("worker --once", once), ("people", settling), *others):
        if one.exitcode != 0:
            verdict.faults.append(f"{name} ended with {one.exitcode}: {(folder / 'log').read_text()[-2000:]}")
            one.kill()
    verdict.add(looked(journal, lambda store: judge(store, folder / "book", schedule.runs)))
    return verdict


def _harm(suffer: Callable[[Sequence[Harm]], None], harms: Sequence[Harm], book: Path) -> None:
    """Do harm once the work has begun."""
    _wait_for_work(book)
    suffer(harms)


def _wait_for_work(book: Path) -> None:
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until and not any(line["what"] == "made" for line in noted(book)):
        time.sleep(_LOOK_S)


def _submit(runs: Sequence[tuple[str, str]], journal: str, folder: Path) -> None:
    """Submit runs one after the other once the work has begun, each again until that is acknowledged."""
    logged(folder)
    _wait_for_work(folder / "book")
    for run_id, task in runs:
        note(what="submits", run=run_id)
        with suppress(RunExists):
            for _ in range(_MOST_TRIES):
                try:
                    looked(journal, partial(_start, runs=[(run_id, task)]))
                    break
                except JournalError:
                    _LOG.warning("run %s is submitted again", run_id, exc_info=True)
                    time.sleep(_SUBMIT_S)
        note(what="submitted", run=run_id)
        time.sleep(_SUBMIT_S)


async def _start(store: JournalStore, runs: Sequence[tuple[str, str]]) -> None:
    own = {name: replace(agent, name=name, journal=store) for name, agent in agents.items()}
    for run_id, task in runs:
        await own[run_id.partition("-")[0]].start(task, run_id=run_id)


def looked(journal: str, look: Callable[[JournalStore], Coroutine[None, None, T]]) -> T:
    """What somebody finds in a journal."""

    async def found() -> T:
        async with aclosing(store_of(journal)) as store:
            return await look(store)

    return asyncio.run(found())


def main(arguments: Sequence[str]) -> int:
    """Let so many schedules happen, one after the other; 1 if there was any fault. What went wrong keeps its folder."""
    kinds = {"schedules": schedule_of, "words": words_of, "day": day_of}
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--postgres", action="store_true", help="in a database, to which harm is done too")
    given = parser.parse_args(arguments)
    verdict, root = Verdict(), Path(tempfile.mkdtemp(prefix="faults-"))
    database = Database(root) if given.postgres else None
    for seed in range(given.first, given.first + given.count):
        folder = root / f"{given.kind}-{seed}"
        folder.mkdir()
        journal = str(folder / "runs.db") if database is None else database.made(folder.name.replace("-", "_"))
        one = play(kinds[given.kind](seed), folder, journal, database and database.suffer)
        one.faults = [f"seed {seed}: {fault}" for fault in one.faults]
        print(one.line(str(folder)), *one.faults, sep="\n  ", flush=True)
        verdict.add(one)
    if database is not None:
        database.close()
    if not verdict.faults:
        shutil.rmtree(root)
    print(verdict.told())
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
