"""Which tools a run may know: the profile as it is set, and what applying it gave."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, cast

from surefoot.types.checks import is_whole
from surefoot.types.errors import ConfigError
from surefoot.types.written import written

TrustDescription = Literal["local", "all", "none"]
ProfileStage = Literal["registration", "include", "exclude", "verified", "cap", "pin", "lookalike"]
"""The stages of a profile, in their order, and those of the gate."""

_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_TRUST: tuple[TrustDescription, ...] = ("local", "all", "none")


@dataclass(frozen=True, slots=True)
class ToolProfile:
    """Which tools of a catalogue a run may see and call. Source: spec/primitives.md, section 1.

    `include` and `exclude` are globs: `*` is any run of characters, `?` exactly one, everything else stands for itself.
    An empty `include` means every tool, also when the list was computed; to allow nothing, write `exclude=["*"]` or
    `max_tools=0`. `exclude` beats `include`. `max_tools` None is no cap, 0 is no tool; the cap keeps the survivors that
    `pinned` names (exact names), then the first others. `require_verified` keeps verified tools only;
    `trust_description` says whose own word `[verified]` counts for that: of tools of this process, of all, of none.
    `digests` pins tools: name to what `digest_of_tool` gave for the tool as it was looked at ("sha256:" and 64 hex
    digits). While it holds, the tool is verified; once it does not, nothing else makes it so, and a warning says so.

    Lists are kept as tuples. Raises `ConfigError` for a value that cannot be meant.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    max_tools: int | None = None
    require_verified: bool = False
    pinned: Sequence[str] = ()
    trust_description: TrustDescription = "local"
    digests: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)

    def __new__(cls, *_values: object, **named: object) -> ToolProfile:
        """A misspelt field is a `ConfigError` also in Python, where it would be a `TypeError`."""
        _check_known(named)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for name in ("include", "exclude", "pinned"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))  # frozen for all others
        object.__setattr__(self, "digests", _digests(self.digests))
        if self.max_tools is not None and not is_whole(self.max_tools, 0):
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
        members = cast("Mapping[str, object]", value)  # the keys of a JSON object are text; others are unknown fields
        _check_known(members)
        return cls(**members)  # type: ignore[reportArgumentType]  # __post_init__ asks each value

    def to_json(self) -> dict[str, object]:
        """The fields that differ from their default, as JSON values; `from_json` reads them back."""
        return written(self)


def _check_known(given: Mapping[str, object]) -> None:
    known = [each.name for each in fields(ToolProfile)]
    for name, member in given.items():
        if name not in known:
            raise ConfigError(str(name), member, f"a tool profile has no such field, only {', '.join(known)}")


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


def _digests(value: object) -> dict[str, str]:
    """A copy, so that nobody changes a profile that is in use."""
    if not isinstance(value, Mapping):
        raise ConfigError("digests", value, "give the digest of each pinned tool by its name, or {} for none")
    pins = cast("Mapping[object, object]", value)  # what is in it is asked next
    for name, digest in pins.items():
        if not (isinstance(name, str) and isinstance(digest, str) and _DIGEST.fullmatch(digest)):
            raise ConfigError("digests", {name: digest}, 'give "sha256:" and 64 hex digits for the name of a tool')
    return dict(cast("Mapping[str, str]", pins))  # just asked


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ConfigError(name, value, "give a list of texts; leave it out, or give [], for none")
    items = cast("Sequence[object]", value)  # what is in it is asked next
    for item in items:
        if not isinstance(item, str):
            raise ConfigError(name, item, "each entry of the list must be a text")
    return tuple(cast("Sequence[str]", items))  # just asked
