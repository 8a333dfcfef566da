"""The commands that list tools before there is a run: `check` those of a run, `mcp list` those of MCP servers."""

from __future__ import annotations

import asyncio
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surefoot.cli import options as shared
from surefoot.cli.exits import DONE, JOURNAL_TROUBLE
from surefoot.cli.live import put, stderr, stdout
from surefoot.cli.logs import replay as replayed
from surefoot.cli.options import Options, changed, takes_options
from surefoot.cli.setup import journal_path, recipe_from, served, tools_of
from surefoot.cli.suggest import suggest
from surefoot.core.gate.effects import bare_name, guess, is_called_directory
from surefoot.core.state.window import pager_spec
from surefoot.core.text.json import pin_of
from surefoot.journal.memory import store_of
from surefoot.runtime.offers import selection
from surefoot.runtime.pins import Pins
from surefoot.telling.text import Line, count, json_line, visible
from surefoot.tools.mcp.config import McpServer
from surefoot.tools.mcp.offers import Listing
from surefoot.tools.mcp.servers import McpServers
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.events import ToolsSelected
from surefoot.types.guard import GuardConfig
from surefoot.types.ports import JournalStore
from surefoot.types.rules import as_declared
from surefoot.types.tools import Catalogue, Effect, ToolSpec

if TYPE_CHECKING:
    from mcp_types import Prompt, Resource

_PIN_CHARS = 12


@dataclass(frozen=True, slots=True)
class Checked:
    """One tool as the gate would take it.

    `effect` is what the gate counts with (None: unknown), `guess` what the name says to a person who may declare it.
    `directory`: a record of it may say where something goes to, as declared or by its name; `identity` are the fields
    that say whose record it is.
    `pinned` says of a foreign tool how it stands: "new", "same", or how it differs from what is pinned. `notes` are
    what a person should know, `declare` what to write where.
    """

    name: str
    server: str
    effect: Effect | None
    declared: bool
    guess: Effect | None
    egress: bool
    directory: bool
    directory_declared: bool
    identity: tuple[str, ...]
    pin: str
    pinned: str
    notes: tuple[str, ...]
    declare: str

    @property
    def is_changed(self) -> bool:
        return self.pinned not in ("", "new", "same")


@takes_options
def check(
    *,
    options: Options,
    accept: Annotated[
        list[str] | None, typer.Option(metavar="TOOL", help="Pin this foreign tool as it is now; repeatable.")
    ] = None,
    by: Annotated[str, typer.Option("--by", help="With --accept: your name; it is kept with the pin.")] = "",
    is_suggesting: Annotated[
        bool, typer.Option("--suggest", help="Draft declarations for --rules, for you to review.")
    ] = False,
    replay: Annotated[
        Path | None, typer.Option(metavar="LOGS.jsonl", help="What the gate would have decided in these recorded runs.")
    ] = None,
    config: shared.SettingsOption = None,
    journal: shared.JournalOption = None,
    as_json: shared.JsonOption = False,
) -> None:
    """List the tools that a run with these options would have, how the gate sees them, and what to declare.

    With --replay: apply the gate to recorded runs, one per line, as messages of OpenAI's chat API. Tools are then those
    of --tools and --mcp, and those that the lines describe.
    """
    if is_suggesting and (replay is not None or as_json or accept):
        raise UsageError("--suggest cannot be combined with --replay, --json or --accept")
    _, by_file, _ = shared.settings_for(config, options)
    limits = changed(options, by_file) or by_file
    recipe = recipe_from(options)
    if replay is not None:
        recipe = replace(recipe, use=())
    path = journal_path(journal)
    offered = asyncio.run(served(recipe.mcp, McpServers.tools)) if recipe.mcp else ()
    guard = limits.guard or GuardConfig()
    specs = [as_declared(tool.spec, guard.declared) for tool in (*tools_of(recipe, path), *offered)]
    if replay is not None:
        raise typer.Exit(replayed(replay, specs, guard, as_json=as_json))
    if is_suggesting:
        print(suggest(specs), end="")
        raise typer.Exit(DONE)
    taken: list[ToolSpec] = []
    if accept:
        if not by.strip():
            raise UsageError("--accept needs the name of the person who reviewed the tool: give --by")
        foreign = {spec.name: spec for spec in specs if spec.is_foreign}
        if unknown := [name for name in accept if name not in foreign]:
            known = f"there are {', '.join(foreign)}" if foreign else "none is configured"
            raise UsageError(f"--accept {unknown[0]}: no such foreign tool; {known}")
        taken = [foreign[name] for name in accept]
    found = checked(specs, replace(limits, guard=guard), asyncio.run(_pinned(store_of(path), specs, taken, by)))
    if as_json:
        for one in found:
            print(json_line(one))
    else:
        put(stdout(), lines_of(found))
    raise typer.Exit(DONE)


