"""What workflows have done: the journal read and written for them, and moves made by the hands of the agents.

A worker process holds the runs whose workflows it works on, by the claim that the workflow has (`RunJournal`), so that
lists show them as driven and what is said to them is heard. Where a workflow moves to another process, the claim goes
with it. Source: spec/scale.md, sections 6.1 and 6.2.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar, cast

from temporalio import activity
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from surefoot.agent import Agent
from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import durability
from surefoot.core.state.state import EMPTY, State
from surefoot.engines.temporal import payloads
from surefoot.engines.temporal.payloads import Answer, Asked, Batch, Held, Made, Piece
from surefoot.run import Opened, Run
from surefoot.runtime.act import call_key
from surefoot.runtime.under_way import Leave
from surefoot.speak import at_rest, hear, speak
from surefoot.tools.call import is_running
from surefoot.types.errors import JournalCorrupt, JournalError, LeaseLost
from surefoot.types.moves import WorldMove
from surefoot.types.ports import Claimed, JournalStore, Place, RunJournal
from surefoot.types.words import Approve, Refuse

T = TypeVar("T")

KINDS = ("think", "act", "probe", "prepare", "stage", "plan")
"""What an activity that makes a move is called, by the kind of the move."""

MOVED = "Moved"
"""The type of the error of a record that was to be put where others stand."""

LOST = "lost"
"""What comes of a stretch whose run others have taken."""

_BEAT_S = 2.0
_MOST_TRIES = 30
"""How often the next workflow of a run is looked for, at each beat."""

_PATIENCE_S = 20.0
"""For how long an answer waits until its run has heard it."""

_PIECE = 500
"""Records that are given at once: what a workflow folds within a tenth of a second."""


class States:
    """States that were folded here already, by run, records and claim; the newest few."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, int], State] = OrderedDict()

    def put(self, held: Held, state: State) -> None:
        self._kept[held.run_id, state.seen, held.fence] = state
        while len(self._kept) > 256:  # noqa: PLR2004  # as many runs as a worker has at work
            self._kept.popitem(last=False)

    def get(self, held: Held, seq: int) -> State:
        found = [
            state
            for (run_id, seen, fence), state in tuple(self._kept.items())  # at once: a workflow may put one meanwhile
            if (run_id, fence) == (held.run_id, held.fence) and seen <= seq
        ]
        return max(found, key=lambda state: state.seen, default=EMPTY)


STATES = States()


class _OpenedElsewhere(JournalError):
    """A run that is held here is held by others, too."""


class _Shelved:
    """The journal of a run for hands that only put bytes into it and get them."""

    def __init__(self, store: JournalStore, run_id: str) -> None:
        self.run_id, self.put_blob, self.get_blob = run_id, partial(store.put_blob, run_id), store.get_blob


@asynccontextmanager
async def _beating() -> AsyncGenerator[None]:
    """Tell Temporal, while the block lasts, that this process lives; so it is told of a cancellation."""

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(_BEAT_S)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()


def _why_cancelled() -> ActivityCancellationDetails:
    return activity.cancellation_details() or ActivityCancellationDetails()


async def _pass_on(asked: Asked, made: Made | None) -> bool:
    """Tell the open workflow of a run what came of a move; None: it is still made. Whether there is one."""
    try:
        workflow = activity.client().get_workflow_handle(payloads.workflow_id(asked.held.run_id))
        await workflow.signal("left", args=[asked, made])
    except RPCError:
        return False
    return True


