"""What a person, or a program in their name, says to a run: the closed union of words, and the run's inbox.

A word is put into the inbox of its run, whoever drives that. Whoever does, or takes it up next, makes events of it, or
says why it does not count. Source: spec/serving.md, section 6; spec/scale.md, section 2.
"""

from __future__ import annotations

from typing import Literal

from surefoot.types.config import LoopConfig
from surefoot.types.dataclass import dataclass
from surefoot.types.events import Outcome


@dataclass(frozen=True, slots=True)
class Approve:
    """Yes to exactly these calls, all or none. `calls` are their ids with the digests that were shown.

    A digest of "" takes the call as it stands, for whoever has just looked.
    """

    calls: tuple[tuple[str, str], ...]
    by: str
    note: str = ""
    type: Literal["Approve"] = "Approve"


@dataclass(frozen=True, slots=True)
class Refuse:
    """No to these calls; the model reads the reason. Of a plan it asks for another one."""

    calls: tuple[tuple[str, str], ...]
    by: str
    reason: str = ""
    type: Literal["Refuse"] = "Refuse"


@dataclass(frozen=True, slots=True)
class Settle:
    """What became of a call in doubt; `result` is what it gave, for the model to read."""

    call_id: str
    outcome: Outcome
    by: str
    result: str = ""
    digest: str = ""
    type: Literal["Settle"] = "Settle"


@dataclass(frozen=True, slots=True)
class Sign:
    """A word about version `version` of a plan: it runs, it ends the run, or another is made for the reason given."""

    version: int
    verdict: Literal["approved", "rejected", "revise"]
    by: str
    reason: str = ""
    type: Literal["Sign"] = "Sign"


@dataclass(frozen=True, slots=True)
class Note:
    """Something more that the user says; it counts as their words."""

    text: str
    by: str
    type: Literal["Note"] = "Note"


@dataclass(frozen=True, slots=True)
class Cancel:
    """The run ends here, and each open call is settled."""

    by: str
    reason: str = ""
    type: Literal["Cancel"] = "Cancel"


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on after an end, an interruption or a pause, with another configuration if one is given."""

    by: str
    config: LoopConfig | None = None
    type: Literal["Resume"] = "Resume"


Word = Approve | Refuse | Settle | Sign | Note | Cancel | Resume

Problem = Literal["not_waiting", "other_question", "changed", "expired", "no_such_call", "ended", "invalid"]
"""Why a word does not count."""

WordOutcome = Literal["", "applied"] | Problem  # what came of a word; "" as long as the run has not got to it


@dataclass(frozen=True, slots=True)
class Posted:
    """A word in the inbox of a run. `number` counts them over all runs; `seq` is the record that it became.

    `key` is the idempotency key that it was posted with, `detail` why it did not count.
    """

    number: int
    word: Word
    key: str = ""
    outcome: WordOutcome = ""
    detail: str = ""
    seq: int = -1
