"""How long `GET /v1/runs/{id}` takes while a server drives a hundred runs and answers long requests.

    python benchmarks/serving.py [--seconds N]

`surefoot serve` runs in a process of its own over a SQLite file. Its runs never end: a model in its process answers
after a second with one call of one read. One client asks for a run again and again; another asks, one
after the other, for a list, and of a run of 5,000 steps for its state, its rows, a search, `verify` and the export.
Source: spec/serving.md, section 13.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from long_run import long_run

from surefoot import Agent, Budget, LoopConfig, tool
from surefoot.testing.models import FunctionModel, Scripted, calls
from surefoot.types.messages import ModelRequest

DRIVEN = 100
STEPS = 5_000
LONG = ("state?at=9000", "rows?since=5000&limit=1000", "rows?q=nothing", "verify", "export")
_THINKS_S = 1.0
_numbers = itertools.count()


@tool(effect="read")
async def look(n: int) -> str:
    """Look up a number."""
    return f"the number {n} stands on page {n * 7} of the book"


async def reply(_: ModelRequest) -> Scripted:
    """One more call, always another."""
    await asyncio.sleep(_THINKS_S)
    return calls(("look", {"n": next(_numbers)}))


agents = {
    "reader": Agent(
        FunctionModel(reply, modes=("native",)), [look], config=LoopConfig(budget=Budget(max_steps=100_000))
    )
}
"""What `surefoot serve --agents` takes from this file."""


async def _ask(client: aiohttp.ClientSession, path: str) -> float:
    began = time.monotonic()
    async with client.get(path) as response:
        await response.read()
        response.raise_for_status()
    return time.monotonic() - began


async def _start(client: aiohttp.ClientSession, key: int) -> str:
    asked, headers = {"agent": "reader", "task": "Read."}, {"Idempotency-Key": f"k{key}"}
    async with client.post("/v1/runs", json=asked, headers=headers) as response:
        response.raise_for_status()
        return str((await response.json())["run_id"])


async def _measure(base: str, seconds: float) -> None:
    """Start the runs, then ask for one of them while the long requests are made."""
    async with aiohttp.ClientSession(base) as client:
        run_id = [await _start(client, key) for key in range(DRIVEN)][-1]
        before = await _steps(client)
        until, short, long = time.monotonic() + seconds, list[float](), dict[str, list[float]]()

        async def ask_long() -> None:
            for path in itertools.cycle(("/v1/runs?limit=200", *(f"/v1/runs/long/{one}" for one in LONG))):
                if time.monotonic() > until:
                    return
                long.setdefault(path.partition("?")[0], []).append(await _ask(client, path))

        asking = asyncio.create_task(ask_long())
        while time.monotonic() < until:
            short.append(await _ask(client, f"/v1/runs/{run_id}"))
            await asyncio.sleep(0.02)
        await asking
        steps = await _steps(client) - before
    short.sort()
    print(f"{DRIVEN} runs driven, {steps / seconds:.0f} steps/s; load {os.getloadavg()[0]:.1f}")
    print(f"GET /v1/runs/{{id}}: {len(short)} asked, p50 {statistics.median(short) * 1000:.0f} ms, ", end="")
    print(f"p99 {short[len(short) * 99 // 100] * 1000:.0f} ms, longest {short[-1] * 1000:.0f} ms")
    for path, seen in long.items():
        print(f"{path}: {len(seen)} asked, median {statistics.median(seen) * 1000:.0f} ms")


async def _steps(client: aiohttp.ClientSession) -> int:
    """Calls of all its runs so far."""
    async with client.get("/v1/runs?limit=200") as response:
        return sum(run["calls"] for run in (await response.json())["runs"] if run["run_id"] != "long")


async def main() -> None:
    """Write the long run, serve it, and measure."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--seconds", type=float, default=60)
    seconds = options.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="surefoot-bench-", ignore_cleanup_errors=True) as folder:
        await long_run(STEPS, Path(folder), has_body=False)
        given = ("--agents", __file__, "--journal", f"{folder}/long.db", "--port", "0", "--no-token", "--drive", "128")
        server = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "surefoot",
            "serve",
            *given,
            "--grace",
            "1",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert server.stdout is not None
        said = (await server.stdout.readline()).decode()
        try:
            await _measure(said.split()[-1].partition("#")[0].rstrip("/"), seconds)
        finally:
            server.terminate()
            await server.wait()


if __name__ == "__main__":
    asyncio.run(main())
