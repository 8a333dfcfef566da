"""What a developer says of a tool beyond its function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from surefoot.types.guard import Role
from surefoot.types.tools import Effect


@dataclass(frozen=True, slots=True)
class Guarded:
    """What the developer says of a tool to the gate; see `ToolSpec`."""

    declared: bool = False
    egress: bool = False
    private: bool = False
    roles: Mapping[str, Role] = field(default_factory=dict[str, Role])
    sensitive: tuple[str, ...] = ()
    trusted_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """What the developer says of a tool to whoever plans with it; see `ToolSpec`."""

    category: str = ""
    exclusive: bool = False
    empty_ok: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """What the developer says of a tool beyond its function; `name` and `description` "" mean: take the function's."""

    effect: Effect = "write"
    idempotent: bool = False
    polling: bool = False
    finish: bool = False
    verified: bool = False
    timeout_s: float | None = None
    name: str = ""
    description: str = ""
    guarded: Guarded = field(default_factory=Guarded)
    planned: Planned = Planned()
