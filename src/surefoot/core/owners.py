"""Whose a call is: the run's own, or that of a running step of its plan; and how what befalls it is put on record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from surefoot.core.plan.child import in_step, with_whole
from surefoot.core.state import Call, State
from surefoot.types.dataclass import dataclass
from surefoot.types.events import CallEnded, Event
from surefoot.types.tools import ToolResult


@dataclass(frozen=True, slots=True)
class Owner:
    """A state with calls: the run, or one of its running steps (`step_id` ""  for the run)."""

    state: State
    step_id: str = ""
    attempt: int = 0

    def told(self, events: Sequence[Event]) -> tuple[Event, ...]:
        """Events of this state as the run has them on record."""
        if not self.step_id:
            return tuple(events)
        return tuple(in_step(self.state, event) for event in events)


def owners(state: State) -> Iterator[Owner]:
    """The run, and its running steps in the order in which they began."""
    yield Owner(state)
    if state.planning is not None:
        for name, child in state.planning.children.items():
            yield Owner(with_whole(child, state), name, int(child.scope.rpartition(".")[2]))


def open_calls(state: State) -> Iterator[tuple[Owner, Call]]:
    """The calls of which nobody knows yet what they give, with whose they are."""
    for owner in owners(state):
        yield from ((owner, call) for call in owner.state.calls if call.is_open)


def owner_of(state: State, call_id: str) -> Owner:
    """Whose call that is; the run's where no step has one of that id."""
    return next((one for one in owners(state) if one.step_id and _is_of(one.state, call_id)), Owner(state))


def _is_of(state: State, call_id: str) -> bool:
    """Whether that is one of its calls, or of its limits about which a person is asked."""
    return state.call(call_id) is not None or any(one.step_id == call_id for one in state.asked)


def give_up(call: Call, elapsed_s: float) -> CallEnded:
    """An open call is cancelled where it had not begun or may be repeated; else nobody knows what it has done."""
    if call.is_waiting or (call.spec is not None and call.spec.may_repeat):
        told = ToolResult("cancelled: not run", "cancelled", source="surefoot", trust="trusted", infrastructure=True)
    else:
        unknown = "broken off, and nobody knows whether it took effect; find that out before you call it again"
        told = ToolResult(unknown, "in_doubt", source="surefoot", trust="trusted")
    return CallEnded(call.id, told, elapsed_s)
