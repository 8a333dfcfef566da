"""The commands of the knowledge store: `knowledge add`, `search` and `verify`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from surefoot.cli.live import put, stdout
from surefoot.cli.options import ByOption, JsonOption
from surefoot.cli.setup import closed_after
from surefoot.knowledge.bridge import OPERATOR, KnowledgeBridge
from surefoot.knowledge.tools import entry_from
from surefoot.telling.text import Line, json_line, visible
from surefoot.types import knowledge
from surefoot.types.errors import UsageError
from surefoot.types.knowledge import LEAST_LIMIT, MOST_LIMIT, ConventionResult, Knowledge

T = TypeVar("T")

STORE_VARIABLE = "SUREFOOT_KNOWLEDGE"
_DEFAULT = Path(".surefoot", "knowledge.db")

app = typer.Typer(help="What is known about a workspace: facts, and conventions of its folders.", no_args_is_help=True)


StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="Knowledge store. Default: $SUREFOOT_KNOWLEDGE, else .surefoot/knowledge.db in this folder.",
        show_default=False,
    ),
]
RootOption = Annotated[
    Path | None, typer.Option("--root", help="The workspace. Default: this folder.", show_default=False)
]
VouchOption = Annotated[str, typer.Option("--by", help="Who vouches for it.")]


@app.command()
def add(
    *,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="What it is about.")],
    predicate: Annotated[str, typer.Argument(metavar="PREDICATE", help="What is said of it.")],
    rest: Annotated[str, typer.Argument(metavar="OBJECT", help="The rest of the sentence.")],
    directory: Annotated[str | None, typer.Option(help="Makes it a convention of this folder.")] = None,
    language: Annotated[str | None, typer.Option(help="Programming language that it is about.")] = None,
    kind: Annotated[knowledge.KnowledgeType, typer.Option("--type", help="What kind of knowledge it is.")] = "Fact",
    confidence: Annotated[float, typer.Option(min=0, max=1, help="How certain it is, from 0 to 1.")] = 0.8,
    by: VouchOption = OPERATOR,
    store: StoreOption = None,
    root: RootOption = None,
) -> None:
    """Store a fact or a convention that you vouch for."""
    said = {"subject": subject, "predicate": predicate, "object": rest, "directory": directory, "language": language}
    said |= {"type": kind, "confidence": confidence}
    entry = entry_from({name: value for name, value in said.items() if value is not None})
    if not by.strip():
        raise UsageError("--by is empty; give the name of who vouches for it")
    store_path(store).parent.mkdir(parents=True, exist_ok=True)

    async def added(bridge: KnowledgeBridge) -> tuple[Knowledge, ...]:
        return await bridge.add([entry], by=by)

    put(stdout(), _lines(_with(store, root, added, make=True)))


@app.command()
def search(
    *,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words; with --directory a language or a topic.")],
    directory: Annotated[str | None, typer.Option(help="Show the conventions that hold in this folder.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=LEAST_LIMIT, max=MOST_LIMIT, help="How many.")] = 10,
    as_json: JsonOption = False,
    store: StoreOption = None,
    root: RootOption = None,
) -> None:
    """Look for facts, verified or not, or for the conventions of a folder, nearest first."""

    async def recall(bridge: KnowledgeBridge) -> ConventionResult:
        if directory is None:
            return ConventionResult(await bridge.recall(query, limit))
        return await bridge.retrieve_scoped_conventions(directory, query, limit)

    result = _with(store, root, recall)
    if as_json:
        for entry in result.items:
            print(json_line(entry))
        return
    lines = _lines(result.items) or [Line("nothing found")]
    lines += [Line(f"{result.more} more not shown", "dim")] if result.more else []
    put(stdout(), [*lines, *(Line(visible(error), "warn") for error in result.errors)])


@app.command()
def verify(
    *,
    entry_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the entry, as `search` shows it.")],
    by: ByOption,
    store: StoreOption = None,
    root: RootOption = None,
) -> None:
    """Vouch for something that a model stored; from then on it can be a convention."""

    async def vouched(bridge: KnowledgeBridge) -> tuple[Knowledge, ...]:
        return (await bridge.verify(entry_id, by=by),)

    put(stdout(), _lines(_with(store, root, vouched)))


def store_path(given: Path | None) -> Path:
    """Where the knowledge store is: the option, else the environment, else this folder's own."""
    return (given or Path(os.environ.get(STORE_VARIABLE) or _DEFAULT)).absolute()


def _with(
    store: Path | None, root: Path | None, work: Callable[[KnowledgeBridge], Awaitable[T]], *, make: bool = False
) -> T:
    path = store_path(store)
    if not make and not path.exists():
        raise UsageError(f"no knowledge store at {path}; `surefoot knowledge add` makes one, --store names another")
    bridge = KnowledgeBridge(knowledge.ConventionsConfig(str((root or Path.cwd()).absolute()), store=str(path)))
    return asyncio.run(closed_after(bridge, work))


def _lines(entries: Iterable[Knowledge]) -> list[Line]:
    lines: list[Line] = []
    for entry in entries:
        standing = f"unverified, run {entry.run_id} call {entry.call_id}" if entry.run_id else "unverified"
        if not entry.id or entry.verified:
            standing = f"verified by {entry.verified_by}" if entry.id else entry.source
        origin = [f"from {entry.origin}"] if entry.origin else []
        marks = ", ".join((entry.type, f"confidence={entry.confidence:.2f}", *origin, standing))
        lines.append(Line(visible(f"{entry.id or 'file'}  [{marks}]"), "head"))
        lines.append(Line(visible(entry.content), indent=4))
    return lines
