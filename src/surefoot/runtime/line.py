"""The line from one call to the run that makes it: its progress, its services, and whether it is still wanted."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from surefoot.types.messages import ToolProgress
from surefoot.types.ports import ServiceKey

if TYPE_CHECKING:
    from surefoot.runtime.world import World


class Line:
    """A `CallLine`, open as long as its context lasts. A thread may hold it for longer."""

    __slots__ = ("_is_waiting", "_loop", "_state", "_world")

    def __init__(self, world: World) -> None:
        self._world = world
        self._is_waiting = False
        self._loop = asyncio.get_running_loop()
        self._state: Literal["open", "ended", "cancelled"] = "open"

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        given_up = isinstance(error, TimeoutError | asyncio.CancelledError)
        self._state = "cancelled" if given_up else "ended"

    @property
    def cancelled(self) -> bool:
        return self._state == "cancelled"

    @property
    def ended_waiting(self) -> bool:
        """Whether the call was given up while one of its services was being made."""
        return self._is_waiting

    def tell(self, signal: ToolProgress) -> None:
        """Show it to whoever watches: at once when asked on the loop, as soon as it is free when asked in a thread."""
        if self._world.watch is None or self._state != "open":
            return
        if _running_loop() is self._loop:
            self._world.tell(signal)
            return
        try:
            self._loop.call_soon_threadsafe(self._told, signal)
        except RuntimeError:  # the loop is closed, so nobody watches any more
            return

    async def service(self, key: ServiceKey) -> object:
        self._is_waiting = True
        service = await self._world.services.get(key)
        self._is_waiting = False
        return service

    def _told(self, signal: ToolProgress) -> None:
        if self._state == "open":
            self._world.tell(signal)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
