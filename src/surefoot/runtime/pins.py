"""The pins of foreign tools between runs: what was seen first counts until a person takes another.

They are kept beside the journal as JSON, with the texts that were seen, so that a change can be shown: for a journal in
a file in `JOURNAL.pins.json`. Of two processes that see a tool for the first time in the same moment, one is first.
Source: spec/guard.md, section 4.4; spec/scale.md, section 2.1.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from surefoot.core.text.json import pin_of
from surefoot.journal.side import amend
from surefoot.types.archive import SideStore
from surefoot.types.errors import JournalError
from surefoot.types.tools import ToolSpec

PINS = "pins"
"""The name under which they are kept."""

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


class Pins:
    """The pins beside a journal. Raises `JournalError` for those that cannot be read or written."""

    def __init__(self, side: SideStore) -> None:
        self._side = side

    async def check(self, tools: Iterable[ToolSpec], mode: Literal["first-use", "strict"]) -> Pinned:
        """What the pins say of the foreign ones among tools that a run may begin with; records first sights.

        With "strict" nothing is recorded, and what no person has taken is hidden.
        """
        foreign = [spec for spec in tools if spec.is_foreign]
        while True:
            was = await self._side.get(PINS) if foreign else b""
            kept = self._pins_of(was)
            found = _differences(foreign, kept)
            strange = {spec.name: spec for spec, told in found if told is None}
            ends = {spec.name: "…" if told and len(told) > LONGEST_DIFF else "" for spec, told in found}
            why = "it has changed since it was pinned: "
            hidden = {spec.name: f"{why}{told[:LONGEST_DIFF]}{ends[spec.name]}" for spec, told in found if told}
            if mode == "strict":
                return Pinned(hidden={**hidden, **dict.fromkeys(strange, "nobody has pinned it, and pins are strict")})
            if not strange or await self._side.put(PINS, _with(kept, strange.values(), "first use"), was):
                return Pinned({name: pin_of(spec) for name, spec in strange.items()}, hidden)

    async def look(self, tools: Iterable[ToolSpec]) -> Sequence[tuple[ToolSpec, str | None]]:
        """Each foreign tool with how it differs from what is pinned: "" not at all, None where nothing is pinned."""
        foreign = [spec for spec in tools if spec.is_foreign]
        return _differences(foreign, self._pins_of(await self._side.get(PINS) if foreign else b""))

    async def take(self, tools: Iterable[ToolSpec], by: str) -> None:
        """Pin tools as they are now. `by` is who says so; it is kept with them."""
        taken = tuple(tools)
        await amend(self._side, PINS, lambda was: _with(self._pins_of(was), taken, by))

    def _pins_of(self, data: bytes) -> dict[str, Mapping[str, object]]:
        try:
            told: object = json.loads(data or b"{}")
        except ValueError as error:
            told = error
        if not isinstance(told, dict) or not all(isinstance(one, dict) and "pin" in one for one in told.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  # this is where it is found out
            why = "fix it, or remove it to pin all foreign tools again"
            raise JournalError(f"the pins of foreign tools, {self._side.place(PINS)}, cannot be read; {why}")
        return cast("dict[str, Mapping[str, object]]", told)  # as was just asked


def _with(kept: Mapping[str, Mapping[str, object]], tools: Iterable[ToolSpec], by: str) -> bytes:
    after = {**kept, **{spec.name: {**_texts(spec), "pin": pin_of(spec), "by": by} for spec in tools}}
    return "\n".join(_lines(after)).encode(errors="replace")


def _differences(
    foreign: Iterable[ToolSpec], kept: Mapping[str, Mapping[str, object]]
) -> list[tuple[ToolSpec, str | None]]:
    return [(spec, difference(kept[spec.name], spec) if spec.name in kept else None) for spec in foreign]


def difference(pinned: Mapping[str, object], spec: ToolSpec) -> str:
    """How a tool differs from what is pinned, line by line; "" when its pin is the same. It quotes foreign text."""
    if pinned["pin"] == pin_of(spec):
        return ""
    old, new = (_lines({name: told.get(name) for name in _texts(spec)}) for told in (pinned, _texts(spec)))
    lines = difflib.unified_diff(old, new, lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@"))) or "its pin alone"


def _texts(spec: ToolSpec) -> dict[str, object]:
    return {name: getattr(spec, name) for name in ("server", "description", "parameters", "output")}


def _lines(told: Mapping[str, object]) -> list[str]:
    return json.dumps(told, ensure_ascii=False, indent=2, sort_keys=True).split("\n")
