"""The loop: fold the journal, ask what to do, do it, append what happened. For ever the same few lines."""

from __future__ import annotations

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import next_moves
from surefoot.core.state.state import State
from surefoot.runtime.under_way import Hands, Leave, UnderWay
from surefoot.types.ports import RunJournal


async def drive(journal: RunJournal, hands: Hands, state: State, leave: Leave | None = None) -> State:
    """Take a run as far as it can go: to its end, or to where it needs a person's decision.

    `state` is the fold of all that the journal holds. Call it again after a crash or an approval: the journal says
    where the run stood. What a tool or a model did wrong is in the journal; only `JournalError` leaves here. Cancelled,
    it leaves the run as a crash would: resumable; so it does, in time, when `leave` has begun.
    """
    async with UnderWay(journal, hands, leave) as under_way:  # one task group, and the moves being made in it
        while True:
            if moves := next_moves(state, under_way.moves):
                state = await under_way.start(moves, state)  # what announces a move is on record before it is made
            elif under_way.has_more(state):
                state = fold(await under_way.next_events(state), state)  # as soon as any ends, or somebody speaks
            else:
                return state
