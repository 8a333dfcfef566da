"""`surefoot worker`: a process that drives the runs of a journal which are ready, without serving anything."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from surefoot.cli import temporal
from surefoot.cli.agents_file import agents_in
from surefoot.cli.options import JournalOption
from surefoot.cli.setup import journal_path, opened
from surefoot.telling.text import without_password
from surefoot.types.ports import JournalStore
from surefoot.worker import Worker

_MOST_DRIVEN = 64
_DRIVEN_A_CORE = 8


def driven_at_once(drive: int | None) -> int:
    """How many runs a process drives at once: as said, else by its cores."""
    return min(_MOST_DRIVEN, _DRIVEN_A_CORE * (os.cpu_count() or 1)) if drive is None else drive


def worker(
    *,
    agents: Annotated[Path, typer.Option(metavar="FILE", help="Agents: a .py file with `agents`, or a .toml file.")],
    journal: JournalOption = None,
    drive: Annotated[
        int | None, typer.Option(min=1, help="Runs driven at once. Default: 8 for each core, up to 64.")
    ] = None,
    lease: Annotated[float, typer.Option(min=3, help="Seconds until others take its runs if it is cut off.")] = 30,
    grace: Annotated[float, typer.Option(min=0, help="Seconds that calls under way get when it is stopped.")] = 30,
    once: Annotated[bool, typer.Option("--once", help="End when no run is ready.")] = False,
    engine: Annotated[
        Literal["own", "temporal"], typer.Option(help="What schedules the runs; see docs/temporal.md.")
    ] = "own",
    address: temporal.AddressOption = "",
    namespace: temporal.NamespaceOption = "",
    queue: temporal.QueueOption = "surefoot",
    activity: temporal.ActivityOption = "move",
    deployment: temporal.DeploymentOption = "",
    calls_only: temporal.CallsOnlyOption = False,
) -> None:
    """Drive runs that are ready: started elsewhere, answered, or left behind by a process that died. Ctrl-C stops it.

    With --engine temporal, runs are Temporal workflows, and --drive, --lease, --grace and --once have no effect.
    """
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(message)s", force=True)
    place = journal_path(journal)
    store, shown = opened(place, make=True), without_password(place)
    served, most = agents_in(agents, store, place), driven_at_once(drive)
    if engine == "temporal":
        print(f"surefoot worker {os.getpid()} works on queue {queue} for {', '.join(served)}, from {shown}", flush=True)
        at = (address, namespace, queue)
        asyncio.run(temporal.work(store, served, at, activity, deployment, calls_only=calls_only))
        print(f"surefoot worker {os.getpid()} has ended", flush=True)
        return
    runs = "one run" if most == 1 else f"up to {most} runs"
    print(f"surefoot worker {os.getpid()} drives {runs} of {', '.join(served)} at once, from {shown}", flush=True)
    driver = Worker(store, served, most=most, lease_s=lease)
    left = asyncio.run(_worked(driver, store, grace, once=once))
    print(f"surefoot worker {os.getpid()} has ended; {_told(left)}", flush=True)


def _told(left: int | None) -> str:
    if left is None:
        return "no run is ready"
    return f"runs left to others, or to the next start: {left}" if left else "no run was under way"


async def _worked(driver: Worker, store: JournalStore, grace_s: float, *, once: bool) -> int | None:
    """Drive until a signal, then drain: how many runs were under way, None without a signal. A second one leaves."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def leave() -> None:
        if told.is_set():
            os._exit(1)
        told.set()
        if driver.driven:
            print("waiting for calls under way; a second signal leaves at once", file=sys.stderr)

    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, leave)
    working, waiting = asyncio.ensure_future(driver.run(once=once)), asyncio.ensure_future(told.wait())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        under_way = len(driver.driven) if told.is_set() else None
    finally:
        await driver.drain(grace_s)
        waiting.cancel()
        await working
        await store.aclose()
    return under_way
