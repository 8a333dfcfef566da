"""What happens to the plan of a run, beside what happens to its steps (`types/step_events.py`).

These are events of a run (`types/events.py`). Source: spec/planning.md, section 3.
"""

from __future__ import annotations

from typing import Literal

from surefoot.types.dataclass import dataclass
from surefoot.types.messages import ModelMessage
from surefoot.types.planning import Operation, Plan, ProposalKind
from surefoot.types.reflection import Cause, EvaluationResult, ReflectionResult, ReplanningStrategy, StepReflection


@dataclass(frozen=True, slots=True)
class OfPlan:
    """What all of them are: something that befalls a plan."""


@dataclass(frozen=True, slots=True)
class ProposalMade(OfPlan):
    """A reply that proposes something, as it came; nothing follows from it but by the event that decides about it.

    `about` is the step of a step reflection. `by` is "model", or "developer" for a plan that was given.
    """

    kind: ProposalKind
    message: ModelMessage
    about: str = ""
    by: Literal["model", "developer"] = "model"
    elapsed_s: float = 0.0
    requests: int = 1
    type: Literal["ProposalMade"] = "ProposalMade"


@dataclass(frozen=True, slots=True)
class ProposalRefused(OfPlan):
    """A proposal was not taken, wholly or in part: `what` is the rule, `detail` what of it."""

    kind: ProposalKind
    what: str
    detail: str = ""
    about: str = ""
    type: Literal["ProposalRefused"] = "ProposalRefused"


@dataclass(frozen=True, slots=True)
class PlanMade(OfPlan):
    """There is a plan."""

    plan: Plan
    type: Literal["PlanMade"] = "PlanMade"


@dataclass(frozen=True, slots=True)
class PlanEdited(OfPlan):
    """The plan was repaired, in one piece: `operations` make version `version` out of `base_version`."""

    base_version: int
    version: int
    strategy: ReplanningStrategy
    operations: tuple[Operation, ...]
    by: str = "model"
    description: str = ""
    type: Literal["PlanEdited"] = "PlanEdited"


@dataclass(frozen=True, slots=True)
class PlanSigned(OfPlan):
    """A person spoke about a plan before it runs; a note is the user's words, and asks for another plan."""

    version: int
    decision: Literal["approved", "rejected", "revise"]
    by: str
    note: str = ""
    type: Literal["PlanSigned"] = "PlanSigned"


@dataclass(frozen=True, slots=True)
class StepReflected(OfPlan):
    """What follows for a failed step: another try with `tool_id` and `parameters`, or the run is thought about.

    `instruction` is that of a step of another kind. `unanchored`: the retry goes beyond the user's words, and whoever
    proposed it had read untrusted text. `why` says what led to it: "asked" (the reflection proposes it),
    "refused" or "malformed" (no proposal was fit in as many tries as there are). `notes` are contradictions in it.
    """

    step_id: str
    attempt: int
    decision: Literal["retry", "escalate"]
    reflection: StepReflection | None = None
    tool_id: str = ""
    parameters: dict[str, object] | None = None
    instruction: str = ""
    why: Literal["asked", "refused", "malformed"] = "asked"
    notes: tuple[str, ...] = ()
    unanchored: bool = False
    type: Literal["StepReflected"] = "StepReflected"


@dataclass(frozen=True, slots=True)
class Escalated(OfPlan):
    """The engine wants the run thought about: a step failed too often in one way, nothing can go on, or an evaluation.

    `step_id` is "" for an evaluation.
    """

    step_id: str
    cause: Cause
    type: Literal["Escalated"] = "Escalated"


@dataclass(frozen=True, slots=True)
class RunReflected(OfPlan):
    """What follows for the run: it is over (`ending` is how, `reason` why), or a strategy is applied.

    `engine_percent` is the engine's own figure of completion; `disputed`: the model's is 25 points away.
    """

    decision: Literal["stop", "replan"]
    cause: Cause
    reflection: ReflectionResult
    ending: Literal["", "stopped", "completed_partial"] = ""
    reason: str = ""
    strategy: ReplanningStrategy | None = None
    engine_percent: int = 0
    disputed: bool = False
    type: Literal["RunReflected"] = "RunReflected"


@dataclass(frozen=True, slots=True)
class RunEvaluated(OfPlan):
    """An evaluator has looked at the run."""

    evaluation: EvaluationResult
    elapsed_s: float = 0.0
    type: Literal["RunEvaluated"] = "RunEvaluated"


PlanEvent = (
    ProposalMade
    | ProposalRefused
    | PlanMade
    | PlanEdited
    | PlanSigned
    | StepReflected
    | Escalated
    | RunReflected
    | RunEvaluated
)
"""What befalls a plan."""
