"""The pins of foreign tools between runs: what was seen first counts until a person takes another.

They are kept in a JSON file beside the journal, `JOURNAL.pins.json`, with the texts that were seen, so that a change
can be shown; without a journal in a file they live as long as the agent. Two processes that see a tool for the first
time in the same moment may both record it, and the later one counts. Source: spec/guard.md, section 4.4.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, cast, runtime_checkable

from surefoot.core.text.json import pin_of
from surefoot.types.errors import JournalError
from surefoot.types.tools import ToolSpec

LONGEST_DIFF = 600
"""Characters of a difference in an event; `surefoot check` shows all of it."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """What the pins say of the foreign tools at hand.

    `first` are those seen for the first time, with their pins; `hidden` those that stay hidden, and why. The reason
    quotes the tool: foreign text.
    """

    first: Mapping[str, str] = field(default_factory=dict[str, str])
    hidden: Mapping[str, str] = field(default_factory=dict[str, str])


NOTHING_PINNED = Pinned()


@runtime_checkable
class InAFile(Protocol):
    """A journal that is kept in one file."""

    @property
    def path(self) -> Path:
        """Where the file is."""
        ...


def pins_file(journal: Path) -> Path:
    """Where the pins of a journal are."""
    return journal.with_name(f"{journal.name}.pins.json")


class Pins:
    """The pins beside a journal. Raises `JournalError` for a file that cannot be read or written."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept: dict[str, Mapping[str, object]] = {}

    @classmethod
    def beside(cls, journal: object) -> Pins:
        """The pins of a journal store, in memory for one that is not a file."""
        return cls(pins_file(journal.path) if isinstance(journal, InAFile) else None)

    def check(self, tools: Iterable[ToolSpec], mode: Literal["first-use", "strict"]) -> Pinned:
        """What the pins say of the foreign ones among tools that a run may begin with; records first sights.

        With "strict" nothing is recorded, and what no person has taken is hidden.
        """
        found = self.look(tools)
        strange = {spec.name: spec for spec, told in found if told is None}
        hidden = {
            spec.name: "it has changed since it was pinned: "
            + (told if len(told) <= LONGEST_DIFF else f"{told[:LONGEST_DIFF]}…")
            for spec, told in found
            if told
        }
        if mode == "strict":
            return Pinned(hidden={**hidden, **dict.fromkeys(strange, "nobody has pinned it, and pins are strict")})
        if strange:
            self.take(strange.values(), "first use")
        return Pinned({name: pin_of(spec) for name, spec in strange.items()}, hidden)

    def look(self, tools: Iterable[ToolSpec]) -> Sequence[tuple[ToolSpec, str | None]]:
        """Each foreign tool with how it differs from what is pinned: "" not at all, None where nothing is pinned."""
        foreign = [spec for spec in tools if spec.is_foreign]
        kept = self._read() if foreign else {}
        return [(spec, difference(kept[spec.name], spec) if spec.name in kept else None) for spec in foreign]

    def take(self, tools: Iterable[ToolSpec], by: str) -> None:
        """Pin tools as they are now. `by` is who says so; it is kept with them."""
        kept = {**self._read(), **{spec.name: {**_texts(spec), "pin": pin_of(spec), "by": by} for spec in tools}}
        if self._path is None:
            self._kept = kept
        else:
            write_whole(self._path, "\n".join(_lines(kept)).encode(errors="replace"), "the pins of foreign tools")

    def _read(self) -> dict[str, Mapping[str, object]]:
        if self._path is None:
            return self._kept
        try:
            told = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            told = error
        if not isinstance(told, dict) or not all(isinstance(one, dict) and "pin" in one for one in told.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  # this is where it is found out
            why = "mend it, or remove it to pin all foreign tools anew"
            raise JournalError(f"the pins of foreign tools, {self._path}, cannot be read; {why}")
        return cast("dict[str, Mapping[str, object]]", told)  # as was just asked


def difference(pinned: Mapping[str, object], spec: ToolSpec) -> str:
    """How a tool differs from what is pinned, line by line; "" when its pin is the same. It quotes foreign text."""
    if pinned["pin"] == pin_of(spec):
        return ""
    old, new = (_lines({name: told.get(name) for name in _texts(spec)}) for told in (pinned, _texts(spec)))
    told = [
        line for line in difflib.unified_diff(old, new, lineterm="", n=0) if not line.startswith(("---", "+++", "@"))
    ]
    return "\n".join(told) or "its pin alone"


def _texts(spec: ToolSpec) -> dict[str, object]:
    return {
        "server": spec.server,
        "description": spec.description,
        "parameters": spec.parameters,
        "output": spec.output,
    }


def write_whole(path: Path, content: bytes, what: str) -> None:
    """Write a file that only its user can read, whole or not at all. Raises `JournalError`, which names it."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.touch(0o600)
        fresh.write_bytes(content)
        fresh.replace(path)
    except OSError as error:
        raise JournalError(f"cannot write {what}, {path}: {error.strerror}") from error


def _lines(told: Mapping[str, object]) -> list[str]:
    return json.dumps(told, ensure_ascii=False, indent=2, sort_keys=True).split("\n")
