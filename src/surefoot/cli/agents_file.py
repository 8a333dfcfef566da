"""The agents that a server or a worker has, out of a file that was named: Python, or TOML with a table for each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from surefoot.agent import Agent
from surefoot.cli.options import FILES, Options, config_of
from surefoot.cli.setup import agent_from, config_for, loaded, recipe_from, tools_of
from surefoot.core.text.json import as_object
from surefoot.types.config import TABLES
from surefoot.types.errors import UsageError
from surefoot.types.ports import JournalStore

T = TypeVar("T")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_PLAIN = (
    "model", "reasoner", "thinker", "actor", "thinking", "base_url", "call_mode", "temperature", "seed", "effort",
    "price_in", "price_out", "fallback", "write", "web", "allow_host", "no_builtin", "no_tools", "prefetch",
)  # fmt: skip
"""Fields of a table that are options of the command line."""
_PATHS = ("root", "tools", "mcp")  # from the folder of the file
_FIELDS = (*_PLAIN, *_PATHS, "use", "instructions", "description")


def agents_in(path: Path, store: JournalStore, journal: str, closed: Sequence[Path] = ()) -> dict[str, Agent]:
    """The agents by their names, all on this journal; to their file tools also the files that are `closed` are closed.

    Raises `UsageError` that says what is wrong with the file.
    """
    match path.suffix:
        case ".py":
            given: object = getattr(loaded(path, "--agents", f"surefoot_agents_{path.stem}"), "agents", None)
            agents = cast("Mapping[object, object]", given if isinstance(given, Mapping) else {})
            if not isinstance(given, Mapping) or not all(
                isinstance(name, str) and isinstance(one, Agent) for name, one in agents.items()
            ):
                raise UsageError(f"--agents {path}: define `agents`, a mapping of names to surefoot.Agent objects")
            found = _check_names(path, cast("Mapping[str, Agent]", given))  # as was just looked at
        case ".toml":
            found = _in_toml(path, store, journal, closed)
        case _:
            raise UsageError(f"--agents {path}: give a file that ends in .py or .toml")
    return {name: cast("Agent", replace(cast("Any", agent), name=name, journal=store)) for name, agent in found.items()}


def _in_toml(path: Path, store: JournalStore, journal: str, closed: Sequence[Path]) -> Mapping[str, Agent]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"--agents {path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--agents {path}: not valid TOML: {error}") from error
    given = tables.get("agents")
    if list(tables) != ["agents"] or not isinstance(given, Mapping):
        raise UsageError(f"--agents {path}: write one table [agents.NAME] for each agent, and nothing else")
    found = _check_names(path, cast("Mapping[str, object]", given))
    files = [*closed, path]
    for table in map(as_object, found.values()):  # what is of another type is told where it is read
        guard = as_object((table or {}).get("guard")) or {}
        named = [*((table or {}).get(key) for key in ("tools", "mcp")), *(guard.get(name) for name in FILES)]
        several = (one for each in named for one in (cast("list[object]", each) if isinstance(each, list) else [each]))
        files += [path.parent / one for one in several if isinstance(one, str)]
    believed = tuple(str(one.absolute()) for one in files)  # no agent may change what makes it, or another one
    return {name: _agent(path, name, table, store, journal, believed=believed) for name, table in found.items()}


def _check_names(path: Path, found: Mapping[str, T]) -> Mapping[str, T]:
    """What a file defines, if it is something, and each has a name that can stand in an address."""
    if wrong := [name for name in found if not _NAME.fullmatch(name)]:
        raise UsageError(f"--agents {path}: {wrong[0]!r}: use a-z, 0-9, - and _, at most 63 of them")
    if not found:
        raise UsageError(f"--agents {path}: no agent is defined there")
    return found


def _agent(
    path: Path, name: str, table: object, store: JournalStore, journal: str, *, believed: tuple[str, ...]
) -> Agent:
    """The agent of one table: options of the command line, and the tables of a settings file below it."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # only who serves agents pays for it

    where = f"--agents {path}: [agents.{name}]"
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: must be a table")
    given = cast("Mapping[str, Any]", table)
    if unknown := [key for key in given if key not in (*_FIELDS, *TABLES)]:
        raise UsageError(f"{where} has no field {unknown[0]!r}; choose from {', '.join((*_FIELDS, *TABLES))}")
    said = {key: value for key, value in given.items() if key in (*_PLAIN, *_PATHS)}
    if isinstance(use := given.get("use"), list):
        use = ",".join(map(str, cast("list[object]", use)))  # as the option has it
    try:
        options = TypeAdapter(Options).validate_python({**said, "use": use}, strict=False)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise UsageError(f"{where} {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    folder = path.absolute().parent
    files = {key: [folder / one for one in found] for key in ("tools", "mcp") if (found := getattr(options, key))}
    options = replace(options, root=folder / (options.root or "."), **files)
    tables = {key: value for key, value in given.items() if key in TABLES}
    if isinstance(learnt := tables.get("conventions"), dict):
        said = {"root": ".", **cast("dict[str, Any]", learnt)}
        places = {key: str(folder / said[key]) for key in ("root", "store") if isinstance(said.get(key), str)}
        tables["conventions"] = {**said, **places}
    config = config_of(path, tables, within=f"agents.{name}.")
    try:
        recipe = replace(recipe_from(options), guard_files=believed)
        tools = tools_of(recipe, journal)
        config = config_for(recipe, tools, options, config)
        agent = agent_from(recipe, tools, store, config, given.get("instructions", ""))
        return replace(cast("Any", agent), description=given.get("description", ""))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
