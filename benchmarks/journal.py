"""What a large journal costs: it is built, and then listed, searched by prefix and typo, and opened.

`python benchmarks/journal.py [--runs 100000] [--keep FILE]`. Each figure is the CPU time of a store that has just been
made, its opening included; the start of Python is not.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from surefoot.agent import Agent
from surefoot.cli.setup import find
from surefoot.journal.sqlite import SqliteJournal
from surefoot.testing.models import ScriptedModel, calls
from surefoot.tools.function import tool
from surefoot.types.errors import UsageError
from surefoot.types.events import Event, RunStarted

BATCH = 500


def id_of(number: int) -> str:
    """An id whose beginning tells it from most others, as random ones have it."""
    return f"{number:08x}"[::-1]


async def events_of_one() -> list[Event]:
    """A run of two calls, as an agent makes it."""

    @tool(effect="read")
    async def exam_score(name: str) -> int:
        """Exam score of one student."""
        return len(name)

    events: list[Event] = []
    wanted = calls(("exam_score", {"name": "Alice"}), ("exam_score", {"name": "Bob"}))
    agent = Agent(ScriptedModel([wanted, "171"]), tools=[exam_score])
    await agent.run("What is the sum of their scores?", watch=events.append)  # type: ignore[arg-type]  # no signals without `stream`
    return events


async def build(path: Path, runs: int) -> None:
    """So many runs, most of them ended, one in a hundred waiting."""
    store, events = SqliteJournal(path), await events_of_one()
    for begin in range(0, runs, BATCH):
        opened = [await store.open(id_of(number), create=True) for number in range(begin, min(begin + BATCH, runs))]
        for number, run in enumerate(opened):
            told = [_renamed(event, run.run_id) for event in (events if number % 100 else events[:-1])]
            await run.append(told, "soon")
        await asyncio.gather(*(run.release("" if number % 100 else "approval") for number, run in enumerate(opened)))
    await store.aclose()


def _renamed(event: Event, run_id: str) -> Event:
    if not isinstance(event, RunStarted):
        return event
    return RunStarted(
        run_id, event.task, event.speakers, event.tools, event.prompts, event.instructions, event.reasoner, event.config
    )


async def timed(path: Path, work: Callable[[SqliteJournal], Awaitable[object]], *, read_only: bool = True) -> float:
    """CPU milliseconds of that work on a new store."""
    begun = time.process_time()
    store = SqliteJournal(path, read_only=read_only)
    await work(store)
    spent = time.process_time() - begun
    await store.aclose()
    return spent * 1e3


async def typo(store: SqliteJournal) -> None:
    """Look for a run that is not there."""
    try:
        await find(store, "zzzz")
    except UsageError:
        return
    raise AssertionError("it was found")


async def measure(path: Path, runs: int) -> None:
    """Print the figures, each the best of three."""
    some = id_of(runs // 2)
    works: dict[str, Callable[[SqliteJournal], Awaitable[object]]] = {
        "runs, the newest 20": lambda store: store.runs(20),
        "runs, the newest 1,000": lambda store: store.runs(1_000),
        "show, whole id": lambda store: find(store, some),
        "show, prefix of one": lambda store: find(store, some[:6]),
        "show, typo": typo,
        "resume, open by id": lambda store: store.open(some),
        "run, open a new one": lambda store: store.open(f"new-{time.monotonic_ns()}", create=True),
    }
    for name, work in works.items():
        is_read = not name.startswith(("resume", "run,"))
        best = min([await timed(path, work, read_only=is_read) for _ in range(3)])
        print(f"{name:28}{best:10.1f} ms CPU")


def main() -> None:
    """Build, measure, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--runs", type=int, default=100_000)
    options.add_argument("--keep", type=Path, help="a journal that an earlier call has built, or where to build it")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.keep or Path(folder) / "runs.db"
        if not path.exists():
            begun = time.perf_counter()
            asyncio.run(build(path, chosen.runs))
            print(f"{chosen.runs:,} runs built in {time.perf_counter() - begun:.0f} s")
        asyncio.run(measure(path, chosen.runs))


if __name__ == "__main__":
    main()
