"""What the developer says of an MCP server, and of its tools.

Nothing here comes from the server. A server's word about its own tools is a hint that may only tighten (`offers`).
"""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType

from surefoot.types.errors import ConfigError
from surefoot.types.tools import Effect

LONGEST_SERVER_NAME = 24
"""Characters, so that a tool's own name still has room in the 64 that model wires take."""

_LEAST_SECRET = 4
"""Shorter values are not hidden in messages: they would hit ordinary words."""

_is_name = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*(?<!_)").fullmatch


@dataclass(frozen=True, slots=True)
class Declared:
    """What the developer declares of one tool. `effect` None: nothing, so it counts as a write.

    The fields are those of `ToolSpec`; the roles of its parameters and what else the gate reads are kept as given.
    Source: spec/guard.md, section 4.3.
    """

    effect: Effect | None = None
    egress: bool = False
    idempotent: bool = False
    private: bool = False
    verified: bool = False
    polling: bool = False
    timeout_s: float | None = None
    roles: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    sensitive: tuple[str, ...] = ()
    trusted_fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.effect is not None and self.effect not in typing.get_args(Effect):
            raise ConfigError("effect", self.effect, f"must be one of {', '.join(typing.get_args(Effect))}")
        check_seconds("timeout_s", self.timeout_s)


@dataclass(frozen=True, slots=True)
class McpServer:
    """One MCP server: a `command` to start and speak to over its standard streams, or the `url` of one that runs.

    `name` begins the names of its tools: letters, digits, `-` and single `_`. The command gets `env` and a few harmless
    variables (PATH, HOME and the like), nothing else of our environment. `include` and `exclude` are globs over the
    server's own names of tools. `timeout_s` bounds a call of a tool that declares none; `connect_timeout_s` bounds
    connecting, and each listing. `optional`: a run may start without it. `secrets`: texts that no message shows;
    neither shows it what is in `env` and `headers`. Raises `ConfigError`.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    tools: Mapping[str, Declared] = field(default_factory=lambda: MappingProxyType({}))
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    timeout_s: float | None = None
    connect_timeout_s: float = 30.0
    optional: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not _is_name(self.name) or len(self.name) > LONGEST_SERVER_NAME:
            told = f"use 1 to {LONGEST_SERVER_NAME} letters, digits, `-` and single `_`"
            raise ConfigError("MCP server", self.name, f"cannot begin the names of tools; {told}")
        if bool(self.command) == bool(self.url):
            raise ConfigError("MCP server", self.name, "needs either a command to start or the url of a running server")
        if self.url and (self.args or self.env or self.cwd):
            raise ConfigError("MCP server", self.name, "has a url, so args, env and cwd mean nothing; leave them out")
        if self.url and not self.url.lower().startswith(("http://", "https://")):
            raise ConfigError("MCP server", self.name, "has a url that does not begin with http:// or https://")
        if self.command and self.headers:
            raise ConfigError("MCP server", self.name, "has a command, so headers mean nothing; leave them out")
        check_seconds("timeout_s", self.timeout_s)
        check_seconds("connect_timeout_s", self.connect_timeout_s)

    def takes(self, tool: str) -> bool:
        """Whether the developer lets a tool of that name (the server's own) in."""
        return any(fnmatchcase(tool, glob) for glob in self.include) and not any(
            fnmatchcase(tool, glob) for glob in self.exclude
        )

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


def check_seconds(name: str, value: float | None) -> None:
    """Raise `ConfigError` for a limit that cannot be meant; None is none."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise ConfigError(name, value, "must be a finite number of seconds above zero")
