"""Run a journal again without touching the world, and say whether the same comes out.

The table of moves is asked again after every record: what only records must come out of it as it stands in the journal,
and what came from the world must answer a move that was under way. Replies are parsed anew, so a replay also shows
whether today's parser reads them as they were read. What persons said is taken as given. `RunResumed` and `RunForked`
mark where somebody took the run up, and a cancellation where somebody ended it: whatever was under way before is under
way no longer.
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
    DoubtSettled,
    Event,
    ModelFailed,
    ModelReplied,
    ModelTraitLearnt,
    RunEnded,
    RunForked,
    RunResumed,
    RunStarted,
    ToolsSelected,
)
from surefoot.types.moves import Act, Move, Probe, Think


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
    for at, event in enumerate(recorded):
        if isinstance(event, RunResumed | RunForked) or _is_cancelled(event):
            under_way, due = frozenset(), []
        elif not due:
            under_way, due = _make(state, under_way)
        got, under_way = _again(state, event, under_way, due)
        if got != event:
            return Replayed(tuple(out), state, at, event, got)
        if due and due[0] == event:
            due.pop(0)
        out.append(event)
        state = fold((event,), state)
    return Replayed(tuple(out), state)


def _make(state: State, under_way: frozenset[Move]) -> tuple[frozenset[Move], list[Event]]:
    """The moves of the table, started: what they put on record, in order."""
    due: list[Event] = []
    for move in next_moves(state, under_way):
        due += announce(move, state)
        if isinstance(move, Think | Act | Probe):
            under_way |= {move}
    return under_way, due


def _again(
    state: State, event: Event, under_way: frozenset[Move], due: list[Event]
) -> tuple[Event | None, frozenset[Move]]:
    """What comes out where `event` was recorded, and what is under way after it."""
    if due:  # what is announced together is appended together, before anything can come back from the world
        return due[0], under_way
    match event:
        case ModelReplied(step=step, message=message, role=role):
            move = next((m for m in under_way if isinstance(m, Think) and m.step == step and m.role == role), None)
            if move is None:
                return None, under_way
            parsed = REASONERS[state.reasoner].read(state, move, message)
            return replace(event, parsed=parsed, mode=state.mode, want=move.want), under_way - {move}
        case ModelFailed():
            move = next((m for m in under_way if isinstance(m, Think)), None)
            return (event, under_way - {move}) if move else (None, under_way)
        case CallEnded(call_id):
            return (event, under_way - {Act(call_id)}) if Act(call_id) in under_way else (None, under_way)
        case ModelTraitLearnt():  # the endpoint's own word, in place of a reply
            return event, frozenset(m for m in under_way if not isinstance(m, Think))
        case DoubtSettled(call_id):  # the attempt has come to nothing that anybody knows, and its probe has answered
            return event, under_way - {Act(call_id), Probe(call_id)}
        case RunStarted() | RunResumed() | RunForked() | ToolsSelected():
            return event, under_way
        case RunEnded() if _is_cancelled(event):
            return event, under_way
        case CallJudged(by=by) if by:
            return event, under_way
        case _:
            return None, under_way


def _is_cancelled(event: Event) -> bool:
    """Whether a person ended the run, which comes out of no table."""
    return isinstance(event, RunEnded) and isinstance(event.ending, Cancelled)
