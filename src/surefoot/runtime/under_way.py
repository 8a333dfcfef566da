"""The moves under way of one run: made side by side, put on record as they end; and what is said to the run meanwhile.

What nobody waits for goes on record with what comes next: a reply, its verdicts and the announcement of its calls are
one append, made before the first call begins.

A word that somebody says is heard between two events, at a place of its own in the journal, also while moves are made.
One that ends the run has what is still under way cut off.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import chain
from types import TracebackType
from typing import Protocol, cast

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import announce, durability
from surefoot.core.state.state import State
from surefoot.types.errors import JournalError
from surefoot.types.events import Event, RunEnded
from surefoot.types.moves import Act, Move, Probe, Record, Think, Within, WorldMove
from surefoot.types.ports import Durability, RunJournal
from surefoot.types.words import Posted

_LONGEST_TURN_S = 0.005
"""For how long a run may hold up the event loop with what it only puts on record."""


class Hands(Protocol):
    """What makes the moves that touch the world."""

    def do(self, move: WorldMove, state: State) -> Awaitable[Sequence[Event]]:
        """Make one move and say what happened.

        MUST NOT raise for what a model or a tool did wrong; that is an event. No event means that nobody knows what
        happened: a call then stays open, and is in doubt unless it may be repeated.
        """
        ...

    def announced(self, events: Sequence[Event]) -> None:
        """Called with all events of the run in order, as soon as they are appended."""
        ...

    async def hear(
        self, state: State, *, is_thinking: bool, acting: Collection[str]
    ) -> tuple[Sequence[Event], Sequence[Posted]]:
        """What was said to the run: as events, and the words with what came of them.

        While a model is asked (`is_thinking`), what the user adds waits for the next request. `acting` are the calls
        under way: nobody else can say what became of them.
        """
        ...


class Leave:
    """Tells drivers to leave their runs as they stand: no move begins, and what may be repeated is cut off.

    What must not be made twice gets `grace_s` seconds. One may serve many runs.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self.grace_s = 0.0
        self.wakes: set[Callable[[], None]] = set()

    def begin(self, grace_s: float) -> None:
        self.has_begun, self.grace_s = True, grace_s
        for wake in tuple(self.wakes):
            wake()


