"""The loop: fold the journal, ask what to do, do it, append what happened. For ever the same few lines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, cast

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import announce, durability, next_moves
from surefoot.core.state.state import State
from surefoot.types.events import Event
from surefoot.types.moves import Move, WorldMove
from surefoot.types.ports import Durability, RunJournal


async def drive(journal: RunJournal, hands: Hands, state: State) -> State:
    """Take a run as far as it can go: to its end, or to where it needs a person's decision.

    `state` is the fold of all that the journal holds. Call it again after a crash or an approval: the journal says
    where the run stood. What a tool or a model did wrong is in the journal; only `JournalError` leaves here. Cancelled,
    it leaves the run as a crash would: resumable.
    """
    async with UnderWay(journal, hands) as under_way:  # one task group, and the moves being made in it
        while True:
            if moves := next_moves(state, under_way.moves):
                state = await under_way.start(moves, state)  # what announces a move is on record before it is made
            elif under_way.moves:
                state = fold(await under_way.next_events(), state)  # as soon as any ends; a slow one holds up no other
            else:
                return state


_SAFETY: tuple[Durability, ...] = ("soon", "written", "synced")  # the later satisfies whoever wants an earlier one

_LONGEST_TURN_S = 0.005
"""For how long a run may hold up the event loop with what it only puts on record."""


class Hands(Protocol):
    """What makes the moves that touch the world."""

    async def do(self, move: WorldMove, state: State) -> Sequence[Event]:
        """Make one move and say what happened.

        MUST NOT raise for what a model or a tool did wrong; that is an event. No event means that nobody knows what
        happened: a call then stays open, and is in doubt unless it may be repeated.
        """
        ...

    def announced(self, events: Sequence[Event]) -> None:
        """Called with all events of the run in order, as soon as they are appended."""
        ...


class UnderWay:
    """The moves under way of one run: announced, made in one task group, and what came of them put on record."""

    def __init__(self, journal: RunJournal, hands: Hands) -> None:
        self.moves: frozenset[Move] = frozenset()
        self._journal = journal
        self._hands = hands
        self._tasks = asyncio.TaskGroup()
        self._making: set[asyncio.Task[None]] = set()
        self._waiting: list[tuple[WorldMove, State]] = []
        self._ended: asyncio.Queue[tuple[WorldMove, Sequence[Event]]] = asyncio.Queue()
        self._effects: set[WorldMove] = set()  # what must not be made twice, so what came of it is written at once
        self._turned_s = time.monotonic()

    async def __aenter__(self) -> UnderWay:
        await self._tasks.__aenter__()
        self._task = cast("asyncio.Task[object]", asyncio.current_task())  # there is one, or the group would not begin
        self._cancelled_before = self._task.cancelling()  # whoever awaits the run may have caught one of its own
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_again = False
        try:
            while self._making:  # cancelled, and again when this task is: a task group passes on only the first time
                for task in self._making:
                    if is_again or not task.cancelling():
                        task.cancel()
                try:
                    await asyncio.wait(self._making)
                except asyncio.CancelledError:
                    is_again = True
            await self._tasks.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:  # one hand failed; the others were cancelled and only echo it
            raise group.exceptions[0] from None
        finally:
            if kind is asyncio.CancelledError:
                await self._recorded(self._all_ended())  # what has ended must not be made again

    async def start(self, moves: Sequence[Move], state: State) -> State:
        """Put on record what announces the moves, then let them begin. Gives the state with the announcements."""
        safety: list[Durability] = [durability(move, state) for move in moves]
        if events := [event for move in moves for event in announce(move, state)]:
            await self._journal.append(events, max(safety, key=_SAFETY.index))
            self._hands.announced(events)
            state = fold(events, state)
        for move, wanted in zip(moves, safety, strict=True):
            if isinstance(move, WorldMove):
                self.moves |= {move}
                self._waiting.append((move, state))
                if wanted == "synced":
                    self._effects.add(move)
        if not self.moves and time.monotonic() - self._turned_s > _LONGEST_TURN_S:  # a reply may hold a thousand calls
            await asyncio.sleep(0)
            self._turned_s = time.monotonic()
        return state

    async def next_events(self) -> Sequence[Event]:
        """What the next move to end brought, and what else has ended by then; on record already."""
        if len(self._waiting) == len(self.moves) == 1:  # nothing goes on beside it, so it needs no task
            move, state = self._waiting.pop()
            ended = [(move, await self._hands.do(move, state))]
        else:
            for move, state in self._waiting:
                task = self._tasks.create_task(self._make(move, state))
                self._making.add(task)
                task.add_done_callback(self._making.discard)
            self._waiting.clear()
            ended = [await self._ended.get(), *self._all_ended()]
        self._turned_s = time.monotonic()
        events = await self._recorded(ended)
        if self._task.cancelling() > self._cancelled_before:
            raise asyncio.CancelledError
        return events

    def _all_ended(self) -> list[tuple[WorldMove, Sequence[Event]]]:
        return [self._ended.get_nowait() for _ in range(self._ended.qsize())]

    async def _recorded(self, ended: Sequence[tuple[WorldMove, Sequence[Event]]]) -> Sequence[Event]:
        made = {move for move, _ in ended}
        self.moves -= made
        events = [event for _, some in ended for event in some]
        if events:
            wanted: Durability = "soon" if self._effects.isdisjoint(made) else "written"
            await self._journal.append(events, wanted)
            self._hands.announced(events)
        self._effects -= made
        return events

    async def _make(self, move: WorldMove, state: State) -> None:
        self._ended.put_nowait((move, await self._hands.do(move, state)))
