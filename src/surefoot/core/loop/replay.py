"""Run a journal again without touching the world, and say whether the same comes out.

The table of moves is asked again after every record: what only records must come out of it as it stands in the journal,
and what came from the world must answer a move that was under way. Replies are parsed anew, so a replay also shows
whether today's parser reads them as they were read. What persons said is taken as given, also between two moves.
`RunResumed`, `RunForked` and `DriverChanged` mark where somebody took the run up, `ToolsSelected` where its tools
changed, and a cancellation, with the calls that it settled, where somebody ended it: whatever was under way before is
so no longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from surefoot.core.loop.fold import PROBE, fold
from surefoot.core.loop.moves import announce, next_moves
from surefoot.core.loop.read import read_reply
from surefoot.core.plan.child import with_whole
from surefoot.core.state.state import EMPTY, State
from surefoot.core.view.shape import as_recorded
from surefoot.types import events as e
from surefoot.types import moves
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.guard_events import BranchCommitted, HypothesesMade, JudgementMade, PerceptionSanitised
from surefoot.types.inner import CallPaused
from surefoot.types.outcomes import Cancelled
from surefoot.types.plan_events import PlanSigned, ProposalMade, RunEvaluated, StepStarted


@dataclass(frozen=True, slots=True)
class Replayed:
    """The events that came out of a replay, and the first record that came out differently (None: none did)."""

    events: tuple[e.Event, ...]
    state: State
    differs_at: int | None = None
    expected: e.Event | None = None
    got: e.Event | None = None
    beside: frozenset[int] = frozenset()
    """The records that came together with the one before: the table of moves was not asked in between."""


def replay(recorded: Sequence[e.Event]) -> Replayed:
    """Replay all records of a run. Costs O(records); makes no model and no tool call."""
    state = EMPTY
    under_way: frozenset[moves.Move] = frozenset()
    due: list[e.Event] = []
    out: list[e.Event] = []
    given = _external_records(recorded)
    is_opening, is_said, together = True, False, set[int]()
    for at, event in enumerate(recorded):
        is_said = _is_said(event, after_said=is_said)
        if is_said:
            made, told = _next(state, under_way)  # what nothing announces began before somebody spoke, if ever
            if not told and _comes(recorded[at:], made - under_way):
                under_way = made
            under_way = _again(state, event, under_way, [])[1]  # a call whose doubt was settled is so no longer
            out.append(event)
            state = fold((event,), state)
            continue
        is_opening = _is_opening(event, after_opening=is_opening)
        # which tools are offered from here on, only whoever takes a run up decides
        is_profiled = isinstance(event, e.ToolsSelected) and event.selection is None
        if is_opening or is_profiled or at in given:
            under_way, due = frozenset(), []
        elif not due:
            made, told = _next(state, under_way)
            # what nothing announces was really made if anything came of it
            is_made = told[0] == event if told else made == under_way or _comes(recorded[at:], made - under_way)
            if not is_made:  # it may have come of a move that ended with the one before: nobody asked in between
                beside, left = _again(state, event, under_way, [])
                is_made = beside != event or left == under_way
            if is_made:
                under_way, due = made, told
            else:
                together.add(at)
        got, under_way = (
            (_outcome_for(state, event), under_way) if at in given else _again(state, event, under_way, due)
        )
        if got != event:
            return Replayed(tuple(out), state, at, event, got, frozenset(together))
        if due and due[0] == event:
            due.pop(0)
        out.append(event)
        state = fold((event,), state)
    return Replayed(tuple(out), state, beside=frozenset(together))


def _next(state: State, under_way: frozenset[moves.Move]) -> tuple[frozenset[moves.Move], list[e.Event]]:
    """What is under way once all has begun that may, and what announces that."""
    told: list[e.Event] = []
    for move in next_moves(state, under_way):
        told += announce(move, state)
        if isinstance(move, moves.WorldMove):
            under_way |= {move}
    return under_way, told


def _comes(recorded: Sequence[e.Event], new: frozenset[moves.Move]) -> bool:
    """Whether anything comes of these moves before somebody takes the run up, when nothing is under way any more."""
    mine = takewhile(lambda one: not isinstance(one, e.RunResumed | e.RunForked | e.DriverChanged), recorded)
    return any(is_outcome(one, move) for one in mine for move in new)


def _is_opening(event: e.Event, *, after_opening: bool) -> bool:
    """Whether a record belongs to those with which a run is begun or taken up, before the table of moves is asked."""
    if isinstance(event, e.RunStarted | e.RunResumed | e.RunForked | e.DriverChanged):
        return True
    if isinstance(event, e.IntentAnchored):
        return after_opening and event.asking is None  # to ask a model is a move
    if isinstance(event, ProposalMade):
        return after_opening and event.by == "developer"
    return after_opening and isinstance(event, e.ToolsSelected | e.ModelTraitLearnt)


def _is_said(event: e.Event, *, after_said: bool) -> bool:
    """Whether a person said it, or it is what follows from that; they may speak at any time."""
    inner = event.event if isinstance(event, e.InStep) else event
    match inner:
        case e.CallJudged(by=by) | CallPaused(by=by):
            return bool(by)
        case e.DoubtSettled(by=by):
            return by != PROBE
        case e.IntentAnchored(asking=None):
            return after_said
        case _:
            return isinstance(inner, PlanSigned | e.RunNoted | e.ValuesEndorsed)


def _again(
    state: State, event: e.Event, under_way: frozenset[moves.Move], due: list[e.Event]
) -> tuple[e.Event | None, frozenset[moves.Move]]:
    """What comes out where `event` was recorded, and what is under way after it."""
    if due:  # what is announced together is appended together, before anything can come back from the world
        return due[0], under_way
    match event:
        case e.ModelReplied():
            move = next((m for m in under_way if is_outcome(event, m)), None)
            if not isinstance(move, moves.Think):
                return None, under_way
            return _read_again(state, event, move), under_way - {move}
        case e.ModelTraitLearnt():  # the endpoint's own word, in place of a reply
            return event, frozenset(m for m in under_way if not _may_fail(m))
        case e.InStep():
            # What comes out inside a running step; what is late comes out as it stands.
            child = state.planning.children.get(event.step_id) if state.planning is not None else None
            if child is None:
                return event, under_way
            within = (move for move in under_way if isinstance(move, moves.Within))
            mine = {move.move: move for move in within if move.step_id == event.step_id}
            got, left = _again(with_whole(child, state), event.event, frozenset(mine), [])
            under_way -= {move for inner, move in mine.items() if inner not in left}
            return (replace(event, event=got) if got is not None else None), under_way  # pyright: ignore[reportArgumentType]  # of a step
        case e.DoubtSettled(call_id):  # the attempt has come to nothing that anybody knows, and its probe has answered
            return event, under_way - {moves.Act(call_id), moves.Probe(call_id)}
        case e.IntentAnchored(asking=None) | ProposalMade(by="developer"):
            return event, under_way
        case e.RunStarted() | e.RunResumed() | e.RunForked() | e.DriverChanged() | e.ToolsSelected():
            return event, under_way
        case _:
            made = next((m for m in under_way if is_outcome(event, m)), None)
            return (event, under_way - {made}) if made is not None else (None, under_way)


def _may_fail(move: moves.Move) -> bool:
    """Whether a model that gives no reply is on record as such: one who speaks, or proposes."""
    return isinstance(move, moves.Think) or (isinstance(move, moves.Ask) and move.proposal is not None)


def is_outcome(event: e.Event, move: moves.Move) -> bool:
    """Whether an event is what came of a move that touches the world."""
    match move:
        case moves.Within(step_id, attempt, inner) if isinstance(event, e.InStep):
            return (event.step_id, event.attempt) == (step_id, attempt) and is_outcome(event.event, inner)
        case moves.Think(step, role) if isinstance(event, e.ModelReplied):
            return (event.step, event.role) == (step, role)
        case moves.Think() | moves.Ask() if isinstance(event, e.ModelTraitLearnt):
            return True
        case moves.Think() | moves.Ask() if isinstance(event, e.ModelFailed):
            return _may_fail(move)
        case moves.Act(call_id):
            return isinstance(event, e.CallEnded | CallPaused) and event.call_id == call_id
        case moves.Probe(call_id):
            return isinstance(event, e.DoubtSettled) and event.call_id == call_id
        case moves.Find():
            return isinstance(event, e.ReferencesFound)
        case moves.Hydrate():
            return isinstance(event, e.PreHydrationComplete)
        case moves.ReadConventions(directory):
            return isinstance(event, e.ConventionsRead) and event.directory == directory
        case moves.Ask("anchor"):
            return isinstance(event, e.IntentAnchored) and event.asking is not None
        case moves.Ask("sanitise", about):
            return isinstance(event, PerceptionSanitised) and event.asking is not None and event.call_id == about
        case moves.Ask("judge", about):
            return isinstance(event, JudgementMade) and event.call_id == about
        case moves.Ask("branches", about):
            return isinstance(event, HypothesesMade) and event.tree.tree_id == about
        case moves.Ask("choice", about):
            return isinstance(event, BranchCommitted) and event.asking is not None and event.decision.tree_id == about
        case moves.Ask(kind, about):
            return isinstance(event, ProposalMade) and (event.kind, event.about) == (kind, about)
        case moves.Shortlist():
            return isinstance(event, e.ToolsShortlisted)
        case moves.Wait(step_id, attempt):
            return isinstance(event, StepStarted) and (event.step_id, event.attempt) == (step_id, attempt)
        case moves.Evaluate(name):
            return isinstance(event, RunEvaluated) and event.evaluation.name == name
        case _:  # the other moves only record
            return False


def _external_records(recorded: Sequence[e.Event]) -> frozenset[int]:
    """The records that come out of no table: the reply of its start; a cancellation, with the calls that it settled."""
    found: set[int] = set()
    for at in range(len(recorded) - 1, -1, -1):
        event = recorded[at]
        match event:
            case e.RunEnded(Cancelled()):
                found.add(at)
            case e.CallEnded(result=result) if at + 1 in found and result.source == "surefoot":
                if result.kind in ("cancelled", "in_doubt"):
                    found.add(at)
            case e.InStep(event=e.CallEnded(result=result)) if at + 1 in found and result.source == "surefoot":
                found.add(at)
            case e.RunStarted(reasoner="once"):
                found.add(at + 1)
            case _:
                pass
    return frozenset(found)


def _outcome_for(state: State, event: e.Event) -> e.Event | None:
    """What comes out for such a record: a cancellation settles open calls alone, and a reply is parsed anew."""
    match event:
        case e.CallEnded(call_id):
            call = state.call(call_id)
            return event if call is not None and call.is_open else None
        case e.ModelReplied(step=step, role=role) if role in state.speakers:
            return _read_again(state, event, moves.Think(step, role))
        case e.RunEnded() | e.InStep():
            return event
        case _:
            return None


def _read_again(state: State, event: e.ModelReplied, move: moves.Think) -> e.ModelReplied:
    parsed = as_recorded(read_reply(state, move, event.message), event.parsed)
    return replace(event, parsed=parsed, mode=state.speakers[move.role].mode, want=move.want)
