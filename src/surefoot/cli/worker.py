"""`surefoot worker`: a process that drives runs that are ready, by itself or on Temporal; and `surefoot temporal`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from surefoot.agent import Agent
from surefoot.cli.agents_file import agents_in
from surefoot.cli.exits import JOURNAL_TROUBLE
from surefoot.cli.options import JournalOption
from surefoot.cli.setup import journal_path, open_journal
from surefoot.telling.text import without_password
from surefoot.types.errors import UsageError, extra_needed
from surefoot.types.ports import LEASE_S, JournalStore
from surefoot.worker import Worker

if TYPE_CHECKING:
    from temporalio.client import Client

app = typer.Typer(help="Runs driven as Temporal workflows.", no_args_is_help=True)

AddressOption = Annotated[
    str,
    typer.Option(metavar="HOST:PORT", help="Temporal's address. Default: Temporal's own settings, or localhost:7233."),
]
NamespaceOption = Annotated[str, typer.Option(help="Temporal's namespace. Default: Temporal's own settings.")]
QueueOption = Annotated[str, typer.Option(help="Temporal's task queue for the runs of these agents.")]
ActivityOption = Annotated[
    Literal["move", "run"],
    typer.Option(help="What an activity is: each model request and call, or a stretch of a run, which is faster."),
]
DeploymentOption = Annotated[
    str, typer.Option(help="Name of the Worker Deployment. Runs stay with their build until another one is current.")
]
CallsOnlyOption = Annotated[
    bool, typer.Option("--calls-only", help="Only make the calls of tools that name this queue; drive no runs.")
]


async def work(
    store: JournalStore,
    agents: Mapping[str, Agent[Any]],
    place: tuple[str, str, str],
    activity: Literal["move", "run"],
    deployment: str,
    *,
    calls_only: bool,
    lease_s: float,
) -> None:
    """Work at an address, in a namespace, on a task queue, until a signal; what is under way then gets 30 s."""
    _check_extra()
    from temporalio.common import WorkerDeploymentVersion  # noqa: PLC0415  # the same

    from surefoot.engines.temporal.worker import Engine, build_id, connected  # noqa: PLC0415  # needs temporalio

    (address, namespace, queue), told = place, asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, told.set)
    async with aclosing(store):
        client = await connected(store, address, namespace)
        build = WorkerDeploymentVersion(deployment, build_id()) if deployment else None
        if build is not None:
            print(f"this is build {build.build_id} of the deployment {deployment}", flush=True)
        made = Engine(
            store, agents, client, queue=queue, size=activity, deployment=build, calls_only=calls_only, lease_s=lease_s
        )
        await made.run(told)


@app.command()
def check(journal: JournalOption = None, address: AddressOption = "", namespace: NamespaceOption = "") -> None:
    """List runs on which Temporal and the journal disagree, and stuck workflows. Exit code 1 if there are any."""

    async def report(store: JournalStore, client: Client) -> int:
        from surefoot.engines.temporal.worker import checked, is_marked  # noqa: PLC0415  # needs temporalio

        told = [f"{run_id}: {why}" async for run_id, why in checked(store, client)]
        print("\n".join(told) or "Temporal and the journal agree")
        if not await is_marked(client):
            print("the namespace lacks the search attributes of runs; docs/temporal.md says how to register them")
        return JOURNAL_TROUBLE if told else 0

    if code := asyncio.run(_with_client(journal, address, namespace, report)):
        raise typer.Exit(code)


@app.command()
def adopt(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Whole ids of runs.")],
    journal: JournalOption = None,
    address: AddressOption = "",
    namespace: NamespaceOption = "",
) -> None:
    """End the workflows of runs, whatever they are stuck at; a worker starts each run afresh from its journal."""

    async def adopted(_store: JournalStore, client: Client) -> int:
        from surefoot.engines.temporal.worker import adopt  # noqa: PLC0415  # needs temporalio

        await adopt(client, runs)
        print(f"adopted {', '.join(runs)}; a worker takes them up within half a minute")
        return 0

    asyncio.run(_with_client(journal, address, namespace, adopted))


async def _with_client(
    journal: Any,  # Any: as the option gives it
    address: str,
    namespace: str,
    ask: Callable[[JournalStore, Client], Awaitable[int]],
) -> int:
    _check_extra()
    from surefoot.engines.temporal.worker import connected  # noqa: PLC0415  # needs temporalio

    async with aclosing(open_journal(journal_path(journal))) as store:
        return await ask(store, await connected(store, address, namespace))


def _check_extra() -> None:
    if find_spec("temporalio") is None:
        raise UsageError(f"Temporal needs temporalio; {extra_needed('temporal')}")


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
        int | None, typer.Option(min=1, help="Runs driven at once. Default: 8 per core, up to 64.")
    ] = None,
    lease: Annotated[float, typer.Option(min=3, help="Seconds until others take its runs if it is cut off.")] = LEASE_S,
    grace: Annotated[float, typer.Option(min=0, help="Seconds for calls in progress to finish at shutdown.")] = 30,
    once: Annotated[bool, typer.Option("--once", help="Exit when no run is ready.")] = False,
    engine: Annotated[
        Literal["own", "temporal"], typer.Option(help="What schedules the runs; see docs/temporal.md.")
    ] = "own",
    address: AddressOption = "",
    namespace: NamespaceOption = "",
    queue: QueueOption = "surefoot",
    activity: ActivityOption = "move",
    deployment: DeploymentOption = "",
    calls_only: CallsOnlyOption = False,
) -> None:
    """Drive runs that are ready: started elsewhere, answered, or left behind by a process that died. Ctrl-C stops it.

    With --engine temporal, runs are Temporal workflows, and --drive, --grace and --once have no effect.
    """
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(message)s", force=True)
    place = journal_path(journal)
    store, shown = open_journal(place, make=True), without_password(place)
    served, most = agents_in(agents, store, place), driven_at_once(drive)
    if engine == "temporal":
        print(f"surefoot worker {os.getpid()} works on queue {queue} for {', '.join(served)}, from {shown}", flush=True)
        at = (address, namespace, queue)
        asyncio.run(work(store, served, at, activity, deployment, calls_only=calls_only, lease_s=lease))
        print(f"surefoot worker {os.getpid()} has ended", flush=True)
        return
    runs = "one run" if most == 1 else f"up to {most} runs"
    print(f"surefoot worker {os.getpid()} drives {runs} of {', '.join(served)} at once, from {shown}", flush=True)
    driver = Worker(store, served, most=most, lease_s=lease)
    left = asyncio.run(_worked(driver, store, grace, once=once))
    told = f"runs left to others, or to the next start: {left}" if left else "no run was under way"
    print(f"surefoot worker {os.getpid()} has ended; {'no run is ready' if left is None else told}", flush=True)


async def _worked(driver: Worker, store: JournalStore, grace_s: float, *, once: bool) -> int | None:
    """Drive until a signal, then drain: how many runs were under way, None without a signal. A second one leaves."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def leave() -> None:
        if told.is_set():
            os._exit(1)
        told.set()
        if driver.driven:
            print("waiting for calls in progress; a second signal exits at once", file=sys.stderr)

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