async def _pinned(
    store: JournalStore, specs: Sequence[ToolSpec], taken: Sequence[ToolSpec], by: str
) -> Sequence[tuple[ToolSpec, str | None]]:
    """How foreign tools differ from their pins, once those that were `taken` are pinned."""
    async with aclosing(store):
        pins = Pins(store.side)
        if taken:
            await pins.take(taken, by)
        return await pins.look(specs)


def checked(
    specs: Sequence[ToolSpec], config: LoopConfig, differences: Sequence[tuple[ToolSpec, str | None]]
) -> list[Checked]:
    """The tools as the gate would take them, in their order. Raises `ConfigError` as `selection` does.

    `differences` is what `Pins.look` gives of them.
    """
    guard = config.guard or GuardConfig()
    (selected,) = selection(Catalogue((*specs, pager_spec())), config) or (ToolsSelected(()),)
    dropped = {name: f"{stage}: {why}" for name, stage, why in selected.dropped}
    pinned = {spec.name: "new" if told is None else told or "same" for spec, told in differences}
    found: list[Checked] = []
    for spec in specs:
        taken, said = guess(spec, guard.guess), guess(spec, "all")
        notes = [f"hidden: {dropped[spec.name]}"] if spec.name in dropped else []
        notes += [f"asks at each call: {selected.doubted[spec.name]}"] if spec.name in selected.doubted else []
        state = pinned.get(spec.name, "")
        if state == "new" and guard.pins == "strict":
            notes.append(f"hidden: nobody has pinned it; --accept {spec.name} pins it")
        elif state not in ("", "new", "same"):
            notes.append(f"hidden: it has changed since it was pinned; --accept {spec.name} pins it as it is now")
        effect = said.effect or "EFFECT"  # whoever declares it has to know what the tool does
        declare = f'@tool(effect="{effect}")'
        if spec.server:
            declare = f'in the file of server {spec.server}: "tools": {{"{bare_name(spec)}": {{"effect": "{effect}"}}}}'
        found.append(
            Checked(
                spec.name,
                spec.server,
                taken.effect,
                spec.declared,
                said.effect,
                taken.egress,
                spec.directory if spec.directory is not None else not spec.is_foreign and is_called_directory(spec),
                spec.directory is not None,
                spec.identity,
                pin_of(spec),
                state,
                tuple(notes),
                "" if spec.declared else declare,
            )
        )
    return found


def lines_of(found: Sequence[Checked]) -> list[Line]:
    """The tools under each other, each with what there is to say about it."""
    width = max((len(visible(one.name)) for one in found), default=0)
    lines: list[Line] = []
    for one in found:
        whose = "declared" if one.declared else f"undeclared, its name says {one.guess or 'nothing'}"
        effect = f"{one.effect or 'unknown'}{' +egress' if one.egress else ''}"
        effect += (" +directory" if one.directory_declared else " +directory (its name)") if one.directory else ""
        whose += f", a record is named by {', '.join(one.identity)}" if one.identity else ""
        pin = f"  pin {one.pin[:_PIN_CHARS]} ({'changed' if one.is_changed else one.pinned})" if one.pinned else ""
        lines.append(Line(f"{visible(one.name):<{width}}  {effect:<20}  {whose}{pin}", "" if one.declared else "warn"))
        lines += [Line(visible(f"! {note}"), "bad", 2) for note in one.notes]
        if one.is_changed:
            lines += [Line(visible(row), "dim", 4) for row in one.pinned.splitlines()]
        if one.declare:
            lines.append(Line(visible(f"declare: {one.declare}"), "dim", 2))
    undeclared = sum(not one.declared for one in found)
    return [*lines, Line(f"{count(len(found), 'tool')}, {undeclared} undeclared", "head")]


app = typer.Typer(help="MCP servers: see what they offer, log in.", no_args_is_help=True)


