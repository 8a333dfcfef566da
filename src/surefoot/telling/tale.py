"""A run as far as it was told: its state, and the few times and places that a state does not keep.

It is folded as a state is, so a run can be told on from any record of which the tale is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from surefoot.core.loop.fold import fold
from surefoot.core.plan.accept import PLAN
from surefoot.core.state.state import EMPTY, State
from surefoot.core.state.turn import changed
from surefoot.types import events as e
from surefoot.types.inner import CallPaused
from surefoot.types.outcomes import Ask
from surefoot.types.plan_events import PlanEdited, PlanMade, StepStarted
from surefoot.types.ports import Recorded
from surefoot.types.progress import LimitAction


@dataclass(frozen=True, slots=True)
class Asked:
    """Since when a person is asked about something, and what the run was `before` that record.

    `verdict` is the word of the gate on a call; `asked_before` counts the other questions of the run up to then.
    """

    seq: int
    at: float
    before: State
    verdict: e.CallJudged | None = None
    asked_before: int = 0


@dataclass(frozen=True)  # no slots: one is made for each record
class Tale:
    """A run as far as it was told.

    `taken_up` is when its driver began; `began` has when open calls, and steps, were last started; `inner` the own
    states of steps of a plan as they were last. `asked` are the questions by call, limit or plan; `asks` all different
    ones so far. `versions` are those of the plan, each with the place of the record that made it.
    """

    state: State = EMPTY
    last_at: float = 0.0
    taken_up: float = 0.0
    began: Mapping[str, float] = field(default_factory=dict[str, float])
    inner: Mapping[str, State] = field(default_factory=dict[str, State])
    asked: Mapping[str, Asked] = field(default_factory=dict[str, Asked])
    asks: frozenset[tuple[str, Ask]] = frozenset()
    versions: tuple[tuple[int, int], ...] = ()

    def plus(self, record: Recorded) -> Tale:
        """The tale with the next record of the run. Its cost does not grow with the run."""
        event = record.event
        state = fold((event,), self.state)
        changes: dict[str, object] = {"state": state, "last_at": record.at}
        if type(event) is e.InStep:
            planning, step_id = state.planning, event.step_id
            child = planning.children.get(step_id) if planning is not None else None
            child = child if child is not None else fold((event.event,), self.inner.get(step_id, EMPTY))
            changes["inner"] = {**self.inner, step_id: child}
        changes |= self._note(inner_event(record), record)
        return changed(self, **changes)

    def _note(self, event: e.Event, record: Recorded) -> dict[str, object]:
        """What changes of times and questions by an event of the run, or of one of its steps."""
        match event:
            case e.RunStarted() | e.RunResumed() | e.DriverChanged():
                return {"taken_up": record.at}
            case e.CallStarted(key) | StepStarted(key):
                return {"began": {**self.began, key: record.at}}
            case e.CallEnded(key):
                return {"began": _without(self.began, key), "asked": _without(self.asked, key)}
            case e.CallJudged(key, Ask() as decision, rule):
                own = (rule, decision)
                asked = Asked(record.seq, record.at, self.state, event, len(self.asks - {own}))
                return {"asked": {**self.asked, key: asked}, "asks": self.asks | {own}}
            case e.CallJudged(key):
                return {"asked": _without(self.asked, key)}
            case CallPaused(key) | e.StepLimitReached(key, action=LimitAction.Escalate):
                return {"asked": {**self.asked, key: Asked(record.seq, record.at, self.state)}}
            case PlanMade() | PlanEdited():
                version = event.plan.version if isinstance(event, PlanMade) else event.version
                versions = (*self.versions, (version, record.seq))
                asked = Asked(record.seq, record.at, self.state)
                return {"asked": {**self.asked, PLAN: asked}, "versions": versions}
            case _:
                return {}


NO_TALE = Tale()
"""A run of which nothing was told."""


def tale_of(records: Iterable[Recorded], start: Tale = NO_TALE) -> Tale:
    """The tale with these records. In one go or in parts, it is the same."""
    for record in records:
        start = start.plus(record)
    return start


def inner_event(record: Recorded) -> e.Event:
    """What happened, also inside a step of a plan."""
    return record.event.event if isinstance(record.event, e.InStep) else record.event


def asked_run(records: Iterable[Recorded], call_id: str) -> str:
    """The run of the agent that a call has asked, also inside a step of a plan; "" for any other call."""
    told = ""
    for event in map(inner_event, records):
        if isinstance(event, e.CallEnded | CallPaused) and event.call_id == call_id and event.inner is not None:
            told = event.inner.run_id
    return told


def _without(kept: Mapping[str, object], key: str) -> Mapping[str, object]:
    return {name: one for name, one in kept.items() if name != key} if key in kept else kept
