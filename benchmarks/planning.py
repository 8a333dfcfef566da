"""What a step of a plan costs: plans of tool steps that do nothing, 50 at a time, with and without a journal on disk.

All that is measured is surefoot's own CPU, beside a floor in the same rounds: plain asyncio that calls the same
function under a semaphore, waits for what a step depends on, and appends one line of JSON a step. Accepting the plan is
told apart.
`python benchmarks/planning.py [--rounds N] [--steps 500,1000,2000] [--profile]`.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import statistics
import tempfile
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

from surefoot import Agent, LoopConfig, MemoryJournal, SqliteJournal, tool
from surefoot.core.loop.fold import fold
from surefoot.testing.models import ScriptedModel
from surefoot.types.plan import PlanConfig, PlanStep
from surefoot.types.plan_events import PlanMade
from surefoot.types.ports import JournalStore
from surefoot.types.task import Task

PARALLEL = 50
CONFIG = LoopConfig(
    plan=PlanConfig(max_parallel=PARALLEL, max_steps=10_000, max_tool_calls=None, answer="off", evaluators=())
)


@tool(effect="read")
async def work(n: int) -> int:
    """Do nothing."""
    return n


def steps_of(count: int) -> tuple[PlanStep, ...]:
    """As many chains as run at once; each step uses the result of the one before it in its chain."""
    return tuple(
        PlanStep(
            f"s{at}",
            tool_id="work",
            parameters={"n": f"{{{{s{at - PARALLEL}}}}}" if at >= PARALLEL else at},
            dependencies=(f"s{at - PARALLEL}",) if at >= PARALLEL else (),
        )
        for at in range(count)
    )


async def floor(path: Path, count: int) -> float:
    """Seconds of CPU for the same calls without surefoot."""
    gate = asyncio.Semaphore(PARALLEL)
    done: dict[str, asyncio.Future[int]] = {}
    begun = time.process_time()
    with path.open("a", encoding="utf-8") as file:

        async def run(at: int) -> int:
            value = await done[f"s{at - PARALLEL}"] if at >= PARALLEL else at
            async with gate:
                result = await work(n=value)  # the bare function
            file.write(json.dumps({"step": f"s{at}", "arguments": {"n": value}, "result": result}) + "\n")
            file.flush()
            return result

        for at in range(count):
            done[f"s{at}"] = asyncio.ensure_future(run(at))
        await asyncio.gather(*done.values())
    return time.process_time() - begun


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of CPU: until the plan is accepted, and for all its steps."""

    accepting_s: float
    running_s: float


async def planned(store: JournalStore, count: int, run_id: str) -> Cost:
    """One run of a given plan."""
    accepted: list[float] = []

    def watch(event: object) -> None:
        if isinstance(event, PlanMade):
            accepted.append(time.process_time())

    agent = Agent(ScriptedModel([]), [work], reasoner="plan", config=CONFIG, journal=store)
    task = Task("work", steps=steps_of(count))
    begun = time.process_time()
    run = await agent.run(task, run_id=run_id, watch=watch)
    ended = time.process_time()
    if run.status != "completed" or run.calls != count:
        raise SystemExit(f"a run of the bench went wrong: {run}")
    return Cost(accepted[0] - begun, ended - accepted[0])


async def resumed(store: JournalStore, run_id: str) -> float:
    """Seconds of CPU to read a run and add it up again."""
    begun = time.process_time()
    records, _ = await store.read_recorded(run_id)
    fold(record.event for record in records)
    return time.process_time() - begun


async def memory_of(count: int) -> float:
    """KiB a step at the peak of a run, its journal on disk."""
    with tempfile.TemporaryDirectory(prefix="surefoot-bench-") as folder:
        store = SqliteJournal(Path(folder) / "journal.db")
        tracemalloc.start()
        await planned(store, count, "r")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        await store.aclose()
    return peak / 1024 / count


async def measured(rounds: int, count: int) -> str:
    """One row of the table: the median of the rounds, of which the first warms up."""
    seen: dict[str, list[float]] = {name: [] for name in ("floor", "accept", "memory", "sqlite", "resume")}
    for at in range(rounds + 1):
        with tempfile.TemporaryDirectory(prefix="surefoot-bench-") as folder:
            disk = SqliteJournal(Path(folder) / "journal.db")
            seen["floor"].append(await floor(Path(folder) / "floor.jsonl", count))
            in_memory = await planned(MemoryJournal(), count, f"m{at}")
            on_disk = await planned(disk, count, "r")
            seen["resume"].append(await resumed(disk, "r"))
            await disk.aclose()
        seen["accept"].append(on_disk.accepting_s)
        seen["memory"].append(in_memory.running_s)
        seen["sqlite"].append(on_disk.running_s)
    middle = {name: statistics.median(values[1:]) / count * 1000 for name, values in seen.items()}
    kib = await memory_of(count)
    return (
        f"| {count:,} | {middle['floor'] * 1000:.0f} µs | {middle['memory']:.2f} ms | {middle['sqlite']:.2f} ms "
        f"| {middle['sqlite'] / middle['floor']:.0f} | {middle['accept']:.2f} ms | {middle['resume']:.2f} ms "
        f"| {kib:.1f} KiB |"
    )


def profile(count: int) -> None:
    """Where the time of one run goes."""
    profiler = cProfile.Profile()
    profiler.enable()
    asyncio.run(planned(MemoryJournal(), count, "r"))
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", default="500,1000,2000")
    options.add_argument("--profile", action="store_true")
    chosen = options.parse_args()
    counts = [int(one) for one in chosen.steps.split(",")]
    if chosen.profile:
        profile(counts[-1])
        return
    print("| steps | floor | a step, memory | a step, SQLite | ratio | accepting | resuming | memory at the peak |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for count in counts:
        print(asyncio.run(measured(chosen.rounds, count)), flush=True)


if __name__ == "__main__":
    main()
