"""What a run can do next: the closed union of moves. Moves are values and compare by content."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.types.events import Event, Want
from surefoot.types.planning import ProposalKind


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
class MakeAnchor:
    """Ask a model what the user's words ask for and forbid."""


@dataclass(frozen=True, slots=True)
class Sanitise:
    """Ask a model which passages of the result of a call are not to be shown."""

    call_id: str


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """Ask a model whether a call serves what the user asked."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Hypothesise:
    """Ask a model for ways to go on in a step, as the tree of that id."""

    step_id: str
    tree_id: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Ask a model which of the branches that survived is to be taken."""

    tree_id: str


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Find the tools that a model gets to choose from, for the `number`th time."""

    number: int


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask a model for a proposal; `about` is the step of a step reflection, `number` counts all that were asked for."""

    kind: ProposalKind
    about: str
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


StageMove = MakeAnchor | Sanitise | JudgeCall
"""The moves in which a model is asked for a stage of the guard."""

SpeculativeMove = Hypothesise | Commit
"""The moves in which a model is asked for ways to go on (spec/guard.md, section 3.4)."""

StepMove = Think | Act | Probe | ReadConventions | StageMove | SpeculativeMove
"""The moves that touch the world out of a running step of a plan."""


@dataclass(frozen=True, slots=True)
class Within:
    """Make a move of a running step of a plan."""

    step_id: str
    attempt: int
    move: StepMove


PlanMove = Shortlist | Propose | Wait | Evaluate | Within
"""The moves of a plan that repairs itself."""

WorldMove = Think | Act | Probe | Find | Hydrate | ReadConventions | StageMove | SpeculativeMove | PlanMove
"""The moves that touch the world; `Record` does not."""

Move = WorldMove | Record
