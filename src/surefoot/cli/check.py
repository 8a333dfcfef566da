"""The command that lists the tools of a run before there is one: `check`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from surefoot.cli.exits import DONE
from surefoot.cli.lines import Line, json_line, visible
from surefoot.cli.live import put, stdout
from surefoot.cli.options import JournalOption, JsonOption, Options, takes_options
from surefoot.cli.settings import SettingsOption, changed, config_in, guard_files, settings_path
from surefoot.cli.setup import journal_path, recipe_from, tools_of
from surefoot.core.gate.effects import bare_name, guess
from surefoot.core.state.pager import pager_spec
from surefoot.core.text.json import pin_of
from surefoot.runtime.offers import selection
from surefoot.runtime.pins import Pins, pins_file
from surefoot.types.config import LoopConfig
from surefoot.types.errors import UsageError
from surefoot.types.events import ToolsSelected
from surefoot.types.guard import GuardConfig
from surefoot.types.tools import Catalogue, Effect, ToolSpec

_PIN_CHARS = 12


@dataclass(frozen=True, slots=True)
class Checked:
    """One tool as the gate would take it.

    `effect` is what the gate counts with (None: unknown), `guess` what the name says to a person who may declare it.
    `pinned` says of a foreign tool how it stands: "new", "same", or how it differs from what is pinned. `notes` are
    what a person should know, `declare` what to write where.
    """

    name: str
    server: str
    effect: Effect | None
    declared: bool
    guess: Effect | None
    egress: bool
    pin: str
    pinned: str
    notes: tuple[str, ...]
    declare: str


@takes_options
def check(
    *,
    options: Options,
    accept: Annotated[
        list[str] | None, typer.Option(metavar="TOOL", help="Pin this foreign tool as it is now; repeatable.")
    ] = None,
    by: Annotated[str, typer.Option("--by", help="With --accept: your name; it is kept with the pin.")] = "",
    config: SettingsOption = None,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tools that a run with these options would have, what the gate takes them for, and what to declare."""
    settings = settings_path(config)
    by_file = config_in(settings, is_found=config is None) if settings else LoopConfig()
    guard_files(settings, options)
    limits = changed(options, by_file) or by_file
    recipe = recipe_from(options)
    path = journal_path(journal)
    specs = [tool.spec for tool in tools_of(recipe, path)] + asyncio.run(_served(recipe.mcp))
    pins = Pins(pins_file(path))
    if accept:
        _accept(pins, specs, accept, by)
    found = checked(specs, replace(limits, guard=limits.guard or GuardConfig()), pins)
    if as_json:
        for one in found:
            print(json_line(one))
    else:
        put(stdout(), lines_of(found))
    raise typer.Exit(DONE)


def checked(specs: Sequence[ToolSpec], config: LoopConfig, pins: Pins) -> list[Checked]:
    """The tools as the gate would take them, in their order. Raises `ConfigError` as `selection` does."""
    guard = config.guard or GuardConfig()
    (selected,) = selection(Catalogue((*specs, pager_spec())), config) or (ToolsSelected(()),)
    dropped = {name: f"{stage}: {why}" for name, stage, why in selected.dropped}
    pinned = {spec.name: "new" if told is None else told or "same" for spec, told in pins.look(specs)}
    found: list[Checked] = []
    for spec in specs:
        taken, said = guess(spec, guard.guess), guess(spec, "all")
        notes = [f"hidden: {dropped[spec.name]}"] if spec.name in dropped else []
        notes += [f"asks at each call: {selected.doubted[spec.name]}"] if spec.name in selected.doubted else []
        state = pinned.get(spec.name, "")
        if state == "new" and guard.pins == "strict":
            notes.append(f"hidden: nobody has pinned it; --accept {spec.name} does")
        elif state not in ("", "new", "same"):
            notes.append(f"hidden: it has changed since it was pinned; --accept {spec.name} takes it as it is now")
        found.append(
            Checked(
                spec.name,
                spec.server,
                taken.effect,
                spec.declared,
                said.effect,
                taken.egress,
                pin_of(spec),
                state,
                tuple(notes),
                "" if spec.declared else _declaration(spec, said.effect),
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
        pin = f"  pin {one.pin[:_PIN_CHARS]} ({'changed' if _is_changed(one) else one.pinned})" if one.pinned else ""
        lines.append(Line(f"{visible(one.name):<{width}}  {effect:<20}  {whose}{pin}", "" if one.declared else "warn"))
        lines += [Line(visible(f"! {note}"), "bad", 2) for note in one.notes]
        if _is_changed(one):
            lines += [Line(visible(row), "dim", 4) for row in one.pinned.splitlines()]
        if one.declare:
            lines.append(Line(visible(f"declare: {one.declare}"), "dim", 2))
    undeclared = sum(not one.declared for one in found)
    return [*lines, Line(f"{len(found)} tools, {undeclared} undeclared", "head")]


def _is_changed(one: Checked) -> bool:
    return one.pinned not in ("", "new", "same")


def _declaration(spec: ToolSpec, said: Effect | None) -> str:
    """What to write so that the gate knows; whoever writes it has to know what the tool does."""
    effect = said or "EFFECT"
    if spec.server:
        return f'in the file of server {spec.server}: "tools": {{"{bare_name(spec)}": {{"effect": "{effect}"}}}}'
    return f'@tool(effect="{effect}")'


def _accept(pins: Pins, specs: Sequence[ToolSpec], names: Sequence[str], by: str) -> None:
    if not by.strip():
        raise UsageError("--accept needs the name of whoever looked at the tool: give --by")
    foreign = {spec.name: spec for spec in specs if spec.is_foreign}
    if unknown := [name for name in names if name not in foreign]:
        raise UsageError(
            f"--accept {unknown[0]}: there is no such foreign tool; there are {', '.join(foreign) or 'none'}"
        )
    pins.take([foreign[name] for name in names], by)


async def _served(files: Sequence[str]) -> list[ToolSpec]:
    """The tools of the servers of these files, as they are now."""
    if not files:
        return []
    from surefoot.tools.mcp.config import servers_of  # noqa: PLC0415  # pydantic loads when it is used
    from surefoot.tools.mcp.servers import McpServers  # noqa: PLC0415  # as above

    async with McpServers(servers_of(files)) as servers:
        return [tool.spec for tool in await servers.tools()]
