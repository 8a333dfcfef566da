"""The commands for the embedded model: `model pull`, `model list`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from importlib.metadata import entry_points
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from surefoot.cli.live import stderr, stdout
from surefoot.models.files import ENCODER, QWEN_CODER, VOCABULARY, known_models
from surefoot.models.names import ENTRY_POINTS, PROVIDERS

app = typer.Typer(help="The embedded model: fetch it, see whether it is there.", no_args_is_help=True)

_EVERY_PERCENT = 10
"""How often a line is printed where no bar can be drawn."""


@app.command()
def pull(
    *,
    encoder: Annotated[bool, typer.Option("--encoder", help="The small encoder for choosing tools, instead.")] = False,
) -> None:
    """Fetch the embedded model once, and verify it. An interrupted pull goes on where it stopped."""
    # Only here, because it imports an HTTP client that nothing else on the command line needs.
    from surefoot.models.pull import pull as fetch  # noqa: PLC0415

    with _progress() as on_progress:
        for weights in (ENCODER, VOCABULARY) if encoder else (QWEN_CODER,):
            print(asyncio.run(fetch(on_progress, weights=weights)))


@app.command(name="list")
def listed() -> None:
    """List the models that surefoot can fetch, and the providers that it knows."""
    console = stdout()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("model", "size", "here", "file"):
        table.add_column(name, no_wrap=name != "file", overflow="fold", justify="right" if name == "size" else "left")
    for model in known_models():
        here = "verified" if model.verified else "not verified yet" if model.present else "no: surefoot model pull"
        table.add_row(*map(Text, (f"local ({model.name})", f"{model.size / 1e6:,.0f} MB", here, str(model.path))))
    console.print(table)
    console.print(f"\nservers: {', '.join(f'{name}:MODEL' for name in PROVIDERS)}, http://HOST:PORT/v1#MODEL")
    plugins = sorted({entry.name for entry in entry_points(group=ENTRY_POINTS)})
    console.print(f"plug-ins: {', '.join(f'{name}:MODEL' for name in plugins) or 'none'}")


@contextlib.contextmanager
def _progress() -> Generator[Callable[[int, int, str], None]]:
    """A bar on a terminal, a line now and then elsewhere."""
    console = stderr()
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda done, total, doing: bar.update(task, completed=done, total=total, description=doing)


class _Lines:
    """A line for each new thing that is done, and for each tenth of it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told = ("", -1)

    def __call__(self, done: int, total: int, doing: str) -> None:
        tenth = (doing, done * 100 // max(total, 1) // _EVERY_PERCENT)
        if tenth != self._told:
            self._told = tenth
            self._console.print(f"{doing}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB", soft_wrap=True)
