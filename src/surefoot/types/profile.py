"""Which tools a run may know: the profile as it is set, and what applying it gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, cast

from surefoot.types.errors import ConfigError

TrustDescription = Literal["local", "all", "none"]
ProfileStage = Literal["registration", "include", "exclude", "verified", "cap"]
"""The stages of a profile, in their order."""

_TRUST: tuple[TrustDescription, ...] = ("local", "all", "none")


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """Which tools of a catalogue a run may see and call. Source: spec/primitives.md, section 1.

    `include` and `exclude` are globs: `*` is any run of characters, `?` exactly one, everything else stands for itself.
    An empty `include` means every tool, also when the list was computed; to allow nothing, write `exclude=["*"]` or
    `max_tools=0`. `exclude` beats `include`. `max_tools` None is no cap, 0 is no tool; the cap keeps the survivors that
    `pinned` names (exact names), then the first others. `require_verified` keeps verified tools only;
    `trust_description` says whose own word `[verified]` counts for that: of tools of this process, of all, of none.

    Lists are kept as tuples. Raises `ConfigError` for a value that cannot be meant.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    max_tools: int | None = None
    require_verified: bool = False
    pinned: Sequence[str] = ()
    trust_description: TrustDescription = "local"

    def __post_init__(self) -> None:
        for name in ("include", "exclude", "pinned"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))  # frozen for all others
        if self.max_tools is not None and (type(self.max_tools) is not int or self.max_tools < 0):
            raise ConfigError("max_tools", self.max_tools, "give a whole number of at least 0, or None for no cap")
        if type(self.require_verified) is not bool:
            raise ConfigError("require_verified", self.require_verified, "give true or false")
        if self.trust_description not in _TRUST:
            raise ConfigError("trust_description", self.trust_description, f"choose one of {', '.join(_TRUST)}")

    @classmethod
    def include_only(cls, patterns: Sequence[str]) -> ToolProfile:
        """Only tools that one of the globs matches; every tool when there are no globs."""
        return cls(include=patterns)

    @classmethod
    def exclude_only(cls, patterns: Sequence[str]) -> ToolProfile:
        """Every tool that none of the globs matches."""
        return cls(exclude=patterns)

    @classmethod
    def permissive(cls) -> ToolProfile:
        """Every tool."""
        return cls()

    @classmethod
    def from_json(cls, value: object) -> ToolProfile:
        """The profile of a decoded JSON object, in which fields with their default may be left out.

        Raises `ConfigError` for anything else: a misspelt field must not mean "allow all".
        """
        if not isinstance(value, Mapping):
            raise ConfigError("tool_profile", value, "give an object")
        known = [field.name for field in fields(cls)]
        members = cast("Mapping[str, object]", value)  # the keys of a JSON object are text; others are unknown fields
        for name, member in members.items():
            if name not in known:
                raise ConfigError(str(name), member, f"a tool profile has no such field, only {', '.join(known)}")
        return cls(**members)  # type: ignore[reportArgumentType]  # __post_init__ asks each value

    def to_json(self) -> dict[str, object]:
        """The fields that differ from their default, as JSON values; `from_json` reads them back."""
        permissive = ToolProfile()
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value != getattr(permissive, name)
        }


Dropped = tuple[str, ProfileStage, str]
"""A tool that is not visible: its name, the stage at which it fell out, and why, in words.

The name of a tool dropped at registration is as it came and may have any characters in it: escape it to show it.
"""


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """What a profile made of a catalogue. Source: spec/primitives.md, sections 1.1 and 1.5.

    `visible` are names in NFC, in the order of the catalogue. `dropped` has every other tool, stage by stage, in the
    order of the catalogue inside a stage. `warnings` are sentences for the operator.
    """

    visible: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    warnings: tuple[str, ...]

    @property
    def counts(self) -> dict[ProfileStage, int]:
        """How many tools each stage dropped; a stage that dropped none is left out."""
        return dict(Counter(stage for _name, stage, _detail in self.dropped))


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ConfigError(name, value, "give a list of texts; leave it out, or give [], for none")
    items = cast("Sequence[object]", value)  # what is in it is asked next
    for item in items:
        if not isinstance(item, str):
            raise ConfigError(name, item, "each entry of the list must be a text")
    return tuple(cast("Sequence[str]", items))  # just asked
