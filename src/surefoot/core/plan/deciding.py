"""What follows from a proposal, and from there being none: events, each of which says why.

R16: a reply without a whole JSON object is asked for again, and then: a step's reflection escalates, an overall
reflection ends the run, a selection takes its fallback, a plan fails. Source: spec/planning.md, sections 3, 4, 6, 7.
"""

from __future__ import annotations

from surefoot.core.plan.choosing import fallback, selection_given
from surefoot.core.plan.dag import Planning
from surefoot.core.plan.planned import plan_given
from surefoot.core.plan.reading import decision_in
from surefoot.core.plan.reflecting import run_reflected, step_reflected
from surefoot.core.state import State
from surefoot.types.endings import Failed
from surefoot.types.events import Event
from surefoot.types.plan_events import ProposalMade, ProposalRefused, StepReflected

MALFORMED = "malformed_json"


def decided(state: State, planning: Planning, proposal: ProposalMade) -> tuple[Event, ...]:
    """What is put on record about a proposal."""
    given = decision_in(proposal.message.content, proposal.kind)
    if given is None:
        return (ProposalRefused(proposal.kind, MALFORMED, proposal.kind, proposal.about),)
    match proposal.kind:
        case "select_initial" | "select_corrective":
            return selection_given(state, planning, given)
        case "decompose":
            return (plan_given(state, planning, given, by=proposal.by),)
        case "step_reflection":
            return step_reflected(state, planning, proposal.about, given)
        case "overall_reflection":
            return run_reflected(state, planning, given)


def after_all_tries(state: State, planning: Planning, about: str) -> tuple[Event, ...] | Failed | None:
    """What follows when proposals have come to nothing as often as they may; None while another may be asked for."""
    malformed, refused = planning.tries
    most_malformed, most_refused = planning.config.llm_repairs, planning.config.reasks
    if planning.phase in ("decomposing", "redecomposing"):
        told = planning.refusal.detail if planning.refusal is not None else ""
        return Failed("invalid_plan", told) if malformed + refused > most_malformed else None
    if planning.phase == "selecting" and refused:
        return fallback(state, planning)  # it is not asked for again
    if malformed <= most_malformed and refused <= most_refused:
        return None
    if planning.phase in ("selecting", "reselecting"):
        return fallback(state, planning)
    if about:
        why = "malformed" if malformed > most_malformed else "refused"
        return (StepReflected(about, planning.steps[about].attempt, "escalate", why=why),)
    if malformed > most_malformed:
        return Failed("reflection_unparseable", "no reply of an overall reflection could be read")
    told = planning.refusal.detail if planning.refusal is not None else ""
    return Failed("invalid_strategy", told)
