"""The moves under way of one run: made side by side, put on record as they end; and what is said to the run meanwhile.

What nobody waits for goes on record with what comes next: a reply, its verdicts and the announcement of its calls are
one append, made before the first call begins.

A word that somebody says is heard between two events, at a place of its own in the journal, also while moves are made.
One that ends the run has what is still under way cut off.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
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


_Ended = tuple[WorldMove, Sequence[Event]]


class UnderWay:
    """The moves under way of one run: announced, made in one task group, and what came of them put on record."""

    def __init__(self, journal: RunJournal, hands: Hands, leave: Leave | None = None) -> None:
        self._leave = leave or Leave()
        self.moves: frozenset[Move] = frozenset()
        self._journal = journal
        self._hands = hands
        self._tasks = asyncio.TaskGroup()
        self._making: dict[asyncio.Task[None], WorldMove] = {}
        self._waiting: list[tuple[WorldMove, State]] = []
        self._ended: asyncio.Queue[_Ended | None] = asyncio.Queue()
        self._effects: set[WorldMove] = set()  # what must not be made twice, so what came of it is written at once
        self._turned_s = time.monotonic()
        self._has_words = False
        self._are_held_back = False
        self._alone: State | None = None  # the state in which the only move is made here
        self._hearing: asyncio.Task[None] | None = None
        self._owed: list[Event] = []  # what has happened, and goes on record with what comes next
        self._said: list[Event] = []
        self._made: list[_Ended] = []  # by that move
        self._is_over = self._is_cut_off = False

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
            if kind is asyncio.CancelledError:
                await self._recorded([*self._made, *self._all_ended()])  # what has ended must not be made again
            if not isinstance(error, JournalError):
                await self._append()

    def has_more(self, state: State) -> bool:
        """Whether there is something to wait for: moves that were begun, or a word that was not heard yet."""
        return bool(self.moves) or (self._has_words and state.ending is None)

    async def start(self, moves: Sequence[Move], state: State) -> State:
        """Put on record what announces the moves, then let them begin. Gives the state with the announcements."""
        if self._leave.has_begun and any(isinstance(move, WorldMove) for move in moves):
            await self._go()
        events: list[Event] = []
        safest: Durability = "soon"
        for move in moves:
            events += announce(move, state)
            wanted = durability(move, state)
            safest = wanted if _SAFETY.index(wanted) > _SAFETY.index(safest) else safest
            if wanted == "synced" and not isinstance(move, Record):
                self._effects.add(move)
        state = fold(events, state)
        self._owed += events
        begun = [move for move in moves if not isinstance(move, Record)]
        if begun:
            self.moves = self.moves.union(begun)
            self._waiting += [(move, state) for move in begun]
        if begun or safest != "soon":
            await self._append(safest)
        if not self.moves and time.monotonic() - self._turned_s > _LONGEST_TURN_S:  # a reply may hold a thousand calls
            await self._append()
            await asyncio.sleep(0)
            self._turned_s = time.monotonic()
        return state

    async def next_events(self, state: State) -> Sequence[Event]:
        """What the next move to end brought, what else has ended by then, or what somebody says."""
        if state.ending is not None:  # somebody has ended it: what comes of these moves is nobody's any more
            await self._cut_off()
            self._all_ended()
            self.moves, self._effects = frozenset(), set()
            self._waiting.clear()
            return ()
        await self._append()
        is_busy = state.planning is not None or self._has_words or self._leave.has_begun
        is_only = len(self._waiting) == len(self.moves) == 1 and not is_busy
        if is_only and sum(call.is_open for call in state.calls) < 2:  # noqa: PLR2004
            return await self._made_alone(state)
        for move, begun in self._waiting:
            task = self._tasks.create_task(self._make(move, begun))
            self._making[task] = move
            task.add_done_callback(self._making.pop)
        self._waiting.clear()
        ended: list[_Ended] = []
        if self._leave.has_begun:
            await self._go()
        if not self._has_words:
            first = await self._ended.get()
            ended = [*([first] if first else ()), *self._all_ended()]
        return await self._record(ended, state)

    async def _record(self, ended: Sequence[_Ended], state: State, said: Sequence[Event] = ()) -> Sequence[Event]:
        """What moves have brought, on record, behind what was said meanwhile; and what is to be heard then."""
        self._turned_s = time.monotonic()
        events = [*said, *await self._recorded(ended)]
        if self._has_words or (self._are_held_back and ended):
            events += await self._hear(fold(events, state))
        if self._task.cancelling() > self._cancelled_before:
            await self._append()
            raise asyncio.CancelledError
        return events

    async def _made_alone(self, state: State) -> Sequence[Event]:
        """Make the only move here: nothing goes on beside it, so it needs no task. Who speaks is heard beside it."""
        move, begun = self._waiting.pop()
        self._alone, said = state, self._said
        try:
            self._made.append((move, await self._hands.do(move, begun)))
        except asyncio.CancelledError:
            if not self._is_over:
                raise
        finally:
            self._alone = None
        if self._hearing is not None:
            await self._hearing
            self._hearing = None
        self._said, self._made, ended = [], [], self._made
        if self._is_over:
            self.moves, self._effects, ended = frozenset(), set(), []
        if self._is_cut_off:  # by a word, whether or not the move has let that through
            self._task.uncancel()
        return await self._record(ended, state, said)

    async def _hear_beside(self, state: State) -> None:
        while self._has_words:
            self._said += await self._hear(fold(self._said, state))
        self._is_over = any(isinstance(event, RunEnded) for event in self._said)
        if self._is_over and self._alone is not None:
            self._is_cut_off = self._task.cancel()

    def _wake(self) -> None:
        self._has_words = True
        self._look_up()

    def _look_up(self) -> None:
        if self._alone is None:
            self._ended.put_nowait(None)
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
        await self._recorded(self._all_ended())
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

    def _all_ended(self) -> list[_Ended]:
        return [one for _ in range(self._ended.qsize()) if (one := self._ended.get_nowait()) is not None]

    async def _recorded(self, ended: Sequence[_Ended]) -> Sequence[Event]:
        made = {move for move, _ in ended}
        self.moves -= made
        events = [event for _, some in ended for event in some]
        self._owed += events
        if events and not self._effects.isdisjoint(made):
            await self._append("written")
        self._effects -= made
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
        self._ended.put_nowait((move, await self._hands.do(move, state)))
