"""The world of one run, as all its hands share it: models, tools, journal, services, clock, and whoever watches."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from surefoot.core.state import State
from surefoot.runtime.branches import log_tree
from surefoot.runtime.cast import Cast
from surefoot.runtime.services import RunServices
from surefoot.runtime.task_plan import log_step
from surefoot.types.events import Event, ModelTraitLearnt
from surefoot.types.messages import Signal
from surefoot.types.moves import WorldMove
from surefoot.types.ports import Encoder, RunJournal, Tool
from surefoot.types.reflection import Evaluator

if TYPE_CHECKING:
    from surefoot.knowledge.bridge import KnowledgeBridge
    from surefoot.runtime.trajectories import Trajectories

_LOG = logging.getLogger("surefoot")

Watch = Callable[[Event | Signal], None]
"""Somebody who looks on: gets every event once it is appended, and the signals between them."""


@dataclass(frozen=True, slots=True)
class World:
    """What a run touches. `earlier_s` is the time for which it was driven before, `since` when it was taken up now."""

    cast: Cast
    tools: Mapping[str, Tool]
    journal: RunJournal
    services: RunServices
    watch: Watch | None = None
    stream: bool = False
    earlier_s: float = 0.0
    knowledge: KnowledgeBridge | None = None
    paths: Trajectories | None = None
    encoder: Encoder | None = None
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict[str, Evaluator])
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    since: float = field(default_factory=time.monotonic)

    @property
    def elapsed_s(self) -> float:
        """For how long the run has been driven, in seconds."""
        return round(self.earlier_s + time.monotonic() - self.since, 6)

    async def do(self, move: WorldMove, state: State) -> Sequence[Event]:
        """Make one move; `hands.LiveHands` knows how."""
        raise TypeError(f"{type(self).__name__} has no hands for {type(move).__name__} in run {state.run_id}")

    def announced(self, events: Sequence[Event]) -> None:
        """Pass events on to whoever watches, and remember what was learnt about the model."""
        for event in events:
            if self.watch is not None:
                self.tell(event)
            log_step(event)
            log_tree(event)
            if isinstance(event, ModelTraitLearnt):
                self.cast.learn(event, self.journal.run_id)

    def tell(self, item: Event | Signal) -> None:
        """Show something to whoever watches. One who fails at it is logged and cannot harm the run."""
        if self.watch is None:
            return
        try:
            self.watch(item)
        except Exception:  # noqa: BLE001  # it is the caller's code, and it only looks on
            _LOG.exception("whoever watches the run failed at a %s", type(item).__name__)
