"""A run that a call of another run has asked, that of an agent: what the two know of each other.

`Started` and `Sum` are what the gate counts for limits, in the run that makes a call and in those around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from surefoot.types.dataclass import dataclass
from surefoot.types.messages import Usage
from surefoot.types.outcomes import Decision
from surefoot.types.rules import Role
from surefoot.types.tools import Effect, ToolSpec


@dataclass(frozen=True, slots=True)
class Sum:
    """An amount, None where it cannot be read, and the currencies of which it may be; none where nobody says.

    `times` is how often it may be meant: the quantity beside a price.
    """

    amount: Decimal | None
    currencies: frozenset[str] = frozenset()
    times: Decimal = Decimal(1)


@dataclass(frozen=True, slots=True)
class Started:
    """A call of this run that was started: what it was for, and which sums it moved.

    `moved` is where it goes, on what it acts and how much it moves, in normal form: however it is spelled, it is that.
    `ended` is its place in the order in which calls with a result have ended, 0 for one that is open.
    """

    call_id: str
    name: str
    effects: frozenset[Effect | None]
    digest: str
    amounts: tuple[Sum, ...] = ()
    is_open: bool = False
    moved: frozenset[tuple[Role, str]] = frozenset()
    ended: int = 0


MADE_BEFORE = "outer/"  # before the ids of calls that an outer run had begun, as its inner run has them


@dataclass(frozen=True, slots=True)
class Refused:
    """What a person said no to, as the gate of a run keeps it (`core/gate/record.py`)."""

    digests: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()
    values: frozenset[tuple[Role, str]] = frozenset()


Quoted = Literal["", "read", "private"]
"""Whether a text that a run passes on has a passage of what the run has read, or of what is confidential there."""


@dataclass(frozen=True, slots=True)
class Outer:
    """The call whose run this is: of which run, and the words of the person there, which alone vouch for anything.

    `quoted` says what the task of this run has of what that one has read. `own` are those of the words that persons
    have said, where a model or a program has written others; None where that is all of them.
    """

    run_id: str
    call_id: str
    words: str = ""
    quoted: Quoted = ""
    own: str | None = None


@dataclass(frozen=True, slots=True)
class InnerQuestion:
    """A call of an inner run that waits for a person, as that run has it: `call_id` is its id there.

    `digest` is what an answer binds to; "" in records from before it was kept.
    """

    call_id: str
    name: str
    arguments: Mapping[str, object]
    spec: ToolSpec | None = None
    decision: Decision | None = None
    rule: str = ""
    attempts: int = 0
    doubt: Literal["", "not_done", "unknown"] = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class InnerRun:
    """How the run of an agent stands that a call has asked: what it waits for, and what it has begun for the gate.

    `usage` and `requests` are what it has used since the record before this one. `refused` is what a person has said no
    to there, `is_private` that its answer has a passage of what is confidential.
    """

    run_id: str
    waiting: tuple[InnerQuestion, ...] = ()
    usage: Usage = Usage()
    requests: int = 0
    begun: tuple[Started, ...] = ()
    refused: Refused = Refused()
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class CallPaused:
    """The run of an agent that a call has asked stands still, and waits for what `inner` says.

    With `by`, it is told what it waits for since that person has spoken; once it waits for nothing it can go on.
    """

    call_id: str
    inner: InnerRun
    elapsed_s: float = 0.0
    by: str = ""
    type: Literal["CallPaused"] = "CallPaused"
