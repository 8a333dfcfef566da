"""What a plan asks for next: the rows of the table of moves for a run whose plan repairs itself.

a proposal is not decided on         → what follows from it is put on record
tools are to be chosen, or a plan    → a shortlist; a proposal; what stands in for one that cannot be had
a person has to sign the plan        → stand still
a limit of the run is reached        → what is in flight ends; then the run
a step may be tried no more          → that is put on record (`core/plan/limits.py`); what follows, once it can
a step runs                          → what it asks for itself; while a question holds all up, nothing new of it
the run is to be thought about       → what is in flight ends (R7); then an overall reflection
a step has failed                    → too often in one way (R5): the run is thought about; else its reflection
a step is to be tried again          → wait (R4), or start it
a step is ready, and there is room   → start it (R2)
nothing can go on, a person can help → stand still
nothing can go on, steps are open    → the run is thought about
all is done                          → evaluators; the answer; the end (R19)

Nothing here polls: it is asked after each event. Source: spec/planning.md, sections 3, 5, 6, 7, 8, 10 and 11.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from surefoot.core.guard.judge import is_paused, questions
from surefoot.core.plan import limits
from surefoot.core.plan.attempt import start_of
from surefoot.core.plan.child import give_up, in_step, with_whole
from surefoot.core.plan.choose import offered_names, selected
from surefoot.core.plan.reflect import after_all_tries, decided
from surefoot.core.state.plans import WANTED
from surefoot.core.state.repeats import config_of, is_beside, reached
from surefoot.core.state.state import Planning, State
from surefoot.core.state.turn import changed
from surefoot.types import moves
from surefoot.types.dataclass import dataclass
from surefoot.types.events import CallJudged, Event, RunEnded
from surefoot.types.moves import Act, Evaluate, Move, Probe, Record, Shortlist, StepMove, Think, Wait, Within
from surefoot.types.outcomes import Ask, CompletedPartial, Failed, Stopped
from surefoot.types.plan import ANSWER
from surefoot.types.plan_events import Escalated, PlanEdited, StepEnded, StepSkipped
from surefoot.types.progress import LimitAction

Moves = tuple[Move, ...]
Standing = Literal["approval", "in_doubt", ""]
FIRST_WAIT_S = 0.5  # seconds before the first retry by the engine; each further one waits twice as long
_NAMED_FAILURES = ("auth", "bad_request", "context_overflow")
_ENDED = ("succeeded", "skipped", "superseded")


@dataclass(frozen=True, slots=True)
class Rows:
    """The table of moves of a run, asked about a step's own state; and why such a state stands still."""

    next_moves: Callable[[State, frozenset[Move]], Moves]
    standing: Callable[[State], Standing]


def plan_moves(state: State, planning: Planning, under_way: frozenset[Move], rows: Rows) -> Moves:
    """What to start now, besides what is under way. The first row that applies decides."""
    if planning.proposal is not None:
        return (Record(decided(state, planning, planning.proposal)),)
    if state.failure is not None and not limits.spent(
        state, planning
    ):  # a reply that the deadline cut off is not a failure
        kind = state.failure.kind
        ending = Failed(kind if kind in _NAMED_FAILURES else "model_unavailable", state.failure.message)
        is_held = under_way or rows.standing(state) == "in_doubt"  # what a death left open is settled first (R18)
        return () if is_held else limits.concluded(state, planning, ending)
    if planning.phase == "running" and planning.plan is not None:
        return () if planning.is_unsigned else _Running(state, planning, under_way, rows).moves()
    if under_way:
        return ()
    names, is_selecting = offered_names(state), planning.phase in ("selecting", "reselecting")
    is_few = len(names) < planning.config.select_all_below
    if is_selecting and (is_few or (not names and planning.phase == "reselecting")):
        return (Record((selected(state, planning, names, {}, "all"),)),)
    followed = after_all_tries(state, planning, "")
    if isinstance(followed, Failed):
        return limits.concluded(state, planning, followed)
    if followed is not None:
        return (Record(followed),)
    if is_selecting and planning.shortlist is None:
        return (Shortlist(planning.stats.replans),)
    if limit := limits.spent(state, planning) or limits.llm_spent(state, planning):
        ending = RunEnded(Stopped(limit, limits.answer_without(planning, limit)))
        return () if _is_asked(state, planning) else (Record((ending,)),)
    return (moves.Ask(WANTED[planning.phase], "", planning.stats.llm_calls),)


