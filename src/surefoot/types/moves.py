"""What a run can do next: the closed union of moves. Moves are values and compare by content."""

from __future__ import annotations

from typing import Literal

from surefoot.types.dataclass import dataclass
from surefoot.types.events import Event, Want
from surefoot.types.plan import ProposalKind

GuardPurpose = Literal["anchor", "sanitise", "judge", "branches", "choice"]
"""What the user's words ask for and forbid · which passages of a result are hidden · whether a call serves the user ·
ways to go on in a step · which of those that survived is taken. Source: spec/guard.md, sections 3.2 to 3.4."""

Purpose = GuardPurpose | ProposalKind  # for what a model is asked for an object


@dataclass(frozen=True, slots=True)
class Think:
    """Ask the model that plays `role` for step `step`; `want` says whether it may call tools."""

    step: int
    role: str = "solo"
    want: Want = "any"


@dataclass(frozen=True, slots=True)
class Act:
    """Run an allowed call."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask the tool whether an interrupted call took effect."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Find:
    """Find what the task refers to."""


@dataclass(frozen=True, slots=True)
class Hydrate:
    """Lay out what was fetched of it, for the model to read."""


@dataclass(frozen=True, slots=True)
class ReadConventions:
    """Read the conventions of a directory that the run has come to."""

    directory: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a model for an object.

    `about` is the call of a stage of the guard, the tree of a choice, the step of a step's reflection; `number` counts
    the proposals that were asked for.
    """

    purpose: Purpose
    about: str = ""
    number: int = 0

    @property
    def proposal(self) -> ProposalKind | None:
        """What of a plan it proposes; None for anything else."""
        match self.purpose:
            case "anchor" | "sanitise" | "judge" | "branches" | "choice":
                return None
            case kind:
                return kind


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Find the tools that a model gets to choose from, for the `number`th time."""

    number: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait before a failed step is tried again by the engine, then start its attempt `attempt`."""

    step_id: str
    attempt: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class Evaluate:
    """Have an evaluator look at a run whose steps are done, at version `version` of its plan."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Record:
    """Put events on record, in one piece, and nothing else: a verdict, a result known before, a limit, the end."""

    events: tuple[Event, ...]


StepMove = Think | Act | Probe | ReadConventions | Ask  # the moves that touch the world out of a running step of a plan


@dataclass(frozen=True, slots=True)
class Within:
    """Make a move of a running step of a plan."""

    step_id: str
    attempt: int
    move: StepMove


PlanMove = Shortlist | Wait | Evaluate | Within  # the moves of a plan that repairs itself

WorldMove = Think | Act | Probe | Find | Hydrate | ReadConventions | Ask | PlanMove
"""The moves that touch the world; `Record` does not."""

Move = WorldMove | Record
