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

    Python `re` syntax, at most `LONGEST_PATTERN` characters, without references back to a group, without an unbounded
    repeat inside a repeated group (`(a+)+`), and without a choice inside a group that is repeated without bound
    (`(a|a)+`, `(a?)+`); else `ConfigError` with the place. That leaves patterns that take long on some texts: nothing
    interrupts a single match, so they are for the operator alone to write. Source: spec/primitives.md, 3.3.
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
            f"the repeated group that ends at character {at} holds a choice or another repeat without bound, which can "
            "take for ever; give one of the two repeats a bound, such as {1,40}, or take it away",
        )


def _signs(pattern: str) -> Iterator[tuple[int, str]]:
    """Each sign with its place: an escape, a class, the opening of a group, or one character."""
    for match in _SIGN.finditer(pattern):
        yield match.start(), match.group()


def _nested_repeat(pattern: str) -> int | None:
    """Where a repeated group ends that can match one text in very many ways; None when there is none.

    That is one which holds a repeat without bound, or which is repeated without bound and holds a choice: `|`, or
    something that comes a varying number of times.
    """
    held: list[int] = []  # the most that varies in each open group: 0, 1 for a choice, or `_UNBOUNDED`
    skip_to = 0
    for at, sign in _signs(pattern):
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
