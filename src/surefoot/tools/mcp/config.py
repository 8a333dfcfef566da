"""MCP servers and what the developer says of their tools: as objects, or as a file or a mapping says them.

The form is the one that MCP clients share, `{"mcpServers": {NAME: …}}`, with keys of ours: what tools are declared to
be, and limits. `${VAR}` and `${VAR:-default}` stand for variables of the environment. An unknown key is an error, and
no message shows a value that came from a variable, a header or `env`. Nothing here comes from the server (`offers`).
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from surefoot.types import settings
from surefoot.types.errors import ConfigError
from surefoot.types.rules import Declared, by_name, declarations, texts_by_name
from surefoot.types.settings import Settings, flag, or_none, row, seconds, setting, text, texts

LONGEST_SERVER_NAME = 24  # characters, so that a tool's own name still has room in the 64 that model wires take

_LEAST_SECRET = 4  # shorter values are not hidden in messages: they would hit ordinary words

_is_name = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*(?<!_)").fullmatch

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


_FILLED = ("command", "args", "env", "cwd", "url", "headers")
"""The keys in whose texts variables of the environment count."""
_KINDS = ("stdio", "http", "streamable-http", "streamableHttp")


def _is_open(url: str) -> bool:
    """Whether others than those of the own network can read what is sent to a URL."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    try:
        is_local = ip_address(host).is_private
    except ValueError:
        is_local = "." not in host or host.endswith((".localhost", ".local", ".internal"))
    return parts.scheme.lower() == "http" and not is_local


@dataclass(frozen=True, slots=True)
class McpServer(Settings):
    """One MCP server: a `command` to start and talk to over its standard streams, or the `url` of a running one.

    `name` begins the names of its tools: letters, digits, `-` and single `_`. The command gets `env` and a few harmless
    variables (PATH, HOME and the like), nothing else of our environment. `include` and `exclude` are globs over the
    server's own names of tools. `timeout_s` bounds a call of a tool that declares none; `connect_timeout_s` bounds
    connecting, and each listing. `optional`: a run may start without it. `resources`: a model may
    list and read its resources, with a tool `SERVER__read_resource`. `oauth`: a person logs in (`surefoot mcp login`).
    `secrets`: texts that no message shows;
    neither shows it what is in `env` and `headers`. Raises `ConfigError`.
    """

    name: str = field(metadata=row(text))
    command: str = setting("", text, "")
    args: tuple[str, ...] = field(default=(), metadata=row(texts), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], metadata=row(texts_by_name), repr=False)
    cwd: str | None = setting(None, or_none(text, "this process's"), "")
    url: str = field(default="", metadata=row(text), repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], metadata=row(texts_by_name), repr=False)
    tools: Mapping[str, Declared] = setting(dict[str, Declared], by_name, "")
    include: tuple[str, ...] = setting(("*",), texts, "")
    exclude: tuple[str, ...] = setting((), texts, "")
    timeout_s: float | None = setting(None, or_none(seconds, "none"), "")
    connect_timeout_s: float = setting(30.0, seconds, "")
    optional: bool = setting(False, flag, "")
    resources: bool = setting(False, flag, "")
    oauth: bool = setting(False, flag, "")
    secrets: tuple[str, ...] = field(default=(), metadata=row(texts), repr=False)

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        for is_wrong, why in (
            (
                not _is_name(self.name) or len(self.name) > LONGEST_SERVER_NAME,
                f"cannot begin the names of tools; use 1 to {LONGEST_SERVER_NAME} letters, digits, `-` and single `_`",
            ),
            (bool(self.command) == bool(self.url), "needs either a command to start or the url of a running server"),
            (self.url and (self.args or self.env or self.cwd), "has a url, so args, env and cwd have no effect"),
            (
                self.url and not self.url.lower().startswith(("http://", "https://")),
                "has a url that does not begin with http:// or https://",
            ),
            (self.command and (self.headers or self.oauth), "has a command, so headers and oauth have no effect"),
            (
                self.oauth and _is_open(self.url),
                "would send its login unencrypted: use https://, or tunnel to localhost",
            ),
        ):
            if is_wrong:
                raise ConfigError("MCP server", self.name, why)

    def takes(self, tool: str) -> bool:
        """Whether the developer lets a tool of that name (the server's own) in."""
        is_in, is_out = (any(fnmatchcase(tool, glob) for glob in globs) for globs in (self.include, self.exclude))
        return is_in and not is_out

    def without_secrets(self, text: str) -> str:
        """A text with the values of `env`, `headers` and `secrets`, and passwords in the url, as `***`."""
        given = (*self.secrets, *self.env.values(), *self.headers.values())
        hidden = {part for value in given for part in (value, *value.split())}
        if (authority := self.url.partition("://")[2].partition("/")[0]) and "@" in authority:
            hidden |= {userinfo := authority.rpartition("@")[0], *userinfo.split(":")}
        for value in sorted(hidden, key=len, reverse=True):  # the longest first: one may hold another
            if len(value) >= _LEAST_SECRET:
                text = text.replace(value, "***")
        return text


