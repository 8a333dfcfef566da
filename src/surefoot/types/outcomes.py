"""What the gate may say about a call, and how a run ends."""

from __future__ import annotations

from typing import Literal

from surefoot.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""

    kind: Literal["allow"] = "allow"


ALLOWED = Allow()


@dataclass(frozen=True, slots=True)
class Ask:
    """A person has to say yes or no first; `reason` is what they read."""

    reason: str
    kind: Literal["ask"] = "ask"


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run; `reason` is what the model reads in place of a result."""

    reason: str
    kind: Literal["deny"] = "deny"


Decision = Allow | Ask | Deny


@dataclass(frozen=True, slots=True)
class Completed:
    """The task was done."""

    answer: str
    kind: Literal["completed"] = "completed"


@dataclass(frozen=True, slots=True)
class CompletedPartial:
    """There is an answer, with a reservation: a limit was reached, or it was not given as one."""

    answer: str
    reason: str
    kind: Literal["completed_partial"] = "completed_partial"


@dataclass(frozen=True, slots=True)
class Stopped:
    """surefoot or the model put an end to it; `answer` is what there was of one, "" for nothing."""

    reason: str
    answer: str = ""
    kind: Literal["stopped"] = "stopped"


@dataclass(frozen=True, slots=True)
class Failed:
    """Something that the run cannot do without was missing; `detail` says what to do about it."""

    reason: str
    detail: str = ""
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A person put an end to it."""

    by: str
    kind: Literal["cancelled"] = "cancelled"


Ending = Completed | CompletedPartial | Stopped | Failed | Cancelled

Status = Literal[
    "completed", "completed_partial", "stopped", "failed", "cancelled", "paused", "ready", "interrupted", "running"
]
"""What a run is called from outside: its ending; or `paused` (it needs a person's decision), `ready` (one was
made, and it can be resumed), `interrupted` (nobody drives)."""
