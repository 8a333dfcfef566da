"""Runs on Temporal: the worker of `surefoot worker --engine temporal`, and `surefoot temporal check` and `adopt`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from surefoot.agent import Agent
from surefoot.cli.exits import JOURNAL_TROUBLE
from surefoot.cli.options import JournalOption
from surefoot.cli.setup import journal_path, opened
from surefoot.types.errors import UsageError, extra_needed
from surefoot.types.ports import JournalStore

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
) -> None:
    """Work at an address, in a namespace, on a task queue, until a signal; what is under way then gets 30 s."""
    _check_extra()
    from temporalio.common import WorkerDeploymentVersion  # noqa: PLC0415  # the same

    from surefoot.engines.temporal.worker import Engine, build_id, connected  # noqa: PLC0415  # needs temporalio

    (address, namespace, queue), told = place, asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, told.set)
    try:
        client = await connected(store, address, namespace)
        build = WorkerDeploymentVersion(deployment, build_id()) if deployment else None
        if build is not None:
            print(f"this is build {build.build_id} of the deployment {deployment}", flush=True)
        made = partial(Engine, store, agents, client, queue=queue, size=activity, deployment=build)
        await made(calls_only=calls_only).run(told)
    finally:
        await store.aclose()


@app.command()
def check(journal: JournalOption = None, address: AddressOption = "", namespace: NamespaceOption = "") -> None:
    """List runs about which Temporal and the journal disagree, and stuck workflows. Exit code 1 if there are any."""

    async def found(store: JournalStore, client: Client) -> int:
        from surefoot.engines.temporal.worker import checked, is_marked  # noqa: PLC0415  # needs temporalio

        told = [f"{run_id}: {why}" async for run_id, why in checked(store, client)]
        print("\n".join(told) or "Temporal and the journal agree")
        if not await is_marked(client):
            print("the namespace lacks the search attributes of runs; docs/temporal.md says how to register them")
        return JOURNAL_TROUBLE if told else 0

    if code := asyncio.run(_with_client(journal, address, namespace, found)):
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

    store = opened(journal_path(journal))
    try:
        return await ask(store, await connected(store, address, namespace))
    finally:
        await store.aclose()


def _check_extra() -> None:
    if find_spec("temporalio") is None:
        raise UsageError(f"Temporal needs temporalio; {extra_needed('temporal')}")
