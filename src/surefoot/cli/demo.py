"""`surefoot demo`: real tasks for the embedded model, step by step at the terminal, or on the page while they go on."""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import shutil
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from surefoot.cli.serve import check_extra, served, site_of
from surefoot.cli.setup import journal_path
from surefoot.types.errors import RunBusy, RunExists

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surefoot.server.site import Site

_PACKAGE = Path(__file__).parents[1]
EXAMPLES = next(one for one in (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples") if one.is_dir())
"""The files of the demo: in the package where it is installed, at the top of a checkout."""
_FILES = ("served/*.*", "notes/*.md", "harvest/*.csv", "trip/*.md", "pages/*.txt", "*s.py", "summary.py", "harvest.py")
_GRACE_S = 5.0
_MOVES = ("queued", "ready", "running")


def demo(
    *,
    tasks: Annotated[
        list[str] | None, typer.Argument(metavar="[NUMBER]... [xTIMES]", help="Which tasks, and how often: 1 3 x10.")
    ] = None,
    on_page: Annotated[
        bool, typer.Option("--serve", help="Watch them on the page, with a question for you and a repaired plan.")
    ] = False,
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="With --serve: where its files and runs are kept.")
    ] = Path("surefoot-demo"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --serve: the port; 0 takes a free one.")] = 7319,
) -> None:
    """Run six real tasks on the embedded model. With --serve, the page shows them and one that asks you something.

    The page opens at once and fills as the model works. Start it again with --serve to see the same runs.
    """
    if not on_page:
        sys.argv[1:] = tasks or ()
        runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
        return
    check_extra("demo --serve")
    from surefoot.server.door import Names  # noqa: PLC0415  # what only this needs loads here
    from surefoot.server.site import Limits  # noqa: PLC0415

    shutil.copytree(EXAMPLES / "logbook" / "log", folder / "log", dirs_exist_ok=True)
    for path in (path for pattern in _FILES for path in EXAMPLES.glob(pattern)):
        if not (folder / path.name).exists():
            shutil.copy(path, folder)
    os.chdir(folder)  # where the tools of its agents look
    is_desktop = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    made = partial(site_of, journal_path(None), Path("agents.toml"), None, Limits(), 1)
    play = partial(_play, cast("Mapping[str, str]", json.loads(Path("tasks.json").read_text("utf-8"))))
    names, place = Names.of("127.0.0.1", (), ()), ("127.0.0.1", port, "")
    asyncio.run(served(made, names, place, _GRACE_S, play, opens=is_desktop))


async def _play(tasks: Mapping[str, str], site: Site, page: str) -> None:
    """Put the tasks on record, by their agents; the worker takes them up. Report each run's status."""
    print(f"{len(tasks)} tasks for the embedded model, one at a time; Ctrl-C ends.", flush=True)
    for name, task in tasks.items():
        with suppress(RunExists, RunBusy):  # an earlier start has begun it
            await site.agents[name].start(task, run_id=f"demo-{name}")
    site.stir()
    told = dict[str, str]()
    async for run in site.store.changes(0):
        status = "waits for you" if run.questions else run.status
        if told.get(run.run_id) != status != "queued":
            print(f"  {run.agent}: {status}", flush=True)
        told[run.run_id] = status
        if len(told) == len(tasks) and not set(told.values()).intersection(_MOVES):
            print(f"All runs have ended or wait for you: {page}", flush=True)
