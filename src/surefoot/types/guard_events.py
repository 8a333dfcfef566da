"""What the stages of the guard found: these are events of a run (`types/events.py`).

Source: spec/guard.md, sections 3 and 6.
"""

from __future__ import annotations

from typing import Literal

from surefoot.types.dataclass import dataclass
from surefoot.types.guard import CommitmentDecision, HypothesisTree
from surefoot.types.messages import Usage


@dataclass(frozen=True, slots=True)
class Asking:
    """What it took to ask a model for a stage: who was asked in which role, and why there is no reply ("": there is).

    `requests` are those made for it, 0 in records from before they were counted. `elapsed_s` as in other events:
    seconds in which the run was driven, at the end of it.
    """

    model: str
    role: str
    failure: str = ""
    usage: Usage = Usage()
    elapsed_s: float = 0.0
    requests: int = 0


@dataclass(frozen=True, slots=True)
class PerceptionSanitised:
    """What of the result of a call is not shown to a model; the journal and the gate keep the result as it was.

    `stripped` counts characters that do not show. With `asking` a model has read it: `masks` are the passages that it
    named, word for word, and `ignored` counts those that were not found so. A failure of it means that the result is
    `degraded`. Source: spec/guard.md, section 3.3.
    """

    call_id: str
    stripped: int = 0
    masks: tuple[str, ...] = ()
    ignored: int = 0
    asking: Asking | None = None
    type: Literal["PerceptionSanitised"] = "PerceptionSanitised"

    @property
    def degraded(self) -> bool:
        """Whether a model should have read the result and has not."""
        return self.asking is not None and bool(self.asking.failure)


@dataclass(frozen=True, slots=True)
class JudgementMade:
    """A model's word on one call, which can only tighten what the policies say; "" where it failed.

    `reason` is text of a model that may have seen untrusted text: it is for persons alone.
    """

    call_id: str
    digest: str
    asking: Asking
    verdict: Literal["allow", "ask", "deny", ""] = ""
    reason: str = ""
    constraint_id: str = ""
    type: Literal["JudgementMade"] = "JudgementMade"


GuardEvent = PerceptionSanitised | JudgementMade


@dataclass(frozen=True, slots=True)
class OfTree:
    """What speculation puts on record."""


@dataclass(frozen=True, slots=True)
class HypothesesMade(OfTree):
    """The ways to go on that a model names, and those of memory; `dropped` counts what cannot be taken or is known.

    A failure means that there is no tree, and that the model goes on as ever. Source: spec/guard.md, section 3.4.
    """

    tree: HypothesisTree
    dropped: int
    asking: Asking
    type: Literal["HypothesesMade"] = "HypothesesMade"


@dataclass(frozen=True, slots=True)
class BranchRejected(OfTree):
    """A branch is out: the gate refuses it, or its call was made and came to nothing ("person", "call_failed")."""

    tree_id: str
    branch_id: str
    rule: str
    reason: str
    type: Literal["BranchRejected"] = "BranchRejected"


@dataclass(frozen=True, slots=True)
class BranchCommitted(OfTree):
    """Which branch is taken, and why; none if all were rejected.

    With `asking` a model was asked to choose. `direct`: its calls are made without asking the model for them.
    """

    decision: CommitmentDecision
    asking: Asking | None = None
    direct: bool = False
    type: Literal["BranchCommitted"] = "BranchCommitted"


SpeculationEvent = HypothesesMade | BranchRejected | BranchCommitted
"""How a step with tools is speculated about (section 3.4)."""
