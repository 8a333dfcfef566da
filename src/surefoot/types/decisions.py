"""What the gate may say about a call."""

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
