"""The workflow of one run: it folds, asks `next_moves`, has activities make the moves, and puts on record what came.

It is `runtime/drive.py` and `under_way.py` once more, where time, tasks and records are Temporal's: what announces a
move is on record before its activity is scheduled, and each move that has ended is taken in the order of the history.
The state comes from the journal and stays in memory. A replay of the history computes the same hashes, or it has
`Diverged`: Temporal compares the kinds of commands alone. Source: spec/scale.md, section 6.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import timedelta
from typing import Any, NoReturn, TypeVar, cast

from temporalio import exceptions, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, is_cancelled_exception

from surefoot.core.loop.fold import fold
from surefoot.core.loop.moves import announce, durability, next_moves
from surefoot.core.plan.child import open_calls
from surefoot.core.state.state import EMPTY, State
from surefoot.engines.temporal import payloads
from surefoot.engines.temporal.activities import LOST, MOVED, STATES, Activities
from surefoot.engines.temporal.console import ANEW, AWAY, Console, is_away
from surefoot.engines.temporal.payloads import Asked, Batch, Diverged, Given, Held, Made, Piece
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


class _Moved(Exception):
    """Others have written to the run."""


@workflow.defn(name=payloads.WORKFLOW)
class RunWorkflow(Console):
    """One run, from where its journal stands to its end. It stays open while the run waits for a person."""

    decide = staticmethod(next_moves)

    @workflow.init
    def __init__(self, given: Given) -> None:
        self._given, self._fence, self._failures = given, given.held.fence, 0
        self._has_words = self._are_held_back = False
        self._state, self._place, self._at = EMPTY, Place(0, b""), 0.0
        self._making: dict[WorldMove, asyncio.Task[None]] = {}
        self._effects: set[WorldMove] = set()
        self._ended: deque[tuple[WorldMove, str, Made | None]] = deque()
        self._taken: list[tuple[asyncio.Task[None], tuple[WorldMove, str, Made]]] = []  # not on record yet
        self._left: dict[WorldMove, Made | None] = {}
        self._failed: ActivityError | None = None
        self._pending: list[Event] = []

    @workflow.signal
    def claimed(self, fence: int) -> None:
        """The run was claimed for this workflow, anew where it was before."""
        self._fence = max(self._fence, fence)

    @workflow.signal
    def word(self) -> None:
        """Something was said to the run: look into its inbox."""
        self._has_words = True

    @workflow.signal
    def left(self, asked: Asked, made: Made | None) -> None:
        """What came of a move that an earlier workflow of this run has begun; None while a worker still makes it."""
        self._left[payloads.decode_move(asked.move)] = made

    @workflow.run
    async def run(self, given: Given) -> str:
        """Drive the run; its status when it has ended."""
        try:
            status = await (self._in_stretches() if given.size == "run" else self._by_moves())
        except FailureError as error:  # only a person can mend it
            if is_cancelled_exception(error):  # the workflow ends, not the run
                raise
            why = str(error.cause or error)
            await self._local(Activities.rest, self._claim, why)
            raise ApplicationError(f"the run was set aside: {why}", non_retryable=True) from error
        await workflow.wait_condition(workflow.all_handlers_finished)
        return status

    @property
    def _is_full(self) -> bool:
        """Whether the history is long enough to begin anew."""
        info = workflow.info()
        is_long = info.is_continue_as_new_suggested() or info.get_current_history_length() > self._given.most_events
        return is_long or info.is_target_worker_deployment_version_changed()

    async def _in_stretches(self) -> str:
        while True:
            held, status = self._claim, LOST
            self._mark("running")
            try:
                status = await workflow.execute_activity_method(
                    Activities.drive,
                    held,
                    start_to_close_timeout=_LONGEST,
                    heartbeat_timeout=_BEAT,
                    retry_policy=_ONCE,  # whoever drives it again does so with a claim of their own
                    cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                )
            except ActivityError as error:
                if isinstance(error.cause, exceptions.TimeoutError):
                    continue  # a worker was lost
                self._failures += not is_away(error)
                if not isinstance(error.cause, ApplicationError) or self._failures >= _MOST_FAILURES:
                    raise
                await (workflow.sleep(AWAY) if is_away(error) else self._claimed_since(held))
                continue
            self._failures = 0 if status != LOST else self._failures
            self._mark("running" if status == LOST else status)
            if status not in (LOST, "paused", "ready", "interrupted") and held == self._claim:
                return status
            await self._claimed_since(held)
            if self._is_full:
                self._anew()

    async def _by_moves(self) -> str:
        await self._take_up()
        if workflow.info().continued_run_id is None:
            self._inherit()
        while True:
            try:
                if status := await self._go_on():
                    return status
            except _Moved:
                await self._reload()

    async def _go_on(self) -> str:
        """Do the next thing; the status of a run that is over then."""
        await self._begin()
        ending = self._state.ending
        if ending is not None and self._making:
            await self._cut_off()
        if self._making:
            await workflow.wait_condition(lambda: bool(self._ended) or self._has_words)
            await (self._take() if self._ended else self._hear())
        elif self._failed is not None:
            raise self._failed
        elif self._has_words and ending is None:
            await self._hear()
        elif self._is_full and ending is None:
            self._anew()
        elif not self.decide(self._state):
            held = self._claim
            await self._local(Activities.rest, held, "")
            self._mark("paused" if ending is None else ending.kind)
            if ending is not None and held == self._claim:
                return ending.kind
            await self._claimed_since(held)
            await self._take_up()
        return ""

    def _inherit(self) -> None:
        """Wait for calls of an earlier workflow that must not be made twice: a worker may still make them."""
        for owner, call in open_calls(self._state):
            if call.attempts and not call.doubt and not call.may_run_again:
                act = Act(call.id)
                move = Within(owner.step_id, owner.attempt, act) if owner.step_id else act
                self._effects.add(move)
                self._making[move] = asyncio.create_task(self._inherited(move))

    async def _inherited(self, move: WorldMove) -> None:
        made, is_made = None, True
        while made is None and is_made:
            try:
                await workflow.wait_condition(lambda: move in self._left, timeout=_BEAT)
                made = self._left.pop(move)
            except TimeoutError:  # no worker says that it makes it
                is_made = False
        self._ended.append((move, payloads.digest_of_move(move), made))

    async def _reload(self) -> None:
        """Go on from what others have written. Calls that must not be made twice stay under way, with their results."""
        for task, one in reversed(self._taken):
            self._making[one[0]] = task
            self._effects.add(one[0])
            self._ended.appendleft(one)
        self._taken = []
        await self._cut_off(frozenset(self._effects))
        self._state, self._place, self._pending = EMPTY, Place(0, b""), []
        await self._take_up(is_taken=True)
        self._has_words = True

    async def _take_up(self, *, is_taken: bool = False) -> None:
        """Take the run up by the newest claim, with what it was given since."""
        has_more = True
        self._mark("running")
        while has_more:
            held = self._claim
            try:
                piece = await self._local(Activities.load, held, self._place.seq, is_taken)
            except ApplicationError as error:
                if error.type != LeaseLost.__name__:
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
        while self._failed is None and not self._is_full and (found := self.decide(self._state, under_way)):
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
        task, call = self._making.pop(move), payloads.call_of(move, self._state)[1]
        if made is not None:
            if made.digest != digest:
                raise Diverged(f"run {self._claim.run_id}: an activity has made another move; adopt the run")
            if move in self._effects:
                self._taken.append((task, (move, digest, made)))
            self._at, self._failures = max(self._at, made.at), 0
            if call is None or call.is_open:  # others have not said what came of it
                self._note(payloads.events_in(made.bodies))
        self._effects.discard(move)
        if self._are_held_back:
            await self._flush()
            await self._hear()

    async def _hear(self) -> None:
        """Put on record what was said. While a model is asked, what the user adds waits for the next request."""
        making = [one.move if isinstance(one, Within) else one for one in self._making]
        thinking = any(isinstance(one, Think) for one in making)
        self._has_words, self._are_held_back = False, thinking
        acting = [one.call_id for one in making if isinstance(one, Act | moves.Probe)]
        STATES.put(self._claim, self._state)
        self._add(await self._write(Activities.hear, self._batch((), "written"), thinking, acting))

    async def _make(self, move: WorldMove, state: State) -> None:
        """Have an activity make a move. What must not be made twice is never tried again."""
        sent: WorldMove = replace(move, wait_s=0.0) if isinstance(move, Wait) else move
        made, is_effect, limit = None, move in self._effects, _LONGEST
        owner, call = payloads.call_of(move, state)
        spec = call.spec if call is not None else None
        if spec is not None and not spec.delegates and not is_effect:  # that one lasts as long as its code runs
            seconds = (spec.timeout_s or owner.config.tool_timeout_s) + owner.config.tool_grace_s
            limit = timedelta(seconds=seconds) + _AFTER_LIMIT
        try:
            if isinstance(move, Wait):
                await workflow.sleep(move.wait_s)
            STATES.put(self._claim, state)
            made = await workflow.execute_activity(
                kind_of(move),
                Asked(self._claim, state.seen, payloads.encode_move(sent)),
                result_type=Made,
                start_to_close_timeout=limit,
                heartbeat_timeout=_BEAT,
                task_queue=(spec.queue if spec is not None else "") or None,
                retry_policy=_ONCE if is_effect else ANEW,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
                if is_effect
                else workflow.ActivityCancellationType.TRY_CANCEL,
                summary=call.id if call is not None else "",
            )
        except ActivityError as error:
            if isinstance(error.cause, ApplicationError) and not is_away(error):  # a mistake of ours
                self._failures += 1
                if self._failures >= _MOST_FAILURES:
                    self._failed = error
        self._ended.append((move, payloads.digest_of_move(sent), made))

    async def _cut_off(self, kept: Set[WorldMove] = frozenset()) -> None:
        """End what is under way, but for what is kept. What comes of it is nobody's any more."""
        cut = [self._making.pop(move) for move in tuple(self._making) if move not in kept]
        for task in cut:
            task.cancel()
        await asyncio.gather(*cut, return_exceptions=True)
        self._effects &= kept
        self._ended = deque(one for one in self._ended if one[0] in kept)

    def _note(self, events: Sequence[Event]) -> None:
        self._pending += events
        self._state = fold(events, self._state)

    def _add(self, piece: Piece) -> None:
        """Go on behind records that are there."""
        self._state = fold(payloads.events_in(piece.bodies, piece.tools), self._state)
        self._place, self._at = Place(piece.seq, bytes.fromhex(piece.hash)), max(self._at, piece.at)

    def _batch(self, events: Sequence[Event], durability: Durability) -> Batch:
        bodies = payloads.piece_of(events, seq=0, hash="", at=0.0).bodies
        return Batch(self._claim, bodies, self._place.seq, self._place.hash.hex(), self._at, durability)

    async def _flush(self, safety: Durability = "written") -> None:
        """Put on record what is pending, and hold the hash that comes of it against our own."""
        events, self._pending = self._pending, []
        if not events:
            return
        given = await self._write(Activities.record, self._batch(events, safety))
        stands = rows_of(0, events, self._at, self._place, NO_RECORDS)[2]
        if given != stands.hash.hex():
            raise Diverged(f"run {self._claim.run_id}: record {stands.seq - 1} is another one; adopt the run")
        self._place, self._taken = stands, []

    async def _write(self, how: Any, batch: Batch, *more: object) -> Any:  # Any: an activity and what it gives
        """What comes of writing to the journal by the newest claim. Raises `_Moved` where others have written."""
        while True:
            held = self._claim
            try:
                return await self._local(how, replace(batch, held=held), *more)
            except ApplicationError as error:
                if error.type == MOVED:
                    raise _Moved from error
                if error.type != LeaseLost.__name__:
                    raise
            await self._claimed_since(held)

    async def _claimed_since(self, held: Held) -> None:
        await workflow.wait_condition(lambda: self._fence > held.fence)

    async def _local(self, how: Any, *given: object) -> Any:  # Any: an activity and what it gives
        """What a local activity gives; raises its `ApplicationError` as it is."""
        return await workflow.execute_local_activity_method(how, args=given, **cast("Any", _LOCAL))

    def _anew(self) -> NoReturn:
        """Begin anew with the same run, from its journal."""
        upgraded = workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE
        workflow.continue_as_new(replace(self._given, held=self._claim), initial_versioning_behavior=upgraded)
