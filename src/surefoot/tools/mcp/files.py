"""MCP servers as a file or a mapping says them, in the form that MCP clients share: `{"mcpServers": {NAME: …}}`.

Besides that form's own keys an entry may hold ours: what its tools are declared to be, and limits. `${VAR}` and
`${VAR:-default}` stand for variables of the environment. An unknown key is an error, and no message shows a value that
came from a variable, a header or `env`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from surefoot.tools.mcp.declared import Declared, McpServer
from surefoot.types.errors import ConfigError, UsageError
from surefoot.types.tools import Effect

McpGiven = str | Path | Mapping[str, object] | McpServer
"""A file, the mapping that such a file holds, or a server."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

_STRICT = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class _Tool(BaseModel):
    model_config = _STRICT

    effect: Effect | None = None
    egress: bool = False
    idempotent: bool = False
    private: bool = False
    verified: bool = False
    polling: bool = False
    timeout_s: float | None = None
    roles: dict[str, str] = Field(default_factory=dict)
    sensitive: list[str] = Field(default_factory=list)
    trusted_fields: list[str] = Field(default_factory=list)


class _Entry(BaseModel):
    model_config = _STRICT

    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    disabled: bool = False
    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    tools: dict[str, _Tool] = Field(default_factory=dict)
    include: list[str] = Field(default_factory=lambda: ["*"])
    exclude: list[str] = Field(default_factory=list)
    timeout_s: float | None = None
    connect_timeout_s: float = 30.0
    optional: bool = False


_ENTRIES = TypeAdapter(dict[Annotated[str, Field(min_length=1)], _Entry])


def servers_of(
    given: McpGiven | Sequence[McpGiven], environment: Mapping[str, str] | None = None
) -> tuple[McpServer, ...]:
    """The servers of files, mappings and server objects, without those that are disabled.

    `environment` is where variables come from, by default that of this process. Raises `ConfigError` (a `UsageError`)
    that names the file, the server and the key, and two servers of one name.
    """
    environment = os.environ if environment is None else environment
    one_by_one = [given] if isinstance(given, str | Path | Mapping | McpServer) else given
    found: dict[str, McpServer] = {}
    for one in one_by_one:
        for server in _servers(one, environment):
            if server.name in found:
                raise ConfigError("MCP server", server.name, "is there twice; give one of them another name")
            found[server.name] = server
    return tuple(found.values())


def _servers(given: McpGiven, environment: Mapping[str, str]) -> Iterable[McpServer]:
    if isinstance(given, McpServer):
        return (given,)
    where, held = ("mcp", given) if isinstance(given, Mapping) else (str(given), _read(Path(given)))
    if not isinstance(held, Mapping):
        raise ConfigError("mcp", where, 'must be an object {"mcpServers": {NAME: …}}')
    top = cast("Mapping[str, object]", held)  # its keys are checked below
    if not isinstance(given, Mapping) or "mcpServers" in top:
        if unknown := sorted(map(str, set(top) - {"mcpServers"})):
            raise ConfigError("mcp", where, f"there is no key {unknown[0]!r} at the top; there is mcpServers")
        top = top.get("mcpServers", {})
    try:
        entries = _ENTRIES.validate_python(top)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        path = ".".join(("mcpServers", *map(str, first["loc"])))
        told = "there is no such key" if first["type"] == "extra_forbidden" else first["msg"]
        raise ConfigError("mcp", where, f"{path}: {told}") from None  # the cause would show values
    return tuple(_server(name, entry, where, environment) for name, entry in entries.items() if not entry.disabled)


def _server(name: str, entry: _Entry, where: str, environment: Mapping[str, str]) -> McpServer:
    if entry.type is not None and (entry.type == "stdio") != bool(entry.command):
        needed = "a command" if entry.type == "stdio" else "a url"
        raise ConfigError("mcp", where, f"mcpServers.{name}: type {entry.type} needs {needed}")
    fill = _Filler(where, name, environment)
    try:
        tools = {
            tool: Declared(
                **said.model_dump(exclude={"sensitive", "trusted_fields"}),
                sensitive=tuple(said.sensitive),
                trusted_fields=tuple(said.trusted_fields),
            )
            for tool, said in entry.tools.items()
        }
        return McpServer(
            name=name,
            command=fill("command", entry.command),
            args=tuple(fill(f"args[{at}]", arg) for at, arg in enumerate(entry.args)),
            env={key: fill(f"env.{key}", value) for key, value in entry.env.items()},
            cwd=None if entry.cwd is None else fill("cwd", entry.cwd),
            url=fill("url", entry.url),
            headers={key: fill(f"headers.{key}", value) for key, value in entry.headers.items()},
            tools=tools,
            include=tuple(entry.include),
            exclude=tuple(entry.exclude),
            timeout_s=entry.timeout_s,
            connect_timeout_s=entry.connect_timeout_s,
            optional=entry.optional,
            secrets=tuple(fill.used),
        )
    except ConfigError as error:
        if error.field == "mcp":
            raise
        raise ConfigError("mcp", where, f"mcpServers.{name}: {error}") from None


class _Filler:
    """Puts the environment into the texts of one entry, and remembers what it put there."""

    def __init__(self, where: str, server: str, environment: Mapping[str, str]) -> None:
        self.used: dict[str, None] = {}
        self._where = where
        self._server = server
        self._environment = environment

    def __call__(self, key: str, text: str) -> str:
        at = f"mcpServers.{self._server}.{key}"
        if "${" in _VARIABLE.sub("", text):
            raise ConfigError("mcp", self._where, f"{at}: write a variable as ${{NAME}} or ${{NAME:-default}}")

        def value(match: re.Match[str]) -> str:
            name, default = match[1], cast("str | None", match[2])  # None where the group is not there
            found = self._environment.get(name)
            if not found and default is not None:  # as a shell has it: empty counts as unset for `:-`
                return default
            if found is None:
                told = f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
                raise ConfigError("mcp", self._where, f"{at}: {told}")
            self.used[found] = None
            return found

        return _VARIABLE.sub(value, text)


def _read(path: Path) -> object:
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=_each_key_once)
    except OSError as error:
        raise ConfigError("mcp", str(path), f"cannot be read: {error.strerror}") from error
    except _Twice as error:
        raise ConfigError("mcp", str(path), f"the key {error.args[0]!r} is there twice in one object") from None
    except (ValueError, RecursionError) as error:  # the cause would show the text, which may hold secrets
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigError("mcp", str(path), f"is not valid JSON{line}") from None


class _Twice(UsageError):
    """A key that an object holds more than once; JSON leaves open which of them counts."""


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made: dict[str, object] = {}
    for key, value in pairs:
        if key in made:
            raise _Twice(key)
        made[key] = value
    return made
