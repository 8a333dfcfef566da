"""The hands of one run: ask its models, run its tools, ask their probes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from surefoot.core.state import State
from surefoot.runtime.act import act, probe
from surefoot.runtime.ask import ask
from surefoot.runtime.branches import log_tree
from surefoot.runtime.cast import Cast
from surefoot.runtime.services import RunServices
from surefoot.runtime.task_plan import log_step
from surefoot.runtime.think import think
from surefoot.types.events import Event, ModelTraitLearnt
from surefoot.types.messages import Signal
from surefoot.types.moves import (
    Act,
    Ask,
    Evaluate,
    Find,
    Hydrate,
    Probe,
    ReadConventions,
    Shortlist,
    Think,
    Wait,
    Within,
    WorldMove,
)
from surefoot.types.ports import Encoder, RunJournal, Tool
from surefoot.types.reflection import Evaluator

if TYPE_CHECKING:
    from surefoot.knowledge.bridge import KnowledgeBridge
    from surefoot.runtime.trajectories import Trajectories

_LOG = logging.getLogger("surefoot")

Watch = Callable[[Event | Signal], None]
"""Somebody who looks on: gets every event once it is appended, and the signals between them."""


@dataclass(slots=True)
class LiveHands:
    """Hands that touch the real world. `earlier_s` is the time for which the run was driven before."""

    cast: Cast
    tools: Mapping[str, Tool]
    journal: RunJournal
    services: RunServices
    watch: Watch | None = None
    stream: bool = False
    clock: Callable[[], float] = time.monotonic
    earlier_s: float = 0.0
    knowledge: KnowledgeBridge | None = None
    paths: Trajectories | None = None
    encoder: Encoder | None = None
    evaluators: Mapping[str, Evaluator] = field(default_factory=dict[str, Evaluator])
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    _since: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._since = self.clock()

    @property
    def elapsed_s(self) -> float:
        """For how long the run has been driven, in seconds."""
        return round(self.earlier_s + self.clock() - self._since, 6)

    async def do(self, move: WorldMove, state: State) -> Sequence[Event]:
        """Make one move. See `Hands`."""
        match move:
            case Think():
                return await think(self, move, state)
            case Act(call_id):
                return await act(self, call_id, state)
            case Probe(call_id):
                return await probe(self, call_id, state)
            case Find() | Hydrate() | ReadConventions():
                from surefoot.runtime.before import prepare  # noqa: PLC0415  # its patterns take 40 ms to compile

                return await prepare(self, move, state)
            case Ask():
                return await ask(self, move, state)
            case Within() | Shortlist() | Wait() | Evaluate():
                from surefoot.runtime.plan import plan_move  # noqa: PLC0415  # only a run with a plan pays for it

                return await plan_move(self, move, state)
            case _:
                assert_never(move)

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
