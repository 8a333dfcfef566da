"""What a plan that repairs itself asks for next: the rows of the table of moves for a run that has one.

a proposal is not decided on         → what follows from it is put on record
tools are to be chosen, or a plan    → a shortlist; a proposal; what stands in for one that cannot be had
a person has to sign the plan        → stand still
a limit of the run is reached        → what is in flight ends; then the run
a step may be tried no more          → that is put on record (core/plan/iterating.py); what follows, once it can
a step runs                          → what it asks for itself; while a question holds all up, nothing new of it
the run is to be thought about       → what is in flight ends (R7); then an overall reflection
a step has failed                    → too often in one way (R5): the run is thought about; else its reflection
a step is to be tried again          → wait (R4), or start it
a step is ready, and there is room   → start it (R2)
nothing can go on, a person can help → stand still
nothing can go on, steps are open    → the run is thought about
all is done                          → evaluators; the answer; the end (R19)

Nothing here polls: it is asked after each event. Source: spec/planning.md, sections 3, 5, 6, 7, 10 and 11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from surefoot.core.gate.judge import is_paused
from surefoot.core.given_up import given_up
from surefoot.core.plan.child import with_whole
from surefoot.core.plan.choosing import all_selected, offered_names
from surefoot.core.plan.concluding import concluded, done, stopped
from surefoot.core.plan.dag import WANTED, Planning, cause_of
from surefoot.core.plan.deciding import after_all_tries, decided
from surefoot.core.plan.iterating import after_limit, asked_about, limit_to_tell, same_error
from surefoot.core.plan.limits import asking, calls_left, limit_of, llm_spent, spent
from surefoot.core.plan.signing import is_unsigned
from surefoot.core.plan.starting import start_of, wait_of
from surefoot.core.plan.telling import answer_without
from surefoot.core.repeats import is_made_beside
from surefoot.core.state import State
from surefoot.core.tracked import config_of
from surefoot.types.dataclass import dataclass
from surefoot.types.decisions import Ask
from surefoot.types.endings import Failed, Stopped
from surefoot.types.events import CallJudged, Event, InStep, RunEnded
from surefoot.types.moves import (
    Act,
    Evaluate,
    Move,
    Probe,
    Propose,
    Record,
    Shortlist,
    StepMove,
    Wait,
    Within,
)
from surefoot.types.plan_events import Escalated, PlanEdited
from surefoot.types.planning import ANSWER
from surefoot.types.progress import LimitAction
from surefoot.types.step_events import StepEnded, StepSkipped

Moves = tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """The table of moves of a run, asked about a step's own state; and why such a state stands still."""

    next_moves: Callable[[State, frozenset[Move]], Moves]
    standing: Callable[[State], Literal["approval", "in_doubt", ""]]


def plan_moves(state: State, planning: Planning, under_way: frozenset[Move], rows: Rows) -> Moves:
    """What to start now, besides what is under way. The first row that applies decides."""
    if planning.proposal is not None:
        return (Record(decided(state, planning, planning.proposal)),)
    if state.failure is not None and not spent(state, planning):  # a reply that the deadline cut off is no failure
        told = state.failure
        ending = Failed(_failure_name(told.kind), told.message)
        return () if under_way else concluded(state, planning, ending)
    if planning.phase != "running" or planning.plan is None:
        return () if under_way else _planned(state, planning)
    if planning.needs_signature and not planning.rejected_by:
        return ()
    return _Running(state, planning, under_way, rows).moves()


def _failure_name(kind: str) -> str:
    return kind if kind in ("auth", "bad_request", "context_overflow") else "model_unavailable"


def _planned(state: State, planning: Planning) -> Moves:
    """Tools are to be chosen, or a plan is to be made."""
    if planning.phase in ("selecting", "reselecting"):
        offered = len(offered_names(state))
        if offered < planning.config.select_all_below or (not offered and planning.phase == "reselecting"):
            return (Record((all_selected(state, planning),)),)
    followed = after_all_tries(state, planning, "")
    if isinstance(followed, Failed):
        return concluded(state, planning, followed)
    if followed is not None:
        return (Record(followed),)
    if planning.phase in ("selecting", "reselecting") and planning.shortlist is None:
        return (Shortlist(planning.stats.replans),)
    if (limit := spent(state, planning)) or (limit := llm_spent(state, planning)):
        return (
            ()
            if _is_asked(state, planning)
            else (Record((RunEnded(Stopped(limit, answer_without(state, planning, limit))),)),)
        )
    return (Propose(WANTED[planning.phase], "", planning.stats.llm_calls),)