McpGiven = str | Path | Mapping[str, object] | McpServer  # a file, the mapping that such a file holds, or a server


def servers_of(
    given: McpGiven | Sequence[McpGiven], environment: Mapping[str, str] | None = None
) -> tuple[McpServer, ...]:
    """The servers of files, mappings and server objects, without those that are disabled.

    `environment` is where variables come from, by default that of this process. Raises `ConfigError` (a `UsageError`)
    that names the file, the server and the key, and two servers of one name.
    """
    environment = os.environ if environment is None else environment
    one_by_one = given if isinstance(given, Iterable) and not isinstance(given, str | Mapping) else [given]
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
    where, held = (str(given), _read(Path(given))) if isinstance(given, str | Path) else (str(given)[:80], given)
    if not isinstance(held, Mapping):
        raise ConfigError("mcp", where, 'must be an object {"mcpServers": {NAME: …}}')
    top = cast("Mapping[str, object]", held)  # its keys are checked below
    if not isinstance(given, Mapping) or "mcpServers" in top:
        if unknown := sorted(map(str, set(top) - {"mcpServers"})):
            raise ConfigError("mcp", where, f"unknown key {unknown[0]!r} at the top; give mcpServers")
        top = top.get("mcpServers", {})
    if not isinstance(top, Mapping):
        raise ConfigError("mcp", where, "mcpServers: give an object")
    servers: list[McpServer] = []
    for name, entry in cast("Mapping[str, object]", top).items():
        try:
            settings.mapping("MCP server", entry)
            if (server := _server(name, cast("Mapping[str, object]", entry), environment)) is not None:
                servers.append(server)
        except ConfigError as error:  # told without its value, and the cause would show it
            at = "" if error.field == "MCP server" else f".{error.field}"
            raise ConfigError("mcp", where, f"mcpServers.{name}{at}: {error.message}") from None
    return servers


def _server(name: str, entry: Mapping[str, object], environment: Mapping[str, str]) -> McpServer | None:
    """The server of an entry, with the environment put into its texts; None for one that is disabled."""
    known = ("type", "disabled", *(one for one in settings.rows(McpServer) if one not in ("name", "secrets")))
    for key, value in entry.items():
        if key not in known:
            raise ConfigError(key, value, f"unknown field; choose from {', '.join(known)}")
    given = {key: value for key, value in entry.items() if key not in ("type", "disabled")}
    kind, used = entry.get("type"), dict[str, None]()
    or_none(settings.choice(*_KINDS), "what the entry holds")("type", kind)
    if flag("disabled", entry.get("disabled", False)):
        return None
    if kind is not None and (kind == "stdio") != bool(given.get("command")):
        raise ConfigError("MCP server", name, f"type {kind} needs {'a command' if kind == 'stdio' else 'a url'}")

    def filled(key: str, value: object) -> object:
        """The text, or the texts in it, with variables in their place; what is not text is for the checks."""
        if isinstance(value, list):
            return [filled(f"{key}[{at}]", each) for at, each in enumerate(cast("list[object]", value))]
        if isinstance(value, Mapping):
            return {one: filled(f"{key}.{one}", each) for one, each in cast("Mapping[str, object]", value).items()}
        if not isinstance(value, str):
            return value
        if "${" in _VARIABLE.sub("", value):
            raise ConfigError(key, value, "write a variable as ${NAME} or ${NAME:-default}")
        return _VARIABLE.sub(lambda match: value_of(key, match), value)

    def value_of(key: str, match: re.Match[str]) -> str:
        variable, default = match[1], cast("str | None", match[2])  # None where the group is not there
        found = environment.get(variable)
        if not found and default is not None:  # as a shell has it: empty counts as unset for `:-`
            return default
        if found is None:
            unset = f"the environment variable {variable} is not set; set it, or write ${{{variable}:-default}}"
            raise ConfigError(key, match[0], unset)
        used[found] = None
        return found

    given |= {key: filled(key, given[key]) for key in _FILLED if key in given}
    made = declarations(given.get("tools", {}))
    return settings.from_table(McpServer, {**given, "name": name, "tools": made, "secrets": tuple(used)})


def _read(path: Path) -> object:
    def each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        for key, times in Counter(key for key, _ in pairs).items():
            if times > 1:  # JSON leaves open which of them counts
                raise ConfigError("mcp", str(path), f"the key {key!r} is there twice in one object")
        return dict(pairs)

    try:
        return json.loads(path.read_bytes(), object_pairs_hook=each_key_once)
    except OSError as error:
        raise ConfigError("mcp", str(path), f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # the cause would show the text, which may hold secrets
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigError("mcp", str(path), f"not valid JSON{line}") from None
