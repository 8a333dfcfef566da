"""The workflow of one run: it folds, asks `next_moves`, has activities make the moves, and puts on record what came.

It is `runtime/drive.py` and `under_way.py` once more, where time, tasks and records are Temporal's: what announces a
move is on record before its activity is scheduled, and each move that has ended is taken in the order of the history.
The state comes from the journal and stays in memory. A replay of the history computes the same hashes, or it has
`Diverged`: Temporal compares the kinds of commands alone. Source: spec/scale.md, section 6.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NoReturn, TypeVar, cast

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, is_cancelled_exception  # noqa: A004

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import announce, durability, next_moves, standing
from surefoot.core.state.state import EMPTY, State
from surefoot.engines.temporal.activities import LOST, MOVED, STATES, Activities
from surefoot.engines.temporal.payloads import (
    WORKFLOW,
    Asked,
    Batch,
    Diverged,
    Given,
    Held,
    Made,
    Piece,
    digest_of_move,
    encode_move,
    events_in,
    piece_of,
)
from surefoot.journal.codec import rows_of
from surefoot.types import moves
from surefoot.types.errors import LeaseLost
from surefoot.types.events import Event
from surefoot.types.moves import Act, Move, Think, Wait, Within, WorldMove
from surefoot.types.ports import NO_RECORDS, Durability, Place

T = TypeVar("T")

_LOCAL = {
    "start_to_close_timeout": timedelta(seconds=60),
    "retry_policy": RetryPolicy(
        initial_interval=timedelta(milliseconds=200),
        maximum_interval=timedelta(seconds=5),
        non_retryable_error_types=["LeaseLost", "JournalCorrupt", "JournalTooNew", "UsageError", "ConfigError"],
    ),
}
"""The journal may be away for a while. What only a person can mend is not tried again."""

_BEAT = timedelta(seconds=10)
"""After so long without a sign of life a worker is taken for lost."""

_LONGEST = timedelta(days=30)
_AFTER_LIMIT = timedelta(seconds=10)
_ANEW = RetryPolicy(maximum_attempts=3)
_ONCE = RetryPolicy(maximum_attempts=1)
_MOST_FAILURES = 3


def kind_of(move: WorldMove) -> str:
    """What the activity of a move is called."""
    match move:
        case Within(move=inner):
            return kind_of(inner)
        case Think() | Act() | moves.Probe():
            return type(move).__name__.lower()
        case moves.Find() | moves.Hydrate() | moves.ReadConventions():
            return "prepare"
        case moves.Ask():
            return "stage"
        case moves.Shortlist() | Wait() | moves.Evaluate():
            return "plan"


@workflow.defn(name=WORKFLOW)
class RunWorkflow:
    """One run, from where its journal stands to its end. It stays open while the run waits for a person.

    `decide` is the core's own function.
    """

    decide = staticmethod(next_moves)

    def __init__(self) -> None:
        self._fence = self._failures = 0
        self._has_words = self._are_held_back = False
        self._state, self._place, self._at = EMPTY, Place(0, b""), 0.0
        self._making: dict[WorldMove, asyncio.Task[None]] = {}
        self._effects: set[WorldMove] = set()
        self._ended: deque[tuple[WorldMove, str, Made | None]] = deque()
        self._pending: list[Event] = []

    @workflow.signal
    def claimed(self, fence: int) -> None:
        """The run was claimed for this workflow, anew where it was before."""
        self._fence = max(self._fence, fence)

    @workflow.signal
    def word(self) -> None:
        """Something was said to the run: look into its inbox."""
        self._has_words = True

    @workflow.query
    def summary(self) -> dict[str, Any]:  # Any: JSON
        """How the run stands: its status, what it waits for, its records, the moves under way, and the claim."""
        ending = self._state.ending
        return {
            "status": "running" if ending is None else ending.kind,
            "standing": "" if self._making else standing(self._state),
            "records": self._place.seq,
            "under_way": [encode_move(move) for move in self._making],
            "fence": self._fence,
        }

    @workflow.run
    async def run(self, given: Given) -> str:
        """Drive the run; its status when it has ended."""
        self._given = given
        self._fence = max(self._fence, given.held.fence)
        try:
            return await (self._in_stretches() if given.size == "run" else self._by_moves())
        except ActivityError as error:  # only a person can mend it
            if is_cancelled_exception(error):  # the workflow ends, not the run
                raise
            why = str(error.cause or error)
            await self._local(Activities.rest, self._held, why)
            raise ApplicationError(f"the run was set aside: {why}", non_retryable=True) from error

    @property
    def _held(self) -> Held:
        return replace(self._given.held, fence=self._fence)

    @property
    def _is_full(self) -> bool:
        """Whether the history is long enough to begin anew."""
        info = workflow.info()
        is_long = info.is_continue_as_new_suggested() or info.get_current_history_length() > self._given.most_events
        return is_long or info.is_target_worker_deployment_version_changed()

    async def _in_stretches(self) -> str:
        while True:
            held, status = self._held, LOST
            try:
                status = await workflow.execute_activity_method(
                    Activities.drive,
                    held,
                    start_to_close_timeout=_LONGEST,
                    heartbeat_timeout=_BEAT,
                    retry_policy=_ANEW,
                    cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                )
            except ActivityError as error:
                if not isinstance(error.cause, TimeoutError):
                    raise
                continue  # a worker was lost
            if status not in (LOST, "paused", "ready", "interrupted") and held == self._held:
                return status
            await self._claimed_since(held)
            if self._is_full:
                self._anew()

    async def _by_moves(self) -> str:
        await self._take_up()
        while True:
            await self._begin()
            if self._state.ending is not None and self._making:
                await self._cut_off()
            if self._making:
                await workflow.wait_condition(lambda: bool(self._ended) or self._has_words)
                await (self._take() if self._ended else self._hear())
            elif self._has_words and self._state.ending is None:
                await self._hear()
            elif self._is_full and self._state.ending is None:
                self._anew()
            elif not self.decide(self._state):
                held = self._held
                await self._local(Activities.rest, held, "")
                if self._state.ending is not None and held == self._held:
                    return self._state.ending.kind
                await self._claimed_since(held)
                await self._take_up()

    async def _take_up(self) -> None:
        """Take the run up by the newest claim, with what it was given since."""
        is_taken, has_more = False, True
        while has_more:
            held = self._held
            try:
                piece = await self._local(Activities.load, held, self._place.seq, is_taken)
            except ActivityError as error:
                if not _is(error, LeaseLost.__name__):
                    raise
                await self._claimed_since(held)
                is_taken = False
                continue
            self._has_words, is_taken, has_more = False, True, piece.has_more
            self._add(piece)

    async def _begin(self) -> None:
        """Begin all that can begin, once what announces it is on record."""
        begins: list[tuple[WorldMove, State]] = []
        safety: Durability = "written"
        under_way: frozenset[Move] = frozenset(self._making)
        while not self._is_full and (found := self.decide(self._state, under_way)):
            state = self._state
            self._note([event for move in found for event in announce(move, state)])
            for move in found:
                if isinstance(move, WorldMove):
                    under_way |= {move}
                    begins.append((move, self._state))
                    if durability(move, state) == "synced":
                        safety = "synced"
                        self._effects.add(move)
        await self._flush(safety)
        for move, state in begins:
            self._making[move] = asyncio.create_task(self._make(move, state))

    async def _take(self) -> None:
        """Take in what came of the first move that has ended. Nothing means that nobody knows."""
        move, digest, made = self._ended.popleft()
        del self._making[move]
        self._effects.discard(move)
        if made is not None:
            if made.digest != digest:
                raise Diverged(f"run {self._held.run_id}: an activity has made another move; adopt the run")
            self._at, self._failures = max(self._at, made.at), 0
            self._note(events_in(made.bodies))
        elif self._failures >= _MOST_FAILURES:
            raise self._failed
        if self._are_held_back:
            await self._flush()
            await self._hear()

    async def _hear(self) -> None:
        """Put on record what was said. While a model is asked, what the user adds waits for the next request."""
        making = [one.move if isinstance(one, Within) else one for one in self._making]
        thinking = any(isinstance(one, Think) for one in making)
        self._has_words, self._are_held_back = False, thinking
        acting = [one.call_id for one in making if isinstance(one, Act | moves.Probe)]
        STATES.put(self._held, self._state)
        self._add(await self._written(Activities.hear, self._batch((), "written"), thinking, acting))

    async def _make(self, move: WorldMove, state: State) -> None:
        """Have an activity make a move. What must not be made twice is never tried again."""
        made, inner = None, move.move if isinstance(move, Within) else move
        sent: WorldMove = replace(move, wait_s=0.0) if isinstance(move, Wait) else move
        is_effect, limit = move in self._effects, _LONGEST
        owner = state.planning.children[move.step_id] if isinstance(move, Within) and state.planning else state
        spec = call.spec if isinstance(inner, Act) and (call := owner.call(inner.call_id)) is not None else None
        if spec is not None and not spec.delegates:
            seconds = (spec.timeout_s or owner.config.tool_timeout_s) + owner.config.tool_grace_s
            limit = timedelta(seconds=seconds) + _AFTER_LIMIT
        try:
            if isinstance(move, Wait):
                await workflow.sleep(move.wait_s)
            STATES.put(self._held, state)
            made = await workflow.execute_activity(
                kind_of(move),
                Asked(self._held, state.seen, encode_move(sent)),
                result_type=Made,
                start_to_close_timeout=limit,
                heartbeat_timeout=_BEAT,
                retry_policy=_ONCE if is_effect else _ANEW,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
                if is_effect
                else workflow.ActivityCancellationType.TRY_CANCEL,
                summary=getattr(inner, "call_id", ""),
            )
        except ActivityError as error:
            if isinstance(error.cause, ApplicationError):  # a hand has failed, which is a mistake of ours
                self._failures, self._failed = self._failures + 1, error
        self._ended.append((move, digest_of_move(sent), made))

    async def _cut_off(self) -> None:
        """The run is over: what comes of moves under way is nobody's any more."""
        for task in self._making.values():
            task.cancel()
        await asyncio.gather(*self._making.values(), return_exceptions=True)
        self._making.clear()
        self._effects.clear()
        self._ended.clear()

    def _note(self, events: Sequence[Event]) -> None:
        self._pending += events
        self._state = fold(events, self._state)

    def _add(self, piece: Piece) -> None:
        """Go on behind records that are there."""
        self._state = fold(events_in(piece.bodies, piece.tools), self._state)
        self._place, self._at = Place(piece.seq, bytes.fromhex(piece.hash)), max(self._at, piece.at)

    def _batch(self, events: Sequence[Event], durability: Durability) -> Batch:
        bodies = piece_of(events, seq=0, hash="", at=0.0).bodies
        return Batch(self._held, bodies, self._place.seq, self._place.hash.hex(), self._at, durability)

    async def _flush(self, safety: Durability = "written") -> None:
        """Put on record what is pending, and hold the hash that comes of it against our own."""
        events, self._pending = self._pending, []
        if not events:
            return
        given = await self._written(Activities.record, self._batch(events, safety))
        stands = rows_of(0, events, self._at, self._place, NO_RECORDS)[2]
        if given != stands.hash.hex():
            raise Diverged(f"run {self._held.run_id}: record {stands.seq - 1} is another one; adopt the run")
        self._place = stands

    async def _written(self, how: Any, batch: Batch, *more: object) -> Any:  # Any: an activity and what it gives
        """What comes of writing to the journal by the newest claim. Begins anew where others have written."""
        while True:
            held = self._held
            try:
                return await self._local(how, replace(batch, held=held), *more)
            except ActivityError as error:
                if _is(error, MOVED):
                    self._anew()
                if not _is(error, LeaseLost.__name__):
                    raise
            await self._claimed_since(held)

    async def _claimed_since(self, held: Held) -> None:
        await workflow.wait_condition(lambda: self._fence > held.fence)

    async def _local(self, how: Any, *given: object) -> Any:  # Any: an activity and what it gives
        return await workflow.execute_local_activity_method(how, args=given, **cast("Any", _LOCAL))

    def _anew(self) -> NoReturn:
        """Begin anew with the same run, from its journal."""
        upgraded = workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE
        workflow.continue_as_new(replace(self._given, held=self._held), initial_versioning_behavior=upgraded)


def _is(error: ActivityError, kind: str) -> bool:
    return isinstance(error.cause, ApplicationError) and error.cause.type == kind
