"""How many runs of one agent are driven at once; the others wait in the order in which they came.

Thousands of runs that are started together would each do their first work in one turn of the event loop, which stands
still for so long: no timer fires, no reply is read. A run that waits has no record yet.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar

from surefoot.telemetry import figure
from surefoot.types.errors import ConfigError
from surefoot.types.settings import is_whole

MOST_INSIDE = 100
"""How many runs one run carries inside of it at once."""


class _Doors:
    """Places, as many on each event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: dict[asyncio.AbstractEventLoop, tuple[asyncio.Semaphore, asyncio.Lock]] = {}

    def here(self) -> tuple[asyncio.Semaphore, asyncio.Lock]:
        """The free places of this loop, and whose turn it is to take one."""
        loop = asyncio.get_running_loop()
        if loop not in self._of:
            self._of = {each: door for each, door in self._of.items() if not each.is_closed()}
            self._of[loop] = (asyncio.Semaphore(self._most), asyncio.Lock())
        return self._of[loop]


class _Place:
    """The place of one run, from when it is free until the run is left.

    A run inside of a run stands on the outer one's, or both could wait for ever: each place has places of its own.
    """

    def __init__(self, doors: _Doors) -> None:
        self._doors = doors
        self.is_held, self.inside = False, _Doors(MOST_INSIDE)

    async def __aenter__(self) -> None:
        outer = _PLACE.get()
        self._free, turn = (outer.inside if outer is not None and outer.is_held else self._doors).here()
        figure("queued", 1)
        try:
            async with turn:
                await asyncio.sleep(0)  # one run a turn of the loop, also while there are places for all
                await self._free.acquire()
        finally:
            figure("queued", -1)
        self.is_held, self._token = True, _PLACE.set(self)

    async def __aexit__(self, *_: object) -> None:
        self.is_held = False  # what a tool has left behind is inside of no run any more
        _PLACE.reset(self._token)
        self._free.release()


_PLACE: ContextVar[_Place | None] = ContextVar("surefoot_place", default=None)
"""The place of the run in which this code runs: of its tools, and of the runs that they start."""


class Admission:
    """The places for the runs of one agent, as many on each event loop. Raises `ConfigError` for less than one."""

    def __init__(self, most: int) -> None:
        if not is_whole(most, 1):
            raise ConfigError("max_concurrent_runs", most, "give a whole number of at least 1")
        self._doors = _Doors(most)

    def place(self, *, drives: bool = True) -> AbstractAsyncContextManager[None]:
        """Wait for a place, and hold it; a run that is left to others needs none."""
        return _Place(self._doors) if drives else nullcontext()
