"""What a form parser hands on: calls as they were written, before names are resolved and arguments are validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from surefoot.core.parse.json_ladder import Rules
from surefoot.core.parse.json_lossless import NEVER, Closing
from surefoot.core.parse.labels import DEFAULT_LABELS, Labels
from surefoot.core.parse.offered import Offered
from surefoot.types.dataclass import dataclass, field
from surefoot.types.reply import Fault, ReplyWarning

Repairing = Literal["strict", "lossless"]

NO_ARGUMENTS: Mapping[str, object] = {}
NO_WARNINGS: frozenset[ReplyWarning] = frozenset()


@dataclass(frozen=True, slots=True)
class Reading:
    """How one reply is to be read. `cut`: by length; `stopped`: the wire said that the model was done."""

    offered: Offered
    labels: Labels = DEFAULT_LABELS
    cut: bool = False
    stopped: bool = True
    repair: Repairing = "lossless"
    injected: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def rules(self, *marks: str, at_end: bool = False, payloads: bool = False, is_call: bool = False) -> Rules:
        """What may be forgiven in a value whose form ends at one of `marks`, or has no mark and ends with the text."""
        if self.repair == "strict":
            return Rules(lossless=False, payloads=payloads)
        closing = NEVER if self.cut else Closing(marks, at_end and self.stopped)
        return Rules(closing=closing, payloads=payloads, is_call=is_call)


@dataclass(frozen=True, slots=True)
class Draft:
    """One call as written: a name and decoded arguments, or the fault that stands in its place."""

    name: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    fault: Fault | None = None
    id: str = ""
    objective: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What one form found in the visible text.

    `content` is the text that belongs to no call, `end` where the step ends (-1: with the text). `frame` says whether
    at least the frame of one call could be read. `error` is a fault of the reply that belongs to no call.
    """

    format: str
    drafts: tuple[Draft, ...] = ()
    content: str = ""
    warnings: frozenset[ReplyWarning] = NO_WARNINGS
    final: str | None = None
    error: Fault | None = None
    end: int = -1
    frame: bool = True