@app.command(name="list")
def list_tools(
    files: Annotated[list[Path], typer.Argument(metavar="FILE.json...", help="Files of MCP servers.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON per tool.")] = False,
) -> None:
    """Start the servers in these files and list their tools: effect, pin, what is left out and why.

    If a server cannot be reached, it is named, the others are listed, and the exit code is 1.
    """
    found = asyncio.run(_listings(files))
    for server, held in found:
        if isinstance(held, UsageError):
            put(stderr(), [Line(visible(str(held)), "bad")])
            continue
        listing, resources, prompts = held
        if as_json:
            for offer in listing.offers.values():
                print(json_line({"server": server, "remote": offer.remote, "pin": offer.pin, "spec": offer.spec}))
            for one in resources:
                print(json_line({"server": server, "resource": one.uri, "name": one.name, "type": one.mime_type}))
            for one in prompts:
                print(json_line({"server": server, "prompt": one.name, "arguments": arguments_in(one)}))
            continue
        lines = offered_lines(server, listing)
        lines += [Line(visible(f"  resource {one.uri}  {one.name}")) for one in resources]
        lines += [Line(visible(f"  prompt {one.name}({', '.join(arguments_in(one))})")) for one in prompts]
        put(stdout(), lines)
    raise typer.Exit(JOURNAL_TROUBLE if any(isinstance(held, UsageError) for _, held in found) else DONE)


@app.command()
def login(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="File of MCP servers.")],
    name: Annotated[str, typer.Argument(metavar="SERVER", help="The server to log in to.")],
    *,
    logout: Annotated[bool, typer.Option("--forget", help="Forget the login instead.")] = False,
) -> None:
    """Log in to a server with "oauth": true, once; runs use and renew what the login gave."""
    from surefoot.tools.mcp.config import servers_of  # noqa: PLC0415  # pydantic loads when it is used
    from surefoot.tools.mcp.login import Login, log_in  # noqa: PLC0415  # as above

    server = next((one for one in servers_of(file) if one.name == name), None)
    if server is None:
        raise UsageError(f"unknown MCP server {name!r} in {file}")
    if logout:
        was_there = Login(server).forget()
        put(stdout(), [Line(f"forgotten: the login at {name}" if was_there else f"there was no login at {name}")])
        return

    def show(url: str) -> None:
        put(stderr(), [Line("Open this address to log in:", "head")])
        print(url, file=sys.stderr, flush=True)
        webbrowser.open(url)

    asyncio.run(log_in(server, show))
    put(stdout(), [Line(f"logged in to {name}", "good")])


@app.command()
def prompt(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="File of MCP servers.")],
    name: Annotated[str, typer.Argument(metavar="SERVER/NAME", help="The prompt, as `mcp list` shows it.")],
    given: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="Its arguments.")] = None,
) -> None:
    """Print a prompt of a server, filled in; `| surefoot run --words -` makes it the task of a run."""
    server, _, called = name.partition("/")
    if not (server and called):
        raise UsageError(f"{name}: write SERVER/NAME, as in docs/review")
    pairs = [one.partition("=") for one in given or ()]
    if wrong := next(("".join(one) for one in pairs if not (one[0] and one[1])), None):
        raise UsageError(f"{wrong}: write an argument as KEY=VALUE")
    asked = {key: value for key, _, value in pairs}
    messages = asyncio.run(served([file], lambda servers: servers.prompt(server, called, asked)))
    for one in messages:
        print(one.content if len(messages) == 1 else f"{one.role}: {one.content}")


def arguments_in(prompt: Prompt) -> list[str]:
    """The names of a prompt's arguments; those that may be left out end in a question mark."""
    return [one.name if one.required else f"{one.name}?" for one in prompt.arguments or ()]


def offered_lines(server: str, listing: Listing) -> list[Line]:
    """What one server offers."""
    lines = [Line(f"{visible(server)}: {count(len(listing.offers), 'tool')}", "head")]
    width = max(map(len, listing.offers), default=0)
    for name, offer in listing.offers.items():
        taken = guess(offer.spec)
        whose = "declared" if offer.spec.declared else f"taken for {taken.effect or 'unknown'}"
        effect = f"{offer.spec.effect}{' +egress' if taken.egress else ''} ({whose})"
        lines.append(Line(f"  {name:<{width}}  {effect:<30}  pin {offer.pin[:_PIN_CHARS]}"))
    return [*lines, *(Line(f"  - {visible(name)}: {visible(why)}", "dim") for name, why in listing.dropped)]


Held = tuple[Listing, Sequence["Resource"], Sequence["Prompt"]]
"""What a server offers: its tools, its resources, its prompts."""


async def _listings(files: Sequence[str | Path]) -> list[tuple[str, Held | UsageError]]:
    """What each server of these files offers, all asked at once; or why it cannot be asked."""
    from surefoot.tools.mcp.config import servers_of  # noqa: PLC0415  # pydantic loads when it is used

    async def read_server(server: McpServer) -> tuple[str, Held | UsageError]:
        try:
            async with McpServers([replace(server, optional=False)]) as alone:
                (listing,) = (await alone.listings()).values()
                return server.name, (listing, *await alone.contents(server.name))
        except UsageError as error:
            return server.name, error

    return await asyncio.gather(*map(read_server, servers_of(files)))
