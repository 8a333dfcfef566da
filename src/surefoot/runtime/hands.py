"""The hands of one run: ask its model, run its tools, ask their probes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from surefoot.core.state import State
from surefoot.runtime.act import act, probe
from surefoot.runtime.think import think
from surefoot.runtime.traits import LearntTraits
from surefoot.types.events import Event, ModelTraitLearnt
from surefoot.types.messages import ModelSettings, ModelSignal
from surefoot.types.moves import Act, Probe, Think, WorldMove
from surefoot.types.ports import Model, RunJournal, Tool

_LOG = logging.getLogger("surefoot")

Watch = Callable[[Event | ModelSignal], None]
"""Somebody who looks on: gets every event once it is appended, and the signals between them."""


@dataclass(slots=True)
class LiveHands:
    """Hands that touch the real world. `earlier_s` is the time for which the run was driven before."""

    model: Model
    tools: Mapping[str, Tool]
    journal: RunJournal
    settings: ModelSettings = ModelSettings()
    watch: Watch | None = None
    stream: bool = False
    clock: Callable[[], float] = time.monotonic
    earlier_s: float = 0.0
    traits: LearntTraits | None = None
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
            case _:
                assert_never(move)

    def announced(self, events: Sequence[Event]) -> None:
        """Pass events on to whoever watches, and remember what was learnt about the model."""
        for event in events:
            if self.watch is not None:
                self.tell(event)
            if self.traits is not None and isinstance(event, ModelTraitLearnt):
                self.traits.learn(event)

    def tell(self, item: Event | ModelSignal) -> None:
        """Show something to whoever watches. One who fails at it is logged and cannot harm the run."""
        if self.watch is None:
            return
        try:
            self.watch(item)
        except Exception:  # noqa: BLE001  # it is the caller's code, and it only looks on
            _LOG.exception("whoever watches the run failed at a %s", type(item).__name__)
