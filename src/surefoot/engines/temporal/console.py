"""What Temporal's console sees of a run, and what may be said to it there."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError

from surefoot.core.loop.moves import standing
from surefoot.core.plan.accept import waiting
from surefoot.core.state.state import State
from surefoot.engines.temporal.activities import Activities
from surefoot.engines.temporal.payloads import Answer, Given, Held, encode_move
from surefoot.types.errors import JournalUnavailable
from surefoot.types.moves import WorldMove
from surefoot.types.ports import Place

AGENT = SearchAttributeKey.for_keyword("SurefootAgent")
STATUS = SearchAttributeKey.for_keyword("SurefootStatus")
LABELS = SearchAttributeKey.for_keyword_list("SurefootLabels")

ANEW = RetryPolicy(maximum_attempts=3)
AWAY = timedelta(seconds=5)
"""How long to wait for a journal that is away."""


def is_away(error: ActivityError) -> bool:
    """Whether an activity failed because the journal cannot be reached: a run waits for it as long as it takes."""
    return isinstance(error.cause, ApplicationError) and error.cause.type == JournalUnavailable.__name__


class Console:
    """The workflow of a run, as far as people and programs beside it have to do with it."""

    _given: Given
    _fence: int
    _state: State
    _place: Place
    _making: dict[WorldMove, asyncio.Task[None]]

    @property
    def _claim(self) -> Held:
        return replace(self._given.held, fence=self._fence)

    @workflow.update(unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)
    async def approve(self, answer: Answer) -> str:
        """Allow a call that waits for a person. "applied", or it fails with what came of the answer as its type."""
        return await self._answered(answer, is_yes=True)

    @workflow.update(unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)
    async def refuse(self, answer: Answer) -> str:
        """Refuse a call that waits for a person, as `approve` allows it."""
        return await self._answered(answer, is_yes=False)

    @approve.validator
    @refuse.validator
    def check_answer(self, answer: Answer) -> None:
        is_known = self._given.size == "move"  # by stretches, only the journal knows
        if is_known and answer.call_id not in {call.id for call in waiting(self._state)}:
            told = f"run {self._claim.run_id}: call {answer.call_id!r} does not wait for a person"
            raise ApplicationError(told, type="not_waiting")

    async def _answered(self, answer: Answer, *, is_yes: bool) -> str:
        outcome, detail = await workflow.execute_activity_method(
            Activities.answer,
            args=[self._claim.run_id, answer, is_yes, workflow.uuid4().hex],
            start_to_close_timeout=timedelta(seconds=60),
            retry_policy=ANEW,
        )
        if outcome != "applied":
            raise ApplicationError(detail or "the run has not heard it yet", type=outcome or "pending")
        return outcome

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

    def _mark(self, status: str) -> None:
        """Have the console list the run by its status, where the namespace knows that search attribute."""
        if workflow.info().typed_search_attributes.get(STATUS) not in (None, status):
            workflow.upsert_search_attributes([STATUS.value_set(status)])  # pyright: ignore[reportUnknownMemberType]  # its