class Activities:
    """The activities of one worker process. `tell` is called with the id of a held run to which something was said."""

    def __init__(
        self, store: JournalStore, agents: Mapping[str, Agent[Any]], by: str, tell: Callable[[str], None]
    ) -> None:
        self._store, self._agents, self._by, self._tell = store, agents, by, tell
        self.held: dict[str, tuple[Held, Opened]] = {}

    def all(self) -> list[Callable[..., Awaitable[object]]]:
        def activity_for(kind: str) -> Callable[..., Awaitable[object]]:
            async def make_move(asked: Asked) -> Made:
                return await self._make(asked)

            return activity.defn(name=kind)(make_move)

        return [self.drive, self.load, self.record, self.hear, self.answer, self.rest, *map(activity_for, KINDS)]

    @activity.defn
    async def drive(self, held: Held) -> str:
        """Drive a run as far as it goes; how it stands then, `LOST` where others have it."""
        claimed, leave = Claimed(held.run_id, held.agent, held.fence), Leave()

        async def leaving() -> None:
            await activity.wait_for_worker_shutdown()
            leave.begin(math.inf)

        watching = asyncio.create_task(leaving())
        driving = asyncio.create_task(self._agents[held.agent].drive(claimed, by=self._by, leave=leave))
        try:
            async with _beating():
                while not driving.done():
                    try:
                        await asyncio.wait((driving,))
                    except asyncio.CancelledError:
                        leave.begin(math.inf)  # what must not be made twice is waited for, and put on record
                return driving.result().status
        except LeaseLost:
            return LOST
        except asyncio.CancelledError:
            if _why_cancelled().cancel_requested:
                raise
            return LOST  # left for the next worker, which is no failure
        finally:
            watching.cancel()

    @activity.defn
    async def load(self, held: Held, since: int, is_taken: bool) -> Piece:
        """Records from `since` on, at most 500; unless it `is_taken` already, the run is taken up before."""

        async def taken_up(opened: Opened) -> Piece:
            if not is_taken:
                agent, claimed = self._agents[held.agent], Claimed(held.run_id, held.agent, held.fence)
                state, first, words = await agent.take_up(opened, claimed, self._by)
                if first is None:
                    await at_rest(opened, words, Run.of(state))
                else:
                    await agent.put_first(opened.journal, state, first, words)
            return await self._piece(opened, since)

        return await self._with(held, taken_up, looks=True)

    @activity.defn
    async def record(self, batch: Batch) -> str:
        """Append events; the hash behind them. Raises `LeaseLost`, and an error of type `MOVED`."""
        events, place = payloads.events_in(batch.bodies), Place(batch.seq, bytes.fromhex(batch.hash))
        try:
            stands = await self._with(
                batch.held, lambda opened: opened.journal.append(events, batch.durability, at=batch.at, place=place)
            )
        except _OpenedElsewhere as error:
            raise ApplicationError(str(error), type=MOVED, non_retryable=True) from error
        return stands.hash.hex()

    @activity.defn
    async def hear(self, batch: Batch, is_thinking: bool, acting: list[str]) -> Piece:
        """Put on record what was said to a run that stands at that place; records that it has been given since."""
        place = Place(batch.seq, bytes.fromhex(batch.hash))

        async def hear_words(opened: Opened) -> Piece:
            if opened.journal.place == place:
                state = await self._state(batch.held, batch.seq)
                events, words = await hear(self._store, opened.journal, state, is_thinking, acting)
                if words:
                    at = max(batch.at, time.time())  # now, not when the last move has ended
                    await opened.journal.append(events, "written", heard=words, at=at, place=place)
            return await self._piece(opened, batch.seq)

        return await self._with(batch.held, hear_words, looks=True)

    @activity.defn
    async def answer(self, run_id: str, answer: Answer, is_yes: bool, key: str) -> tuple[str, str]:
        """Say a person's answer to a run, once for each `key`; what came of it, and why."""
        calls = ((answer.call_id, answer.digest),)
        word = Approve(calls, answer.by) if is_yes else Refuse(calls, answer.by, answer.reason)
        posted = await speak(self._store, run_id, word, key=key, wait_s=_PATIENCE_S)
        return posted.outcome, posted.detail

    @activity.defn
    async def rest(self, held: Held, why: str) -> None:
        """Let a run go as it stands; one that has made its driver fail is set aside, with the reason why."""

        async def let_go(opened: Opened) -> None:
            self.held.pop(held.run_id)
            if why:
                await opened.journal.release("set_aside", why=why)
                return
            async with opened:
                state = fold(await opened.journal.read())
                if state.ending is not None:
                    await self._agents[held.agent].remember(opened.journal, state)
                opened.leave(Run.of(state))

        with suppress(LeaseLost):  # others have it
            await self._with(held, let_go, looks=True)

    async def _with(self, held: Held, do: Callable[[Opened], Awaitable[T]], *, looks: bool = False) -> T:
        """What it gives with a run that is opened here by that claim; once more where its workflow has been elsewhere.

        What may append nothing `looks` whether it has been. Raises `LeaseLost` once others have claimed the run.
        """
        for _ in range(2):
            opened = await self._open(held)
            if looks and (await self._store.summary(held.run_id)).events > opened.journal.place.seq:
                await self.drop(held.run_id)
                opened = await self._open(held)
            try:
                return await do(opened)
            except JournalError as error:
                await self.drop(held.run_id)  # what could not be written once is never written by that one
                if not isinstance(error, LeaseLost):
                    raise
        raise _OpenedElsewhere(f"run {held.run_id} was opened elsewhere by the same claim, or written to by others")

    async def drop(self, run_id: str) -> None:
        """Let go of a run that this process holds, for whoever takes it up next."""
        _, opened = self.held.pop(run_id, (None, None))
        if opened is not None:
            with suppress(JournalError):  # others have it
                await opened.journal.release()

    async def _make(self, asked: Asked) -> Made:
        """Make one move with the hands of its agent; it appends nothing."""
        move, held = payloads.decode_move(asked.move), asked.held
        async with _beating():  # also while servers of tools are slow: what counts as lost is not to begin after that
            state = await self._state(held, asked.seq)
            making = asyncio.create_task(self._carry_out(move, held, state))
            owner, call = payloads.call_of(move, state)
            if call is None or call.spec is None or call.spec.delegates or durability(move, state) != "synced":
                return await making
            return await self._waited(asked, making, call_key(owner, call))

    async def _carry_out(self, move: WorldMove, held: Held, state: State) -> Made:
        shelf = _Shelved(self._store, held.run_id)
        hands = await self._agents[held.agent].hands(cast("RunJournal", shelf), state)
        async with hands.services:
            events = await hands.do(move, state)
        hands.announced(events)
        piece = payloads.piece_of(events, seq=0, hash="", at=time.time())
        return Made(piece.bodies, piece.at, payloads.digest_of_move(move))

    async def _waited(self, asked: Asked, making: asyncio.Task[Made], key: str) -> Made:
        """What comes of a call that must not be made twice, once its code has ended, whoever has given it up before.

        Where its workflow was ended, the next one of the run waits for it. Source: docs/decisions/30.
        """
        while not making.done() or is_running(key):
            try:
                await (asyncio.sleep(_BEAT_S) if making.done() else asyncio.wait((making,), timeout=_BEAT_S))
            except asyncio.CancelledError:
                if _why_cancelled().cancel_requested:
                    making.cancel()
            if _why_cancelled().not_found:
                await _pass_on(asked, None)
        made = making.result()
        for _ in range(_MOST_TRIES if _why_cancelled().not_found else 0):
            if await _pass_on(asked, made):
                break
            await asyncio.sleep(_BEAT_S)
        return made

    async def _open(self, held: Held) -> Opened:
        """The run, held here by that claim. Raises `LeaseLost` once others have it."""
        was, opened = self.held.get(held.run_id, (None, None))
        if opened is not None and was == held:
            return opened
        await self.drop(held.run_id)
        journal = await self._store.open(held.run_id, fence=held.fence)
        opened = Opened(journal, self._store)
        self.held[held.run_id] = held, opened
        journal.listen(partial(self._tell, held.run_id))
        return opened

    async def _piece(self, opened: Opened, since: int) -> Piece:
        journal = opened.journal
        records, wrong = await self._store.read_recorded(journal.run_id, since, _PIECE)
        if wrong:
            raise JournalCorrupt(journal.run_id, since + len(records), wrong)
        seq = since + len(records)
        last = records[-1].hash if records else journal.place.hash.hex()
        at, has_more = records[-1].at if records else 0.0, seq < journal.place.seq
        return payloads.piece_of([one.event for one in records], seq=seq, hash=last, at=at, has_more=has_more)

    async def _state(self, held: Held, seq: int) -> State:
        """What the first `seq` records tell. Raises `JournalError` where there are fewer."""
        state = STATES.get(held, seq)
        if state.seen < seq:
            records, _ = await self._store.read_recorded(held.run_id, state.seen, seq - state.seen)
            if (there := state.seen + len(records)) < seq:
                raise JournalError(f"run {held.run_id} has {there} records, not {seq}; it is tried again")
            STATES.put(held, state := fold((record.event for record in records), state))
        return state
