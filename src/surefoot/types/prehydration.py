"""Pre-hydration: what can be set about it, and what it found. Source: spec/primitives.md, section 3."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, cast

from surefoot.types.checks import is_number, is_whole
from surefoot.types.errors import ConfigError
from surefoot.types.patterns import ReferencePattern
from surefoot.types.tools import Trust
from surefoot.types.written import written

PathStyle = Literal["posix", "windows"]

MOST_PATTERNS = 32
"""Custom patterns of one configuration."""

BUILT_IN_RESOLVERS: Mapping[str, str] = {"url": "web_fetch", "file": "file_read"}
"""Reference type -> the tool that resolves it, where nothing else is said and the catalogue has that tool."""

TIMED_OUT = "Resolution timed out"
NEEDS_APPROVAL = "needs approval"
"""Why a reference is not resolved; a call is denied with these words."""

_HOST_STYLE: PathStyle = "windows" if os.name == "nt" else "posix"

_LEAST = {"max_references": 0, "max_context_tokens": 0, "max_concurrency": 1, "max_input_chars": 0}


@dataclass(frozen=True, slots=True)
class Resolver:
    """The tool that resolves references of a type, and the argument that takes the value; None: what fits the tool."""

    tool: str
    argument: str | None = None

    def __post_init__(self) -> None:
        if not _is_name(self.tool):
            raise ConfigError("tool", self.tool, "give the name of a tool")
        if self.argument is not None and not _is_name(self.argument):
            raise ConfigError("argument", self.argument, "give the name of a parameter, or leave it out")


def _built_in() -> dict[str, str | Resolver]:
    return dict(BUILT_IN_RESOLVERS)


@dataclass(frozen=True, slots=True)
class PreHydrationConfig:
    """What is fetched before the first turn, and how much of it. Times in seconds; one token is 4 bytes of UTF-8.

    `resolution_tools`: reference type -> tool; `{}` resolves nothing. The default is kept in its plain form: as long as
    the mapping is `BUILT_IN_RESOLVERS`, a tool of it that the catalogue lacks is left out; any other tool that is not
    there is an error. `timeout` is for all references together, `reference_timeout` for each. `max_references` 0
    extracts nothing; `max_per_type` None is no limit. Of more than `max_input_chars` characters the rest is not read.
    Raises `ConfigError`. Source: spec/primitives.md, 3.1.
    """

    custom_patterns: tuple[ReferencePattern, ...] = ()
    resolution_tools: Mapping[str, str | Resolver] = field(default_factory=_built_in)
    timeout: float = 15.0
    max_references: int = 10
    max_context_tokens: int = 4000
    reference_timeout: float = 10.0
    max_per_type: int | None = None
    max_concurrency: int = 5
    max_input_chars: int = 1_000_000
    path_style: PathStyle = _HOST_STYLE

    def __post_init__(self) -> None:
        object.__setattr__(self, "custom_patterns", _patterns(self.custom_patterns))
        object.__setattr__(self, "resolution_tools", _tools(self.resolution_tools))
        for name in ("timeout", "reference_timeout"):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise ConfigError(name, value, "give seconds above 0")
        for name, least in _LEAST.items():
            if not is_whole(getattr(self, name), least):
                raise ConfigError(name, getattr(self, name), f"give a whole number of at least {least}")
        if self.max_per_type is not None and not is_whole(self.max_per_type, 0):
            raise ConfigError("max_per_type", self.max_per_type, "give a whole number of at least 0, or None")
        if self.path_style not in ("posix", "windows"):
            raise ConfigError("path_style", self.path_style, "choose one of posix, windows")

    def resolver(self, ref_type: str) -> Resolver | None:
        """What resolves references of a type; None when nothing does."""
        named = self.resolution_tools.get(ref_type)
        return Resolver(named) if isinstance(named, str) else named

    @classmethod
    def from_json(cls, data: object) -> PreHydrationConfig:
        """Read what `to_json` gives, or what a person wrote. Unknown fields and null lists are a `ConfigError`."""
        given = _object("pre_hydration", data)
        _known("pre_hydration", given, tuple(each.name for each in fields(cls)))
        values = dict(given)
        if "custom_patterns" in values:
            rows = values["custom_patterns"]
            if not isinstance(rows, list):
                raise ConfigError("custom_patterns", rows, "give a list of objects with ref_type and pattern")
            values["custom_patterns"] = tuple(map(_pattern, cast("list[object]", rows)))  # from JSON
        if "resolution_tools" in values:
            tools = _object("resolution_tools", values["resolution_tools"])
            values["resolution_tools"] = {kind: _resolver(tool) for kind, tool in tools.items()}
        return cls(**values)  # pyright: ignore[reportArgumentType]  # each value is checked when it is built

    def to_json(self) -> dict[str, object]:
        """The fields that differ from their defaults, as JSON values."""
        return written(self)


@dataclass(frozen=True, slots=True)
class Reference:
    """Something that a task refers to. `value` is the text as written; it can hold a credential: show it redacted.

    `lines` are the first and the last line that were named behind a file, `column` the column. `refusal` is why the
    text alone forbids to resolve it, "" when nothing does.
    """

    type: str
    value: str
    lines: tuple[int, int] | None = None
    column: int | None = None
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class ResolvedReference:
    """A reference and what came of it: the part of its content that the budget leaves.

    `tokens` counts `content`; `bytes_total` and `sha256` (hex) are of the whole result in UTF-8. `source` is what the
    tool says that it read.
    """

    ref: Reference
    content: str
    tokens: int
    bytes_total: int
    sha256: str
    source: str
    call_id: str
    trust: Trust = "untrusted"


@dataclass(frozen=True, slots=True)
class FailedReference:
    """A reference of which nothing came, and why. `call_id` is "" when no call was made."""

    ref: Reference
    error: str
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class HydratedContext:
    """All that pre-hydration gave. `references` are what was left after caps; each is in `resolved` or in `failed`.

    `dropped` counts what the caps cut, `scan_truncated` says that a part of the task was not read. `message` is what
    the model reads, in the role of the user, directly before the user's own words; "" when nothing was resolved.
    `total_tokens` counts contents, `frame_tokens` all else in the message. Source: spec/primitives.md, 3.10.
    """

    references: tuple[Reference, ...] = ()
    dropped: int = 0
    resolved: tuple[ResolvedReference, ...] = ()
    failed: tuple[FailedReference, ...] = ()
    total_tokens: int = 0
    frame_tokens: int = 0
    scan_truncated: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class PreHydrationItem:
    """One reference as the journal keeps it: `value` and `error` without credentials. Source: section 6."""

    type: str
    value: str
    status: Literal["resolved", "failed"]
    error: str = ""
    tokens: int = 0
    sha256: str = ""
    call_id: str = ""


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _patterns(given: object) -> tuple[ReferencePattern, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ConfigError("custom_patterns", given, "give a list of ReferencePattern")
    rows = tuple(cast("Sequence[object]", given))  # members are looked at one by one
    for row in rows:
        if not isinstance(row, ReferencePattern):
            raise ConfigError("custom_patterns", row, "each must be a ReferencePattern")
    if len(rows) > MOST_PATTERNS:
        raise ConfigError("custom_patterns", len(rows), f"give at most {MOST_PATTERNS}")
    return cast("tuple[ReferencePattern, ...]", rows)  # as just looked at


def _tools(given: object) -> dict[str, str | Resolver]:
    """A copy, so that nobody changes a configuration that is in use."""
    tools = _object("resolution_tools", given)
    checked: dict[str, str | Resolver] = {}
    for kind, tool in tools.items():
        if not _is_name(kind):
            raise ConfigError("resolution_tools", kind, "give a reference type as the key")
        if not isinstance(tool, Resolver) and not _is_name(tool):
            raise ConfigError(f"resolution_tools.{kind}", tool, "give the name of a tool, or a Resolver")
        checked[kind] = cast("str | Resolver", tool)  # as just looked at
    return checked


def _pattern(row: object) -> ReferencePattern:
    given = _object("custom_patterns", row)
    _known("custom_patterns", given, ("ref_type", "pattern"), required=("ref_type", "pattern"))
    return ReferencePattern(given["ref_type"], given["pattern"])  # pyright: ignore[reportArgumentType]  # it checks


def _resolver(tool: object) -> str | Resolver:
    if isinstance(tool, str):
        return tool
    given = _object("resolution_tools", tool)
    _known("resolution_tools", given, ("tool", "argument"), required=("tool",))
    return Resolver(given["tool"], given.get("argument"))  # pyright: ignore[reportArgumentType]  # it checks


def _object(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(name, value, "give an object")
    return cast("Mapping[str, object]", value)  # keys are checked where they matter


def _known(name: str, given: Mapping[str, object], known: tuple[str, ...], required: tuple[str, ...] = ()) -> None:
    for key in given:
        if key not in known:
            raise ConfigError(f"{name}.{key}", given[key], f"there is no such field; known are {', '.join(known)}")
    for key in required:
        if key not in given:
            raise ConfigError(f"{name}.{key}", None, "this field is needed")
