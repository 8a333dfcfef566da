"""How long the event loop stands still when thousands of runs are started at once.

Each run asks a model in this process three times, which takes its time like a server, and makes two calls. Meanwhile a
timer is due every few milliseconds; how late it comes is how long nothing else could have been done. Printed is the
longest of these with each journal, in real time and as CPU of the loop's thread.
`python benchmarks/admission.py [--runs N] [--most N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from surefoot import Agent, MemoryJournal, tool
from surefoot.journal.sqlite import SqliteJournal
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.messages import ModelRequest
from surefoot.types.ports import JournalStore

DUE_S = 0.002
REPLY_S = 0.02


@tool(effect="read")
async def look(n: int) -> int:
    """Look up a number."""
    return n * n


async def reply(request: ModelRequest) -> Scripted:
    """A call for the first two steps, then the answer; after some time."""
    await asyncio.sleep(REPLY_S)
    step = sum(message.role == "assistant" for message in request.messages)
    return calls(("look", {"n": step})) if step < 2 else "done"  # noqa: PLR2004  # as the docstring has it


async def longest_stall(runs: int, most: int, store: JournalStore) -> tuple[float, float, float]:
    """The longest time in which the loop did not turn, in real time and CPU, and that of all runs; in seconds."""
    agent = Agent(FunctionModel(reply, modes=("native",)), [look], journal=store, max_concurrent_runs=most)
    stalls, busy = [0.0], [0.0]

    async def watch() -> None:
        while True:
            before, cpu = time.perf_counter(), time.thread_time()
            await asyncio.sleep(DUE_S)
            busy.append(time.thread_time() - cpu)
            stalls.append(time.perf_counter() - before - DUE_S)

    watching, began = asyncio.create_task(watch()), time.perf_counter()
    await asyncio.sleep(DUE_S)
    ended = await asyncio.gather(*(agent.run("look up two numbers") for _ in range(runs)))
    took = time.perf_counter() - began
    watching.cancel()
    if wrong := [run for run in ended if run.status != "completed"]:
        raise SystemExit(f"{len(wrong)} runs of the bench went wrong: {wrong[0]}")
    await agent.aclose()
    return max(stalls), max(busy), took


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--runs", type=int, default=5_000)
    options.add_argument("--most", type=int, default=64)
    chosen = options.parse_args()
    print(f"{chosen.runs:,} runs at once, {chosen.most:,} of them driven at a time")
    print("| journal | longest stall | its CPU | all runs |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="surefoot-bench-") as folder:
        stores: dict[str, JournalStore] = {"memory": MemoryJournal(), "SQLite": SqliteJournal(Path(folder) / "runs.db")}
        for name, store in stores.items():
            stall, busy, took = asyncio.run(longest_stall(chosen.runs, chosen.most, store))
            print(f"| {name} | {stall * 1e3:,.0f} ms | {busy * 1e3:,.0f} ms | {took:.1f} s |")


if __name__ == "__main__":
    main()