def _is_asked(state: State, planning: Planning) -> bool:
    """Whether a question waits for a person; a limit of the run does not take it from them."""
    owners = (state, *planning.children.values())
    return any(one.asked or any(c.is_open and isinstance(c.decision, Ask) for c in one.calls) for one in owners)


class _Running:
    """One look at a plan whose steps run. `waiting` are those that failed and that no person is asked about."""

    def __init__(self, state: State, planning: Planning, under_way: frozenset[Move], rows: Rows) -> None:
        self.state = state
        self.planning = planning
        self.under_way = under_way
        self.rows = rows
        self.waiting = [name for name in planning.queue if all(one.step_id != name for one in state.asked)]
        self.busy: dict[str, list[Move]] = {}
        for move in under_way:
            if isinstance(move, Within | Wait):
                self.busy.setdefault(move.step_id, []).append(move.move if isinstance(move, Within) else move)
        self.started: list[Move] = []
        self.stalled: list[str] = []
        self.is_paused = state.gate is not None and is_paused(state)
        self.questions = questions(state) if state.gate is not None else Counter[str]()
        self.limit = ""
        self.is_unanswered = False
        self.broken: Failed | None = None

    def moves(self) -> Moves:
        """The moves of the first rows that have any."""
        state, planning = self.state, self.planning
        if (limit := limits.spent(state, planning)) and (  # one that was done when its time ran out is as good as any
            planning.escalation is not None or any(one.status not in _ENDED for one in planning.steps.values())
        ):
            return () if _is_asked(state, planning) else self._cut_off(Stopped(limit))
        over = Stopped("plan_rejected") if planning.rejected_by else Stopped(state.stuck) if state.stuck else None
        if (told := self._of_children(is_over=over is not None)) is not None:
            return (told,)
        if self.broken is not None:
            return () if self.under_way or self._in_doubt() else limits.concluded(state, planning, self.broken)
        if over is not None:  # by a person's no to the plan, or by a limit of a step: nothing goes on but the answer
            return tuple(self.started) or self._cut_off(over)
        if self.limit and not self.under_way and not self.started:
            return self._ended_by_limit()  # a step may go no further
        if (stop := planning.stop) is not None:
            is_partial = stop.ending == "completed_partial"
            ending = CompletedPartial("", stop.reason) if is_partial else Stopped(stop.reason)
            if self.started or self.under_way:
                return tuple(self.started)
            return limits.concluded(state, planning, ending)
        if state.limit_due and (config := limits.set_limits(state)) is not None:
            return (Record((reached(state.limit_due[0], config.on_limit_reached),)),)
        if planning.escalation is not None:
            # R7: what is in flight ends, then the run is thought about; a doubt about an effect is settled first.
            if not self._is_quiet():
                return tuple(self.started)
            if self._in_doubt() or self.is_paused:
                return ()
            followed = after_all_tries(self.state, self.planning, "")
            if isinstance(followed, Failed):
                return limits.concluded(self.state, self.planning, followed)
            if limit := limits.llm_spent(self.state, self.planning):
                self.limit = limit
                return self._ended_by_limit()
            return (moves.Ask("overall_reflection", "", self.planning.stats.llm_calls),)
        if state.tried and (follows := limits.after_limit(state, planning)) is not None:
            is_early = isinstance(follows, PlanEdited) and not self._is_quiet()
            return tuple(self.started) if is_early else (Record((follows,)),)
        if told := self._reflection():
            return (told,)
        if events := self._next_steps():
            return (Record(tuple(events)),)
        if self.started or self.under_way:
            return tuple(self.started)
        if self.limit:
            return self._ended_by_limit()
        # nothing runs, nothing is ready
        is_answering = ANSWER in planning.children and not self.is_unanswered
        if is_answering or self.stalled or state.asked or self._doubtful():
            return ()
        if still_open := planning.open_steps:
            return (Record((Escalated(still_open[0], planning.steps[still_open[0]].cause),)),)
        seen = {one.name for one in planning.evaluations}
        if unasked := [name for name in planning.config.evaluators if name not in seen]:
            return (Evaluate(unasked[0], planning.version),)
        if failed := [one.name for one in planning.evaluations if not one.passed]:
            return (Record((Escalated("", ("evaluation", failed[0], "")),)),)
        return limits.concluded(state, planning, limits.done(planning))

    def _ended_by_limit(self) -> Moves:
        """The end, once a person has spoken: a question, or a doubt about a call that must not be repeated (R18)."""
        is_held = self._in_doubt() or _is_asked(self.state, self.planning)
        return () if is_held else limits.concluded(self.state, self.planning, Stopped(self.limit))

    def _cut_off(self, ending: Stopped) -> Moves:
        """R17: nothing new starts; what is still open of calls when nothing is under way is given up."""
        if self.under_way:
            return ()
        doubtful = self._doubtful()
        events = tuple(
            in_step(child, give_up(call, self.state.elapsed_s))
            for name, child in self.planning.children.items()
            for call in child.calls
            if call.is_open and call.attempts and name not in doubtful
        )
        if events:
            return (Record(events),)
        may_write = not self.state.stuck or config_of(self.state).on_limit_reached == LimitAction.AnswerNow
        return limits.concluded(self.state, self.planning, ending, may_write=may_write)

    def _of_children(self, *, is_over: bool) -> Record | None:
        """What running steps ask for: the first that only goes on record comes back, the others are to be started.

        What may be called is called before the next call is judged, since limits count calls that have begun.
        """
        first: Record | None = None
        for name, child in self.planning.children.items():
            if is_over and name != ANSWER:
                continue
            mine = self.busy.get(name)
            if child.plan is not None and (step := child.plan.running) is not None and step.kind == "tool":
                is_unjudged = first is not None and child.calls[0].decision is None
                if mine or is_unjudged:  # it has one call, and that is under way, or judged after the one before it
                    continue
            own = with_whole(child, self.state)
            if own.gate is not None and (others := self.questions - questions(child)):
                own = changed(own, gate=replace(own.gate, asked_beside=others))
            asked = self.rows.next_moves(own, frozenset(mine or ()))
            if not asked and not mine:
                self.stalled.append(name)
            beside = (self.under_way, self.started)
            limit_of = partial(limits.limit_of, name, state=self.state, planning=self.planning, beside=beside)
            if own.notes and any(isinstance(move, Think) and limit_of(move) for move in asked):
                asked = self.rows.next_moves(changed(own, notes=()), frozenset(mine or ()))  # what it has said stays
            for move in asked:
                if limit := limit_of(move):
                    if name == ANSWER:
                        self.is_unanswered = True  # what there is is told in its place
                    else:
                        self.limit = self.limit or limit
                elif isinstance(move, StepMove):
                    if not self._is_held_up(name, child, move):
                        self.started.append(Within(name, int(child.scope.rpartition(".")[2]), move))
                elif isinstance(move, Record):
                    match move.events:
                        case (RunEnded(Failed() as failed),) if own.failure is not None:
                            self.broken = failed  # no model to be had: that is not a fault of the step
                        case (CallJudged(call_id),) if is_beside(own, call_id, self.planning.children):
                            pass  # it is judged, or answered, once that has ended
                        case events:
                            first = first or Record(tuple(in_step(own, one) for one in events))
        is_acting = any(isinstance(one, Within) and isinstance(one.move, Act) for one in self.started)
        return None if is_acting or self.broken is not None else first

    def _requests(self) -> int:
        """The requests that are reckoned with, the first ones of steps that have just begun among them."""
        children = self.planning.children.items()
        fresh = {name for name, child in children if child.turn is None and name not in self.stalled}
        return len(limits.asking((*self.under_way, *self.started)) | fresh)

    def _is_held_up(self, name: str, child: State, move: StepMove) -> bool:
        """Whether a move has to wait: a question stops all that is new, and some tools run one call at a time."""
        call = child.call(move.call_id) if isinstance(move, Act | Probe) else None
        if self.is_paused and name != ANSWER and not (call and call.attempts):
            return True
        if not isinstance(move, Act) or not (call and call.spec and call.spec.exclusive):
            return False
        for one in (*self.under_way, *self.started):
            if isinstance(one, Within) and isinstance(one.move, Act) and one.step_id in self.planning.children:
                other = self.planning.children[one.step_id].call(one.move.call_id)
                if other is not None and other.name == call.name:
                    return True
        return False

    def _is_quiet(self) -> bool:
        """Whether what is in flight has ended; what the engine tries again is part of that."""
        ended = {*self.stalled, ANSWER} if self.is_unanswered else self.stalled
        if (left := limits.calls_left(self.planning)) is None or left > 0:
            self._waits()
        return not (self.started or self.under_way or any(name not in ended for name in self.planning.children))

    def _in_doubt(self) -> bool:
        stalled = (self.planning.children[name] for name in self.stalled)
        return bool(self._doubtful()) or any(self.rows.standing(one) == "in_doubt" for one in stalled)

    def _doubtful(self) -> frozenset[str]:
        return frozenset(name for name, record in self.planning.steps.items() if record.status == "in_doubt")

    def _reflection(self) -> Record | None:
        """The first step that failed: is it failing in the same way, or is it to be thought about?"""
        planning = self.planning
        if not self.waiting:
            return None
        name = self.waiting[0]
        record = planning.steps[name]
        if record.times_failed_so >= planning.config.same_error_limit:
            return Record(limits.same_error(record))
        if self.is_paused or any(isinstance(move, moves.Ask) for move in self.under_way):
            return None
        followed = after_all_tries(self.state, planning, name)
        if isinstance(followed, tuple):
            return Record(followed)
        if limit := limits.llm_spent(self.state, planning, asked=self._requests()):
            self.limit = limit
        else:
            self.started.append(moves.Ask("step_reflection", name, planning.stats.llm_calls))
        return None

    def _next_steps(self) -> list[Event]:
        """The steps that start now, as far as there is room; or that fail before any call is made."""
        planning = self.planning
        starting: list[Event] = []
        if self.limit or self.is_paused:
            return starting
        running = sum(name not in (*self.stalled, ANSWER) for name in planning.children)
        free = planning.config.max_parallel - running - len(self.waiting) - len(planning.due)
        asked = self._requests()
        left = limits.calls_left(planning)
        again = [planning.steps[name] for name in planning.due if name not in self.busy]
        if any(one.step.kind == "tool" for one in again) and left is not None and left <= 0:
            self.limit = "tool_budget"
            return starting
        if retried := [one for one in again if one.due == "retry"]:
            return [start_of(self.state, planning, retried[0])]
        self._waits()
        for name in planning.ready:
            if free <= 0:
                break
            record = planning.steps[name]
            if record.step.kind == "skip":
                return [StepSkipped(name, record.step.instruction, "planner")]
            if record.step.kind != "tool":
                self.limit = limits.llm_spent(self.state, planning, asked=asked)
                asked += 1
            elif left is not None:
                self.limit = "tool_budget" if left <= 0 else ""
                left -= 1
            if self.limit:
                break
            event = start_of(self.state, planning, record)
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
                asked_s = record.error.retry_after_s if record.error is not None else None
                wait_s = asked_s if asked_s is not None else FIRST_WAIT_S * 2**record.transient
                self.started.append(Wait(name, record.attempt + 1, wait_s))


def held_up(state: State, planning: Planning, standing: Callable[[State], Standing]) -> Standing:
    """What a person has to say before a plan with nothing under way can go on; "" for nothing."""
    found = {standing(with_whole(child, state)) for child in planning.children.values()}
    if "in_doubt" in found or any(record.status == "in_doubt" for record in planning.steps.values()):
        return "in_doubt"
    return "approval" if planning.is_unsigned or "approval" in found else ""
