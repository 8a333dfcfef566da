"""Pre-hydration: what a reference is, what can be set about fetching it, what was found, and its events.

Source: spec/primitives.md, sections 3, 4.5 and 6.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from surefoot.types.dataclass import dataclass, field
from surefoot.types.errors import ConfigError
from surefoot.types.reply import ParsedCall
from surefoot.types.settings import (
    Settings,
    choice,
    fits,
    from_table,
    mapping_of,
    or_none,
    row,
    seconds,
    setting,
    whole,
)
from surefoot.types.tools import Trust

LONGEST_PATTERN = 1_000  # characters of one pattern
LONGEST_TYPE = 64

_TYPE = re.compile(rf"[A-Za-z][A-Za-z0-9_.-]{{0,{LONGEST_TYPE - 1}}}")
_SIGN = re.compile(  # an escape, a class, the opening of a group, or one character
    r"\\[0-7]{3}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?#[^)]*\)|\(\?(?:<[=!]|P?<\w*>|P=\w+\)|\(\w+\)|.)?|.", re.DOTALL
)
_BACK = re.compile(r"\\(?![0-7]{3})[1-9]|\(\?(?:P=|\()")
"""A sign that refers back to a group; a back-slash with three octal digits is a character."""
_REPEAT = re.compile(r"[*+?]|\{(?!\})(\d*)(,?)(\d*)\}")


@dataclass(frozen=True, slots=True)
class ReferencePattern:
    """What is a reference of type `ref_type`: each whole match of `pattern`, or its group `value` if there is one.

    Python `re` syntax, at most `LONGEST_PATTERN` characters, without references back to a group, without an unbounded
    repeat inside a repeated group (`(a+)+`), and without a choice inside a group that is repeated without bound
    (`(a|a)+`, `(a?)+`); else `ConfigError` with the place. That leaves patterns that take long on some texts: nothing
    interrupts a single match, so they are for the operator alone to write. Source: spec/primitives.md, 3.3.
    """

    ref_type: str
    pattern: str

    def __post_init__(self) -> None:
        if not isinstance(self.ref_type, str) or _TYPE.fullmatch(self.ref_type) is None:  # pyright: ignore[reportUnnecessaryIsInstance]  # JSON
            told = f"give a letter, then letters, digits, _ . or -, at most {LONGEST_TYPE} characters"
            raise ConfigError("ref_type", self.ref_type, told)
        if not isinstance(self.pattern, str) or not self.pattern:  # pyright: ignore[reportUnnecessaryIsInstance]  # JSON
            raise ConfigError("pattern", self.pattern, "give a regular expression as text")
        if len(self.pattern) > LONGEST_PATTERN:
            told = f"give at most {LONGEST_PATTERN} characters, not {len(self.pattern)}"
            raise ConfigError("pattern", self.pattern[:80], told)
        try:
            re.compile(self.pattern)
        except re.error as error:
            place = "" if error.pos is None else f" at character {error.pos}"
            raise ConfigError("pattern", self.pattern, f"it does not compile: {error.msg}{place}") from error
        except (RecursionError, OverflowError) as error:
            told = "it is nested too deeply or repeats too often; write a simpler one"
            raise ConfigError("pattern", self.pattern, told) from error
        for sign in _SIGN.finditer(self.pattern):
            if _BACK.match(sign[0]):
                told = f"it refers back to a group at character {sign.start()}; write without back-references"
                raise ConfigError("pattern", self.pattern, told)
        if (at := _nested_repeat(self.pattern)) is not None:
            told = (
                f"the repeated group that ends at character {at} holds a choice or another repeat without bound, which "
                "can take for ever; give one of the two repeats a bound, such as {1,40}, or take it away"
            )
            raise ConfigError("pattern", self.pattern, told)


def _nested_repeat(pattern: str) -> int | None:
    """Where a repeated group ends that can match one text in very many ways; None when there is none.

    That is one which holds a repeat without bound, or which is repeated without bound and holds a choice: `|`, or
    something that comes a varying number of times.
    """
    held: list[int] = []  # the most that varies in each open group: 0, 1 for a choice, or `_UNBOUNDED`
    skip_to = 0
    for match in _SIGN.finditer(pattern):
        at, sign = match.start(), match[0]
        if at < skip_to:
            continue
        if sign.startswith("(") and not sign.endswith(")"):
            held.append(0)
        elif sign == ")" and held:
            inner = held.pop()
            repeat = _repeat_at(pattern, at + 1)
            if repeat is not None and ((inner == _UNBOUNDED and repeat[1] > 1) or (inner and repeat[1] == _UNBOUNDED)):
                return at
            if held:
                held[-1] = max(held[-1], inner)
        elif (repeat := _repeat_at(pattern, at)) is not None:
            least, most, skip_to = repeat
            if held and least != most:
                held[-1] = max(held[-1], _UNBOUNDED if most == _UNBOUNDED else 1)
        elif sign == "|" and held:
            held[-1] = max(held[-1], 1)
    return None


_UNBOUNDED = 1 << 32


def _repeat_at(pattern: str, at: int) -> tuple[int, int, int] | None:
    """How often at least and at most the sign before `at` comes, and where that ends; None for no repeat."""
    if (found := _REPEAT.match(pattern, at)) is None:
        return None
    match found[0][0]:
        case "?":
            return 0, 1, found.end()
        case "*" | "+" as sign:
            return int(sign == "+"), _UNBOUNDED, found.end()
        case _:
            least, comma, most = found.groups()
            lower = int(least or 0)
            return lower, int(most) if most else _UNBOUNDED if comma else lower, found.end()


PathStyle = Literal["posix", "windows"]

MOST_PATTERNS = 32  # custom patterns of one configuration

BUILT_IN_RESOLVERS: Mapping[str, str] = {"url": "web_fetch", "file": "file_read"}
"""Reference type -> the tool that resolves it, where nothing else is said and the catalogue has that tool."""

TIMED_OUT = "Resolution timed out"
NEEDS_APPROVAL = "needs approval"
"""Why a reference is not resolved; a call is denied with these words."""

_HOST_STYLE: PathStyle = "windows" if os.name == "nt" else "posix"


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


@dataclass(frozen=True, slots=True)
class Resolver(Settings):
    """The tool that resolves references of a type, and the argument that takes the value; None: what fits the tool."""

    tool: str = field(metadata=row(fits(_is_name, "give the name of a tool")))
    argument: str | None = setting(
        None, or_none(fits(_is_name, "give the name of a parameter"), "what fits the tool"), ""
    )


def _tool(kind: object, tool: object) -> object:
    if not _is_name(kind):
        raise ConfigError("resolution_tools", kind, "give a reference type as the key")
    if isinstance(tool, Mapping):
        return from_table(Resolver, cast("Mapping[str, object]", tool), "resolution_tools")  # its keys are asked there
    if not isinstance(tool, Resolver) and not _is_name(tool):
        raise ConfigError(f"resolution_tools.{kind}", tool, "give the name of a tool, or a Resolver")
    return tool


def _patterns(name: str, value: object) -> object:
    if not isinstance(value, list | tuple):
        raise ConfigError(name, value, "give a list of ReferencePattern")
    given = cast("Sequence[object]", value)  # members are looked at one by one
    if len(given) > MOST_PATTERNS:
        raise ConfigError(name, len(given), f"give at most {MOST_PATTERNS}")
    return tuple(one if isinstance(one, ReferencePattern) else from_table(ReferencePattern, one, name) for one in given)


@dataclass(frozen=True, slots=True)
class PreHydrationConfig(Settings):
    """What is fetched before the first turn, and how much of it. Times in seconds; one token is 4 bytes of UTF-8.

    `resolution_tools`: the default is kept in its plain form: as long as the mapping is `BUILT_IN_RESOLVERS`, a tool of
    it that the catalogue lacks is left out; any other tool that is not there is an error; `{}` resolves nothing.
    Raises `ConfigError`. Source: spec/primitives.md, 3.1.
    """

    custom_patterns: tuple[ReferencePattern, ...] = setting(
        (),
        _patterns,
        f'kinds of your own: `{{ref_type = "jira", pattern = "[A-Z]+-[0-9]+"}}`, at most {MOST_PATTERNS}',
        found="default",
    )
    resolution_tools: Mapping[str, str | Resolver] = setting(
        lambda: dict[str, str | Resolver](BUILT_IN_RESOLVERS),
        mapping_of(_tool, "give a table of tools"),
        "which tool that reads fetches which kind; `{tool = …, argument = …}` names the parameter",
    )
    timeout: float = setting(15.0, seconds, "for all references together")
    max_references: int = setting(10, whole(0), "the most that are fetched; 0 looks for none")
    max_context_tokens: int = setting(4000, whole(0), "tokens of all that was fetched")
    reference_timeout: float = setting(10.0, seconds, "for each reference")
    max_per_type: int | None = setting(None, or_none(whole(0), "no limit"), "the most that are fetched of one kind")
    max_concurrency: int = setting(5, whole(1), "fetched side by side")
    max_input_chars: int = setting(1_000_000, whole(0), "characters of the task that are read for references")
    path_style: PathStyle = setting(_HOST_STYLE, choice("posix", "windows"), "`posix` or `windows`")

    def resolver(self, ref_type: str) -> Resolver | None:
        """What resolves references of a type; None when nothing does."""
        named = self.resolution_tools.get(ref_type)
        return Resolver(named) if isinstance(named, str) else named


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


@dataclass(frozen=True, slots=True)
class ReferencesFound:
    """What the user's words refer to, and the calls that fetch it.

    A call's position is the place of its reference, from 0, and its id "0." with that place. A reference without a call
    says why in `refusal`, and has no credentials in its value.
    """

    references: tuple[Reference, ...]
    dropped: int = 0
    scan_truncated: bool = False
    calls: tuple[ParsedCall, ...] = ()
    elapsed_s: float = 0.0
    type: Literal["ReferencesFound"] = "ReferencesFound"


@dataclass(frozen=True, slots=True)
class PreHydrationComplete:
    """What was fetched before the first model call, zeros included. `message` is what the model reads of it.

    Tokens are counted as four bytes each. Source: spec/primitives.md, sections 3.9 and 6.
    """

    references_found: int
    references_resolved: int
    references_failed: int
    total_tokens: int
    references_dropped: int = 0
    frame_tokens: int = 0
    scan_truncated: bool = False
    elapsed_ms: int = 0
    items: tuple[PreHydrationItem, ...] = ()
    message: str = ""
    type: Literal["PreHydrationComplete"] = "PreHydrationComplete"


@dataclass(frozen=True, slots=True)
class ConventionsRead:
    """A run has come to a place: the files of conventions (path, SHA-256, bytes shown) not shown so before, if any.

    `directory` is the place as a call names it, `scope` the directory of the workspace that it means ("" outside), and
    `step` the reply whose calls came there, 0 before the first. `message` is what the model reads of the files, `error`
    why there are none. What is told of the root later stands in place of what was. Source: spec/primitives.md, 4.5.
    """

    directory: str
    files: tuple[tuple[str, str, int], ...] = ()
    message: str = ""
    error: str = ""
    scope: str = ""
    step: int = 0
    type: Literal["ConventionsRead"] = "ConventionsRead"
