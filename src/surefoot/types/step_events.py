"""What happens to the steps of a plan: these are events of a run (`types/events.py`).

Source: spec/guard.md, sections 2 and 6; spec/planning.md, section 3.
"""

from __future__ import annotations

from typing import Literal

from surefoot.types.dataclass import dataclass
from surefoot.types.plan import StepError
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
