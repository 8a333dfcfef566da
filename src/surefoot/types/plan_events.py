"""What happens to a plan and its steps, as the journal has it."""

from __future__ import annotations

from typing import Literal

from surefoot.types.dataclass import dataclass
from surefoot.types.messages import ModelMessage
from surefoot.types.plan import Operation, Plan, ProposalKind, StepError
from surefoot.types.reflection import Cause, EvaluationResult, ReflectionResult, ReplanningStrategy, StepReflection
from surefoot.types.tools import Trust


@dataclass(frozen=True, slots=True)
class OfStep:
    """What all of them have: the step."""

    step_id: str


@dataclass(frozen=True, slots=True)
class StepStarted(OfStep):
    """A step of the plan begins; the call of a tool step is about to be judged. `attempt` counts from 1."""

    attempt: int = 1
    elapsed_s: float = 0.0
    type: Literal["StepStarted"] = "StepStarted"


@dataclass(frozen=True, slots=True)
class StepEnded(OfStep):
    """A tool or agent step is over, or any step has failed (`error`).

    The output of a tool step is the result of the call `call_id`. `sources` and `trust` as `StepExecutionResult` has
    them.
    """

    output: str = ""
    call_id: str = ""
    error: StepError | None = None
    sources: tuple[str, ...] = ()
    trust: Trust = "trusted"
    attempt: int = 1
    type: Literal["StepEnded"] = "StepEnded"


@dataclass(frozen=True, slots=True)
class StepSkipped(OfStep):
    """A step was left out. `by` is who chose that."""

    reason: str
    by: str
    type: Literal["StepSkipped"] = "StepSkipped"


@dataclass(frozen=True, slots=True)
class ReasoningStepCompleted(OfStep):
    """A step without tools has its words, after so many tries; `isolated`: out of fresh messages.

    `sources` and `trust` are those of all that the model had read. Source: spec/guard.md, sections 2 and 6.
    """

    output: str
    tries: int = 1
    isolated: bool = False
    sources: tuple[str, ...] = ()
    trust: Trust = "trusted"
    type: Literal["ReasoningStepCompleted"] = "ReasoningStepCompleted"


@dataclass(frozen=True, slots=True)
class ReasoningStepViolated(OfStep):
    """A reply in a step without tools was none that it can use: the try `attempt`, from 1.

    `reason` is "calls" (`call_ids` of `tools`: none ran), "empty", or the fault of an unreadable reply.
    `after_untrusted`: untrusted text was in view, so the calls may be somebody else's.
    Source: spec/guard.md, section 2.
    """

    attempt: int
    reason: str
    call_ids: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    after_untrusted: bool = False
    type: Literal["ReasoningStepViolated"] = "ReasoningStepViolated"


StepEvent = StepStarted | StepEnded | StepSkipped | ReasoningStepCompleted | ReasoningStepViolated
"""What happens to a step of a plan as a whole."""


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