def _is_asked(state: State, planning: Planning) -> bool:
    """Whether a question waits for a person; a limit of the run does not take it from them."""
    owners = (state, *planning.children.values())
    return any(one.asked or any(c.is_open and isinstance(c.decision, Ask) for c in one.calls) for one in owners)


# ------------------------------------------------------------------ running


class _Running:
    """One look at a plan whose steps run."""

    def __init__(self, state: State, planning: Planning, under_way: frozenset[Move], rows: Rows) -> None:
        self.state = state
        self.planning = planning
        self.under_way = under_way
        self.rows = rows
        self.busy: dict[str, list[Move]] = {}
        for move in under_way:
            if isinstance(move, Within):
                self.busy.setdefault(move.step_id, []).append(move.move)
            elif isinstance(move, Wait):
                self.busy.setdefault(move.step_id, []).append(move)
        self.started: list[Move] = []
        self.stalled: list[str] = []
        self.is_paused = is_paused(state)
        self.limit = ""
        self.is_unanswered = False
        self.broken: Failed | None = None

    def moves(self) -> Moves:
        """The moves of the first rows that have any."""
        if (limit := spent(self.state, self.planning)) and self._is_left():
            return () if _is_asked(self.state, self.planning) else self._cut_off(Stopped(limit))
        told = self._of_children()
        if told is not None:
            return (told,)
        if self.broken is not None:
            return () if self.under_way else concluded(self.state, self.planning, self.broken)
        if (over := self._ended_by_word()) is not None:
            return tuple(self.started) or self._cut_off(over)
        if self.limit and not self.under_way and not self.started:
            return self._ended_by_limit()  # a step may go no further
        if self.planning.stop is not None:
            return tuple(self.started) or (
                () if self.under_way else concluded(self.state, self.planning, stopped(self.planning))
            )
        if (reached := limit_to_tell(self.state)) is not None:
            return (Record((reached,)),)
        if self.planning.escalation is not None:
            return self._drained()
        if (follows := after_limit(self.state, self.planning)) is not None:
            is_early = isinstance(follows, PlanEdited) and not self._is_quiet()
            return tuple(self.started) if is_early else (Record((follows,)),)
        if told := self._reflections():
            return told
        if told := self._next_steps():
            return (Record(tuple(told)),)
        if self.started or self.under_way:
            return tuple(self.started)
        return self._ended_by_limit() if self.limit else self._at_rest()

    def _ended_by_limit(self) -> Moves:
        """The end, once a person has spoken: a question, or a doubt about a call that must not be repeated (R18)."""
        if self._in_doubt() or _is_asked(self.state, self.planning):
            return ()
        return concluded(self.state, self.planning, Stopped(self.limit))

    def _is_left(self) -> bool:
        """Whether anything is still to be done; a run that was done when its time ran out is as good as any."""
        ended = ("succeeded", "skipped", "superseded")
        left = any(one.status not in ended for one in self.planning.steps.values())
        return left or self.planning.escalation is not None

    def _ended_by_word(self) -> Stopped | None:
        """The end by a person's no to the plan, or by a limit of a step: nothing goes on but the answer."""
        if self.planning.rejected_by:
            return Stopped("plan_rejected")
        return Stopped(self.state.stuck) if self.state.stuck else None

    def _cut_off(self, ending: Stopped) -> Moves:
        """R17: nothing new starts; what is still open of calls when nothing is under way is given up."""
        if self.under_way:
            return ()
        events: list[Event] = []
        doubtful = {name for name, record in self.planning.steps.items() if record.status == "in_doubt"}
        for name, child in self.planning.children.items():
            for call in child.calls:
                if call.is_open and call.attempts and name not in doubtful:
                    attempt = int(child.scope.rpartition(".")[2])
                    events.append(InStep(name, attempt, given_up(call, self.state.elapsed_s)))
        if events:
            return (Record(tuple(events)),)
        may_write = not self.state.stuck or config_of(self.state).on_limit_reached == LimitAction.AnswerNow
        return concluded(self.state, self.planning, ending, may_write=may_write)

    def _of_children(self) -> Record | None:
        """What running steps ask for: the first that only goes on record comes back, the others are to be started.

        What may be called is called before the next call is judged, since limits count calls that have begun.
        """
        first: Record | None = None
        is_over = self._ended_by_word() is not None
        for name, child in self.planning.children.items():
            if is_over and name != ANSWER:
                continue
            mine = self.busy.get(name)
            if child.plan is not None and (step := child.plan.running) is not None and step.kind == "tool":
                is_unjudged = first is not None and child.calls[0].decision is None
                if mine or is_unjudged:  # it has one call, and that is under way, or judged after the one before it
                    continue
            own = with_whole(child, self.state)
            asked = self.rows.next_moves(own, frozenset(mine or ()))
            if not asked and not mine:
                self.stalled.append(name)
            attempt = int(child.scope.rpartition(".")[2])
            for move in asked:
                if limit := limit_of(name, move, self.state, self.planning, (self.under_way, self.started)):
                    if name == ANSWER:
                        self.is_unanswered = True  # what there is is told in its place
                    else:
                        self.limit = self.limit or limit
                elif isinstance(move, StepMove):
                    if not self._is_held_up(name, move):
                        self.started.append(Within(name, attempt, move))
                elif isinstance(move, Record):
                    match move.events:
                        case (RunEnded(Failed() as failed),) if own.failure is not None:
                            self.broken = failed  # no model to be had: that is no fault of the step
                        case (CallJudged(call_id),) if is_made_beside(own, call_id, self.planning.children):
                            pass  # what comes of it there will answer it here
                        case events if first is None:
                            first = Record(tuple(in_step(name, attempt, one) for one in events))
                        case _:
                            pass
        is_acting = any(isinstance(one, Within) and isinstance(one.move, Act) for one in self.started)
        return None if is_acting or self.broken is not None else first

    def _asked(self) -> int:
        """The requests that are reckoned with, the first ones of steps that have just begun among them."""
        children = self.planning.children.items()
        fresh = {name for name, child in children if child.turn is None and name not in self.stalled}
        return len(asking((*self.under_way, *self.started)) | fresh)

    def _is_held_up(self, name: str, move: StepMove) -> bool:
        """Whether a move has to wait: a question stops all that is new, and some tools run one call at a time."""
        call = self.planning.children[name].call(move.call_id) if isinstance(move, Act | Probe) else None
        if self.is_paused and name != ANSWER and not (call and call.attempts):
            return True
        if not isinstance(move, Act) or not (call and call.spec and call.spec.exclusive):
            return False
        acting = (one for one in (*self.under_way, *self.started) if isinstance(one, Within))
        return any(isinstance(one.move, Act) and self._tool_of(one) == call.name for one in acting)

    def _tool_of(self, within: Within) -> str:
        child = self.planning.children.get(within.step_id)
        call = child.call(within.move.call_id) if child is not None and isinstance(within.move, Act) else None
        return call.name if call is not None else ""

    def _drained(self) -> Moves:
        """R7: what is in flight ends, then the run is thought about; a doubt about an effect is settled first."""
        planning = self.planning
        if not self._is_quiet():
            return tuple(self.started)
        if self._in_doubt() or self.is_paused:
            return ()
        followed = after_all_tries(self.state, planning, "")
        if isinstance(followed, Failed):
            return concluded(self.state, self.planning, followed)
        if limit := llm_spent(self.state, planning):
            self.limit = limit
            return self._ended_by_limit()
        return (Propose("overall_reflection", "", planning.stats.llm_calls),)

    def _is_quiet(self) -> bool:
        """Whether what is in flight has ended; what the engine tries again is part of that."""
        ended = {*self.stalled, ANSWER} if self.is_unanswered else self.stalled
        in_flight = [name for name in self.planning.children if name not in ended]
        if (left := calls_left(self.planning)) is None or left > 0:
            self._waits()
        return not (self.started or self.under_way or in_flight)

    def _in_doubt(self) -> bool:
        if any(record.status == "in_doubt" for record in self.planning.steps.values()):
            return True
        return any(self.rows.standing(self.planning.children[name]) == "in_doubt" for name in self.stalled)

    def _reflections(self) -> Moves:
        """The first step that failed: is it failing in the same way, or is it to be thought about?"""
        planning = self.planning
        asked = asked_about(self.state)
        first = next((name for name in planning.queue if name not in asked), None)
        if first is None:
            return ()
        record = planning.steps[first]
        name = record.step.step_id
        if record.times_failed_so >= planning.config.same_error_limit:
            return (Record(same_error(record)),)
        if self.is_paused or any(isinstance(move, Propose) for move in self.under_way):
            return ()
        followed = after_all_tries(self.state, planning, name)
        if isinstance(followed, tuple):
            return (Record(followed),)
        if limit := llm_spent(self.state, planning, asked=self._asked()):
            self.limit = limit
            return ()
        self.started.append(Propose("step_reflection", name, planning.stats.llm_calls))
        return ()

    def _next_steps(self) -> list[Event]:
        """The steps that start now, as far as there is room; or that fail before any call is made."""
        planning = self.planning
        starting: list[Event] = []
        if self.limit or self.is_paused:
            return starting
        running = sum(name not in (*self.stalled, ANSWER) for name in planning.children)
        reflected = [name for name in planning.queue if name not in asked_about(self.state)]
        free = planning.config.max_parallel - running - len(reflected) - len(planning.due)
        asked = self._asked()
        left = calls_left(planning)
        again = [planning.steps[name] for name in planning.due if name not in self.busy]
        if any(one.step.kind == "tool" for one in again) and left is not None and left <= 0:
            self.limit = "tool_budget"
            return starting
        if retried := [one for one in again if one.due == "retry"]:
            return [start_of(self.state, self.planning, retried[0])]
        self._waits()
        for name in planning.ready:
            if free <= 0:
                break
            record = planning.steps[name]
            if record.step.kind == "skip":
                return [StepSkipped(name, record.step.instruction, "planner")]
            if record.step.kind == "tool" and left is not None:
                if left <= 0:
                    self.limit = "tool_budget"
                    break
                left -= 1
            if record.step.kind != "tool":
                if limit := llm_spent(self.state, planning, asked=asked):
                    self.limit = limit
                    break
                asked += 1
            event = start_of(self.state, self.planning, record)
            starting.append(event)
            if isinstance(event, StepEnded):
                break  # it failed before any call, so what follows is looked at anew
            free -= 1
        return starting

    def _waits(self) -> None:
        """What the engine tries again waits first (R4); that is part of what is in flight (R7)."""
        for name in self.planning.due:
            record = self.planning.steps[name]
            if record.due == "wait" and name not in self.busy:
                self.started.append(Wait(name, record.attempt + 1, wait_of(record)))

    def _at_rest(self) -> Moves:
        """Nothing runs, nothing is ready."""
        planning = self.planning
        if ANSWER in planning.children and not self.is_unanswered:
            return ()
        if self.stalled or self.state.asked or any(record.status == "in_doubt" for record in planning.steps.values()):
            return ()
        if still_open := planning.open_steps:
            first = planning.steps[still_open[0]]
            return (Record((Escalated(still_open[0], cause_of(first)),)),)
        seen = {one.name for one in planning.evaluations}
        for name in planning.config.evaluators:
            if name not in seen:
                return (Evaluate(name, planning.version),)
        failed = next((one for one in planning.evaluations if not one.passed), None)
        if failed is not None:
            return (Record((Escalated("", ("evaluation", failed.name, "")),)),)
        return concluded(self.state, self.planning, done(self.planning))


def held_up(
    state: State, planning: Planning, standing: Callable[[State], Literal["approval", "in_doubt", ""]]
) -> Literal["approval", "in_doubt", ""]:
    """What a person has to say before a plan with nothing under way can go on; "" for nothing."""
    if any(record.status == "in_doubt" for record in planning.steps.values()):
        return "in_doubt"
    found = {standing(with_whole(child, state)) for child in planning.children.values()}
    if "in_doubt" in found:
        return "in_doubt"
    return "approval" if is_unsigned(planning) or "approval" in found else ""


def in_step(step_id: str, attempt: int, event: Event) -> InStep:
    """An event of a running step's own state, as the run has it on record."""
    return InStep(step_id, attempt, event)  # pyright: ignore[reportArgumentType]  # what a step can ask for is of a step