class UnderWay:
    """The moves under way of one run: announced, made in one task group, and what came of them put on record."""

    def __init__(self, journal: RunJournal, hands: Hands, leave: Leave | None = None) -> None:
        self._leave = leave or Leave()
        self.moves: frozenset[Move] = frozenset()
        self._journal = journal
        self._hands = hands
        self._tasks = asyncio.TaskGroup()
        self._making: dict[asyncio.Task[None], WorldMove] = {}
        self._waiting: dict[WorldMove, State] = {}  # with the state in which it was announced
        self._ended: dict[WorldMove, Sequence[Event]] = {}  # with what it has brought
        self._woken = asyncio.Event()  # a move has ended, or somebody speaks
        self._effects: set[Move] = set()  # what must not be made twice, so what came of it is written at once
        self._turned_s = time.monotonic()
        self._alone: State | None = None  # the state in which the only move is made here
        self._hearing: asyncio.Task[None] | None = None
        self._owed: list[Event] = []  # what has happened, and goes on record with what comes next
        self._said: list[Event] = []
        self._has_words = self._are_held_back = self._is_over = self._is_cut_off = False

    async def __aenter__(self) -> UnderWay:
        await self._tasks.__aenter__()
        self._journal.listen(self._wake)
        self._leave.wakes.add(self._look_up)
        self._task = cast("asyncio.Task[object]", asyncio.current_task())  # there is one, or the group would not begin
        self._cancelled_before = self._task.cancelling()  # whoever awaits the run may have caught one of its own
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.listen(None)
        self._leave.wakes.discard(self._look_up)
        try:
            await self._cut_off()
            await self._tasks.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:  # one hand failed; the others were cancelled and only echo it
            raise group.exceptions[0] from None
        finally:
            if kind is asyncio.CancelledError and not self._is_over:
                await self._recorded()  # what has ended must not be made again
            if not isinstance(error, JournalError):
                await self._append()

    def has_more(self, state: State) -> bool:
        """Whether there is something to wait for: moves that were begun, or a word that was not heard yet."""
        return bool(self.moves) or (self._has_words and state.ending is None)

    async def start(self, moves: Sequence[Move], state: State) -> State:
        """Put on record what announces the moves, then let them begin. Gives the state with the announcements."""
        begun: list[WorldMove] = []
        events: list[Event] = []
        safest: Durability = "soon"
        for move in moves:
            if not isinstance(move, Record):
                begun.append(move)
            if announced := announce(move, state):
                events += announced
                wanted = durability(move, state)
                if wanted != "soon" and safest != "synced":
                    safest = wanted
                if wanted == "synced":
                    self._effects.add(move)
        if begun and self._leave.has_begun:
            await self._go()
        if events:
            state = fold(events, state)
            self._owed += events
        if begun:
            waiting = dict.fromkeys(begun, state)
            self.moves, self._waiting = self.moves.union(waiting), self._waiting | waiting
        if begun or safest != "soon":
            await self._append(safest)
        if not self.moves and time.monotonic() - self._turned_s > _LONGEST_TURN_S:  # a reply may hold a thousand calls
            await asyncio.sleep(0)
            self._turned_s = time.monotonic()
        return state

    async def next_events(self, state: State) -> Sequence[Event]:
        """What the next move to end brought, what else has ended by then, or what somebody says."""
        if state.ending is not None:  # somebody has ended it: what comes of these moves is nobody's any more
            await self._cut_off()
            self.moves, self._effects, self._ended = frozenset(), set(), {}
            self._waiting.clear()
            return ()
        if self._owed:
            await self._append()
        said: Sequence[Event] = ()
        calls = state.calls
        has_others = len(calls) > 1 and sum(call.is_open for call in calls) > 1  # they may start beside it
        is_only = len(self._waiting) == len(self.moves) == 1 and state.planning is None and not has_others
        if is_only and not (self._has_words or self._leave.has_begun):
            move, begun = self._waiting.popitem()  # it needs no task
            self._alone = state
            try:
                self._ended[move] = await self._hands.do(move, begun)
            except asyncio.CancelledError:
                if not self._is_over:
                    raise
            finally:
                self._alone = None
            if self._hearing is not None:
                said = await self._heard_beside(self._hearing)
        else:
            for move, begun in self._waiting.items():
                task = self._tasks.create_task(self._make(move, begun))
                self._making[task] = move
                task.add_done_callback(self._making.pop)
            self._waiting.clear()
            if self._leave.has_begun:
                await self._go()
            if not (self._ended or self._has_words):
                await self._woken.wait()
            self._woken.clear()
        self._turned_s = time.monotonic()
        is_due = self._are_held_back and bool(self._ended)
        events = [*said, *await self._recorded()]
        if self._has_words or is_due:
            events += await self._hear(fold(events, state))
        if self._task.cancelling() > self._cancelled_before:
            await self._append()
            raise asyncio.CancelledError
        return events

    async def _heard_beside(self, hearing: asyncio.Task[None]) -> Sequence[Event]:
        """What was said while a move was made here."""
        await hearing
        self._hearing = None
        if self._is_over:
            self.moves, self._effects, self._ended = frozenset(), set(), {}
        if self._is_cut_off:  # by a word, whether or not the move has let that through
            self._task.uncancel()
        said, self._said = self._said, []
        return said

    async def _hear_beside(self, state: State) -> None:
        while self._has_words:
            self._said += await self._hear(fold(self._said, state))
        if self._is_over and self._alone is not None:
            self._is_cut_off = self._task.cancel()

    def _wake(self) -> None:
        self._has_words = True
        self._look_up()

    def _look_up(self) -> None:
        if self._alone is None:
            self._woken.set()
        elif self._leave.has_begun:
            grace_s = self._leave.grace_s if self._effects else 0.0
            asyncio.get_running_loop().call_later(grace_s, self._leave_alone, self.moves)
        elif self._hearing is None or self._hearing.done():
            self._hearing = self._tasks.create_task(self._hear_beside(self._alone))

    def _leave_alone(self, moves: frozenset[Move]) -> None:
        if self._alone is not None and self.moves == moves:
            self._task.cancel()

    async def _go(self) -> None:
        """Leave the run as it stands. What must not be made twice gets its grace, and what came of it is recorded."""
        await self._append()
        for task, move in self._making.items():
            if move not in self._effects:
                task.cancel()
        effects = [task for task, move in self._making.items() if move in self._effects]
        if effects:
            await asyncio.wait(effects, timeout=self._leave.grace_s)
        await self._recorded()
        raise asyncio.CancelledError

    async def _hear(self, state: State) -> Sequence[Event]:
        """What was said by now, on record in one piece with that it was heard; what it answers stands there before."""
        await self._append()
        moves = [one.move if isinstance(one, Within) else one for one in self.moves]
        thinking = any(isinstance(one, Think) for one in moves)
        self._has_words, self._are_held_back = False, thinking
        acting = [one.call_id for one in moves if isinstance(one, Act | Probe)]
        events, heard = await self._hands.hear(state, is_thinking=thinking, acting=acting)
        if heard:
            self._is_over = self._is_over or any(isinstance(event, RunEnded) for event in events)
            self._owed += events
            await self._append("written", heard)
        return events

    async def _cut_off(self) -> None:
        """Cancel what is under way and wait for it; again when this task is: a group passes on only the first time."""
        is_again = False
        while self._making:
            for task in tuple(self._making):
                if is_again or not task.cancelling():
                    task.cancel()
            try:
                await asyncio.wait(tuple(self._making))
            except asyncio.CancelledError:
                is_again = True

    async def _recorded(self) -> Sequence[Event]:
        """What the moves have brought that have ended, owed to the journal; that of effects is written at once."""
        ended, self._ended = self._ended, {}
        events = [*chain.from_iterable(ended.values())]
        self._owed += events
        self.moves = self.moves.difference(ended)
        if self._effects:
            if events and not self._effects.isdisjoint(ended):
                await self._append("written")
            self._effects.difference_update(ended)
        return events

    async def _append(self, wanted: Durability = "soon", heard: Sequence[Posted] = ()) -> None:
        """Put on record what is owed."""
        if self._owed or heard:
            events, self._owed = self._owed, []
            try:
                await self._journal.append(events, wanted, heard=heard)
            except asyncio.CancelledError:  # while they are written: they are queued by then
                self._hands.announced(events)
                raise
            self._hands.announced(events)

    async def _make(self, move: WorldMove, state: State) -> None:
        self._ended[move] = await self._hands.do(move, state)
        self._woken.set()
