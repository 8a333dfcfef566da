"""A plan when somebody takes its run up again, or goes their own way with it. Source: spec/planning.md, R17 and R18."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from surefoot.core.plan.child import in_words, loop_of, loops_of
from surefoot.core.plan.dag import (
    Loops,
    Planning,
    Tries,
    changed,
    laid_out,
)
from surefoot.core.speakers import goes_on
from surefoot.core.state import Call, State
from surefoot.core.state import changed as changed_state
from surefoot.types.config import LoopConfig
from surefoot.types.events import Speaker


def taken_up(
    planning: Planning | None, config: LoopConfig, speakers: Mapping[str, Speaker], *, has_ended: bool
) -> Planning | None:
    """The planning when somebody takes the run up again; `speakers` are those who speak from now on, by role.

    What was cancelled may run, and what is in doubt is asked about. A run that had ended is thought about anew; after
    a crash all that was decided still holds.
    """
    if planning is None:
        return None
    plan = config.plan or planning.config
    steps = dict(planning.steps)
    loops = loops_of(config, plan)
    children = {name: _anew(child, loops, speakers) for name, child in planning.children.items()}
    for name, record in planning.steps.items():
        if record.status == "cancelled":
            steps[name] = replace(record, status="pending")
        elif record.status == "in_doubt":
            steps[name] = replace(record, status="running")
    laid = laid_out(planning, steps, planning.order) if steps != planning.steps else planning
    taken = changed(laid, config=plan, loops=loops, children=children)
    return changed(taken, stop=None, rejected_by="", answer=None, tries=Tries()) if has_ended else taken


def _anew(child: State, loops: Loops, speakers: Mapping[str, Speaker]) -> State:
    """A step's own state when the run is taken up: what failed of a model is asked again, a doubt is open again.

    It is spoken to as the model can be that speaks now.
    """
    turn = child.turn
    if turn is not None and any(_is_doubtful(call) for call in turn.calls):
        calls = tuple(changed_state(call, result=None, doubt="") if _is_doubtful(call) else call for call in turn.calls)
        turn = changed_state(turn, calls=calls, _memo={})
    step = child.running_step
    config = loop_of(loops, step) if step is not None else child.config
    now = {role: goes_on(kept, speakers.get(role)) for role, kept in child.speakers.items()}
    return in_words(changed_state(child, turn=turn, config=config, speakers=now, failure=None, ending=None, heads={}))


def in_children(planning: Planning, change: Callable[[State], State]) -> Planning:
    """The planning with a change in the states of its running steps."""
    return changed(planning, children={name: change(child) for name, child in planning.children.items()})


def _is_doubtful(call: Call) -> bool:
    return call.doubt == "unknown" or (call.result is not None and call.result.kind == "in_doubt")


def forked(planning: Planning, fork: Callable[[State], State], run_id: str) -> Planning:
    """The planning of a run that goes its own way: its running steps are its own, and `fork` says what still holds.

    A signature was for the run in which it was given.
    """
    return changed(in_children(planning, lambda child: changed_state(fork(child), run_id=run_id)), signed=0)
