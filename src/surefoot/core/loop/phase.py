"""How far a planned run is, in one word: the run, and each of its steps. Pure questions about the state.

Source: spec/planning.md, sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from surefoot.core.loop.moves import next_moves, standing
from surefoot.core.plan.accept import is_unsigned
from surefoot.core.plan.child import with_whole
from surefoot.core.state.plans import Phase
from surefoot.core.state.state import State
from surefoot.types.moves import Act, Move
from surefoot.types.plan import ANSWER, StepStatus

RunPhase = Literal[
    "",
    "selecting",
    "decomposing",
    "signing",
    "running",
    "step reflecting",
    "draining",
    "overall reflecting",
    "selecting (corrective)",
    "redecomposing",
    "evaluating",
    "answering",
    "ended",
]
"""The phases of section 3; "" for a run without a plan that repairs itself."""

_ASKED_FOR: Mapping[Phase, RunPhase] = {
    "selecting": "selecting",
    "decomposing": "decomposing",
    "reselecting": "selecting (corrective)",
    "redecomposing": "redecomposing",
}
_ENDS_FIRST: frozenset[StepStatus] = frozenset({"running", "in_doubt"})


def phase_of(state: State) -> RunPhase:
    """What a planned run is about."""
    planning = state.planning
    if planning is None:
        return ""
    if state.ending is not None:
        return "ended"
    if planning.phase != "running":
        return _ASKED_FOR[planning.phase]
    if is_unsigned(planning):
        return "signing"
    in_flight = {status_of(state, name, is_driven=True) for name in planning.children if name != ANSWER}
    if planning.stop is not None or planning.rejected_by:
        return "draining" if "running" in in_flight else "answering"
    if planning.escalation is not None:  # R7: what runs ends, and a doubt is settled, before the run is thought about
        return "draining" if in_flight & _ENDS_FIRST else "overall reflecting"
    if planning.queue:
        return "step reflecting"
    if ANSWER in planning.children or planning.answer is not None:
        return "answering"
    if planning.children or planning.open_steps or any(one.status == "in_doubt" for one in planning.steps.values()):
        return "running"
    is_evaluated = {one.name for one in planning.evaluations}.issuperset(planning.config.evaluators)
    return "answering" if is_evaluated else "evaluating"


def status_of(state: State, step_id: str, *, is_driven: bool = False) -> StepStatus:
    """How far a step is, also where its own state stands and waits for a person.

    With `is_driven` somebody drives the run just now, so that a call which was started is being made; from a journal
    alone nobody can tell that from one that was interrupted. Raises `KeyError` for a step that the run does not have.
    """
    assert state.planning is not None  # noqa: S101  # only such a run has steps to ask about
    record, child = state.planning.steps[step_id], state.planning.children.get(step_id)
    if record.status != "running" or child is None:
        return record.status
    own = with_whole(child, state)
    acting: frozenset[Move] = frozenset()
    if is_driven:
        started = (one for one in own.calls if one.is_open and not one.is_waiting and one.doubt != "unknown")
        acting = frozenset(Act(one.id) for one in started)
    if acting or next_moves(own, acting):
        return "running"
    match standing(own):
        case "approval":
            return "waiting"
        case "in_doubt":
            return "in_doubt"
        case "":
            return "running"
