"""Run a journal again without touching the world, and say whether the same comes out.

The table of moves is asked again after every record: what only records must come out of it as it stands in the journal,
and what came from the world must answer a move that was under way. Replies are parsed anew, so a replay also shows
whether today's parser reads them as they were read. What persons said is taken as given. `RunResumed` and `RunForked`
mark where somebody took the run up, `ToolsSelected` where its tools changed, and a cancellation, with the calls that it
settled, where somebody ended it: whatever was under way before is under way no longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from surefoot.core.fold import fold
from surefoot.core.moves import announce, next_moves
from surefoot.core.reasoners.table import REASONERS
from surefoot.core.state import EMPTY, State
from surefoot.types.endings import Cancelled
from surefoot.types.events import (
    CallEnded,
    CallJudged,
    ConventionsRead,
    DoubtSettled,
    Event,
    IntentAnchored,
    ModelFailed,
    ModelReplied,
    ModelTraitLearnt,
    PreHydrationComplete,
    ReferencesFound,
    RunEnded,
    RunForked,
    RunResumed,
    RunStarted,
    ToolsSelected,
    ValuesEndorsed,
)
from surefoot.types.guard_events import Asking, JudgementMade, PerceptionSanitised
from surefoot.types.moves import (
    Act,
    Find,
    Hydrate,
    JudgeCall,
    MakeAnchor,
    Move,
    Probe,
    ReadConventions,
    Sanitise,
    Think,
    WorldMove,
)


@dataclass(frozen=True, slots=True)
class Replayed:
    """The events that came out of a replay, and the first record that came out differently (None: none did)."""

    events: tuple[Event, ...]
    state: State
    differs_at: int | None = None
    expected: Event | None = None
    got: Event | None = None


def replay(recorded: Sequence[Event]) -> Replayed:
    """Replay all records of a run. Costs O(records); makes no model and no tool call."""
    state = EMPTY
    under_way: frozenset[Move] = frozenset()
    due: list[Event] = []
    out: list[Event] = []
    given = _given(recorded)
    is_opening = True
    for at, event in enumerate(recorded):
        is_opening = _is_opening(at, event, after_opening=is_opening)
        if is_opening or isinstance(event, ToolsSelected) or at in given:
            under_way, due = frozenset(), []
        elif not due:
            under_way, due = _make(state, under_way)
        got, under_way = (_taken(state, event), under_way) if at in given else _again(state, event, under_way, due)
        if got != event:
            return Replayed(tuple(out), state, at, event, got)
        if due and due[0] == event:
            due.pop(0)
        out.append(event)
        state = fold((event,), state)
    return Replayed(tuple(out), state)


def _is_opening(at: int, event: Event, *, after_opening: bool) -> bool:
    """Whether a record belongs to those with which a run is begun or taken up, before the table of moves is asked."""
    if at == 0 or isinstance(event, RunResumed | RunForked):
        return True
    if after_opening and isinstance(event, IntentAnchored) and event.asking is None:
        return True
    if isinstance(event, IntentAnchored) and event.asking is not None:
        return False  # a model was asked, which is a move
    return after_opening and isinstance(event, ToolsSelected | ModelTraitLearnt)


def _make(state: State, under_way: frozenset[Move]) -> tuple[frozenset[Move], list[Event]]:
    """The moves of the table, started: what they put on record, in order."""
    due: list[Event] = []
    for move in next_moves(state, under_way):
        due += announce(move, state)
        if isinstance(move, WorldMove):
            under_way |= {move}
    return under_way, due


def _again(
    state: State, event: Event, under_way: frozenset[Move], due: list[Event]
) -> tuple[Event | None, frozenset[Move]]:
    """What comes out where `event` was recorded, and what is under way after it."""
    if due:  # what is announced together is appended together, before anything can come back from the world
        return due[0], under_way
    match event:
        case ModelReplied(step=step, role=role):
            move = next((m for m in under_way if isinstance(m, Think) and m.step == step and m.role == role), None)
            if move is None:
                return None, under_way
            return _read_again(state, event, move), under_way - {move}
        case ModelFailed():
            move = next((m for m in under_way if isinstance(m, Think)), None)
            return (event, under_way - {move}) if move else (None, under_way)
        case CallEnded(call_id):
            return (event, under_way - {Act(call_id)}) if Act(call_id) in under_way else (None, under_way)
        case ModelTraitLearnt():  # the endpoint's own word, in place of a reply
            return event, frozenset(m for m in under_way if not isinstance(m, Think))
        case ConventionsRead(directory):
            move = ReadConventions(directory)
            return (event, under_way - {move}) if move in under_way else (None, under_way)
        case JudgementMade(call_id) | PerceptionSanitised(call_id):
            move = JudgeCall(call_id) if isinstance(event, JudgementMade) else Sanitise(call_id)
            return (event, under_way - {move}) if move in under_way else (None, under_way)
        case IntentAnchored(asking=Asking()):
            return (event, under_way - {MakeAnchor()}) if MakeAnchor() in under_way else (None, under_way)
        case ReferencesFound() | PreHydrationComplete():
            move = Find() if isinstance(event, ReferencesFound) else Hydrate()
            return (event, under_way - {move}) if move in under_way else (None, under_way)
        case DoubtSettled(call_id):  # the attempt has come to nothing that anybody knows, and its probe has answered
            return event, under_way - {Act(call_id), Probe(call_id)}
        case RunStarted() | RunResumed() | RunForked() | ToolsSelected() | IntentAnchored() | ValuesEndorsed():
            return event, under_way
        case CallJudged(by=by) if by:
            return event, under_way
        case _:
            return None, under_way


def _given(recorded: Sequence[Event]) -> frozenset[int]:
    """The records that come out of no table: the reply that a run was begun with, endorsed values, and cancellations.

    Of a cancellation: the end, and before it the calls that it settled.
    """
    found: set[int] = set()
    for at in range(len(recorded) - 1, -1, -1):
        event = recorded[at]
        match event:
            case RunEnded(Cancelled()) | ValuesEndorsed():
                found.add(at)
            case CallEnded(result=result) if at + 1 in found and result.source == "surefoot":
                if result.kind in ("cancelled", "in_doubt"):
                    found.add(at)
            case RunStarted(reasoner="once"):
                found.add(at + 1)
            case _:
                pass
    return frozenset(found)


def _taken(state: State, event: Event) -> Event | None:
    """What comes out for such a record: a cancellation settles open calls alone, and a reply is parsed anew."""
    match event:
        case CallEnded(call_id):
            call = state.call(call_id)
            return event if call is not None and call.is_open else None
        case ModelReplied(step=step, role=role) if role in state.speakers:
            return _read_again(state, event, Think(step, role))
        case RunEnded() | ValuesEndorsed():
            return event
        case _:
            return None


def _read_again(state: State, event: ModelReplied, move: Think) -> ModelReplied:
    parsed = REASONERS[state.reasoner].read(state, move, event.message)
    return replace(event, parsed=parsed, mode=state.speakers[move.role].mode, want=move.want)
