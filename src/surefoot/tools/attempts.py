"""The calls of one sync function that still run in threads, by the key of the call.

A thread cannot be stopped: when its call ran out of time or was cancelled it goes on, and may take effect much later.
Whoever asks about that call, or makes it again, is given the end of the first attempt. A second one beside it could pay
twice, and a probe asked meanwhile would say "not done" of something that is about to be done.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from surefoot.tools.calling import begun, value_of


class Attempts:
    """Which calls of one function are under way in a thread. Costs about a microsecond a call."""

    def __init__(self) -> None:
        # With the process, because after a fork the child knows the entries but has none of the threads.
        self._running: dict[tuple[int, str], Future[object]] = {}

    def running(self, key: str) -> Future[object] | None:
        """The attempt at the call of that key that has not ended yet."""
        return self._running.get((os.getpid(), key))

    async def made(self, key: str, fn: Callable[..., object], keywords: Mapping[str, object]) -> object:
        """What `fn(**keywords)` gives, run in a thread under that key; raises what it raises.

        A call that is cancelled before its thread begins does not run. Later its thread ends by itself.
        """
        attempt, place = begun(fn, keywords), (os.getpid(), key)
        self._running[place] = attempt
        attempt.add_done_callback(partial(self._ended, place))
        return await value_of(await asyncio.wrap_future(attempt))

    async def awaited(self, attempt: Future[object]) -> object:
        """What an attempt that somebody else began gives in the end; raises what it raises.

        Raises `NotBegun` when it was given up before it ran. Being cancelled here leaves the attempt as it is.
        """
        ended = asyncio.wrap_future(attempt)
        await asyncio.wait((ended,))
        if ended.cancelled():
            raise NotBegun
        return await value_of(ended.result())

    def _ended(self, place: tuple[int, str], attempt: Future[object]) -> None:
        if self._running.get(place) is attempt:
            del self._running[place]


class NotBegun(Exception):
    """The attempt that was waited for never ran."""
