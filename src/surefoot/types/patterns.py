"""Which regular expressions a configuration may hold: those that compile and are not built to run for ever."""

from __future__ import annotations

import re
from collections.abc import Iterator

from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ConfigError

LONGEST_PATTERN = 1_000
"""Characters of one pattern."""
LONGEST_TYPE = 64

_TYPE = re.compile(rf"[A-Za-z][A-Za-z0-9_.-]{{0,{LONGEST_TYPE - 1}}}")
_SIGN = re.compile(
    r"\\[0-7]{3}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?#[^)]*\)|\(\?(?:<[=!]|P?<\w*>|P=\w+\)|\(\w+\)|.)?|.", re.DOTALL
)
_BACK = re.compile(r"\\(?![0-7]{3})[1-9]|\(\?(?:P=|\()")
"""A sign that refers back to a group; a back-slash with three octal digits is a character."""
_REPEAT = re.compile(r"[*+?]|\{(?!\})(\d*)(,?)(\d*)\}")


@dataclass(frozen=True, slots=True)
class ReferencePattern:
    """What is a reference of type `ref_type`: each whole match of `pattern`, or its group `value` if there is one.

    Python `re` syntax, at most `LONGEST_PATTERN` characters, without references back to a group and without an
    unbounded repeat inside a repeated group (`(a+)+`); else `ConfigError` with the place. That leaves patterns that
    take very long on some texts, so whoever runs one bounds its time. Source: spec/primitives.md, 3.3.
    """

    ref_type: str
    pattern: str

    def __post_init__(self) -> None:
        if not _is_type_name(self.ref_type):
            raise ConfigError(
                "ref_type",
                self.ref_type,
                f"give a letter, then letters, digits, _ . or -, at most {LONGEST_TYPE} characters",
            )
        if not isinstance(self.pattern, str) or not self.pattern:  # pyright: ignore[reportUnnecessaryIsInstance]  # JSON
            raise ConfigError("pattern", self.pattern, "give a regular expression as text")
        if len(self.pattern) > LONGEST_PATTERN:
            raise ConfigError(
                "pattern", self.pattern[:80], f"give at most {LONGEST_PATTERN} characters, not {len(self.pattern)}"
            )
        _check(self.pattern)


def _is_type_name(value: object) -> bool:
    return isinstance(value, str) and _TYPE.fullmatch(value) is not None


def _check(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        place = "" if error.pos is None else f" at character {error.pos}"
        raise ConfigError("pattern", pattern, f"it does not compile: {error.msg}{place}") from error
    except (RecursionError, OverflowError) as error:
        raise ConfigError(
            "pattern", pattern, "it is nested too deeply or repeats too often; write a simpler one"
        ) from error
    for at, sign in _signs(pattern):
        if _BACK.match(sign):
            raise ConfigError(
                "pattern", pattern, f"it refers back to a group at character {at}; write without back-references"
            )
    if (at := _nested_repeat(pattern)) is not None:
        raise ConfigError(
            "pattern",
            pattern,
            f"the repeated group that ends at character {at} holds a repeat without bound, which can take for ever; "
            "give the inner repeat a bound, such as {1,40}, or take one of the two away",
        )


def _signs(pattern: str) -> Iterator[tuple[int, str]]:
    """Each sign with its place: an escape, a class, the opening of a group, or one character."""
    for match in _SIGN.finditer(pattern):
        yield match.start(), match.group()


def _nested_repeat(pattern: str) -> int | None:
    """The place where a group ends that is repeated and holds a repeat without bound; None when there is none."""
    open_groups: list[bool] = []  # whether each holds such a repeat
    skip_to = 0
    for at, sign in _signs(pattern):
        if at < skip_to:
            continue
        if sign.startswith("(") and not sign.endswith(")"):
            open_groups.append(False)
        elif sign == ")" and open_groups:
            holds = open_groups.pop()
            repeat = _repeat_at(pattern, at + 1)
            if repeat is not None and holds and repeat[0] > 1:
                return at
            if open_groups:
                open_groups[-1] |= holds
        elif (repeat := _repeat_at(pattern, at)) is not None:
            skip_to = repeat[1]
            if open_groups and repeat[0] == _UNBOUNDED:
                open_groups[-1] = True
    return None


_UNBOUNDED = 1 << 32


def _repeat_at(pattern: str, at: int) -> tuple[int, int] | None:
    """How often the sign before `at` may come at most, and where the repeat ends; None when `at` begins no repeat."""
    found = _REPEAT.match(pattern, at)
    if found is None:
        return None
    match found.group()[0]:
        case "?":
            return 1, found.end()
        case "*" | "+":
            return _UNBOUNDED, found.end()
        case _:
            least, comma, most = found.groups()
            return int(most) if most else _UNBOUNDED if comma else int(least), found.end()
