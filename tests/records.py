"""What a journal holds of a run, in tests: whole, and as a replay gives it."""

import asyncio
from collections.abc import Callable, Sequence

from surefoot import tool
from surefoot.core.gate.record import GateRecord
from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import next_moves
from surefoot.core.loop.replay import replay
from surefoot.core.loop.slices import request
from surefoot.testing.models import FunctionModel, Scripted
from surefoot.types.events import Event
from surefoot.types.messages import CallMode, ModelMessage, ModelRequest
from surefoot.types.moves import Think
from surefoot.types.ports import JournalStore, Tool


async def events_of(store: JournalStore, run_id: str) -> list[Event]:
    records, wrong = await store.read_recorded(run_id)
    assert wrong == ""
    events = [record.event for record in records]
    assert replay(events).differs_at is None
    return events


def gate_of(events: Sequence[Event]) -> GateRecord:
    """What the gate of a run keeps by then."""
    gate = fold(events).gate
    assert gate is not None
    return gate


def shown_anew(events: Sequence[Event]) -> list[tuple[str, tuple[ModelMessage, ...]]]:
    """What each role is shown before each reply, as another process has it: folded anew, and nothing kept."""
    return [
        (move.role, request(state, move).messages)
        for end in range(1, len(events))
        for state in [fold(events[:end])]
        for move in next_moves(state)
        if isinstance(move, Think)
    ]


async def until(is_so: Callable[[], object]) -> None:
    """Return once it is so: another task, or a process, brings it about."""
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110  # there is nothing to wait for but that
            await asyncio.sleep(0.01)


def turns(*said: Scripted, mode: CallMode = "native", name: str = "test:turns") -> FunctionModel:
    """A model whose reply depends on the request alone, as a real one's does, so that it goes on after a crash."""

    def reply(request: ModelRequest) -> Scripted:
        return said[min(sum(message.role == "assistant" for message in request.messages), len(said) - 1)]

    return FunctionModel(reply, modes=(mode,), name=name)


def late_first() -> tuple[Tool, list[int]]:
    """A read of 0 that ends only when that of 2 has, and in which order reads have ended."""
    gate, order = asyncio.Event(), list[int]()

    @tool(effect="read")
    async def look(n: int) -> int:
        """Look."""
        if n == 0:
            await gate.wait()
        order.append(n)
        if n == 2:
            gate.set()
        return n

    return look, order
