"""The calls of sync functions that still run in threads of this process, by function and key of the call.

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

PROBE_OF = "probe of "
"""How the name of a function begins that is a probe."""

_RUNNING: dict[tuple[int, str, str], Future[object]] = {}
"""One book for all agents. With the process, because after a fork the child knows the entries but has no threads."""


def is_running(key: str) -> bool:
    """Whether a call of that key still runs in a thread of this process; its probe does not count."""
    now = [(function, one) for process, function, one in tuple(_RUNNING) if process == os.getpid()]
    return any(one == key and not function.startswith(PROBE_OF) for function, one in now)


class Attempts:
    """Which calls of one function, by its name, are under way in a thread. Costs about a microsecond a call."""

    def __init__(self, function: str) -> None:
        self._function = function

    def running(self, key: str) -> Future[object] | None:
        """The attempt at the call of that key that has not ended yet."""
        return _RUNNING.get((os.getpid(), self._function, key))

    async def made(self, key: str, fn: Callable[..., object], keywords: Mapping[str, object]) -> object:
        """What `fn(**keywords)` gives, run in a thread under that key; raises what it raises.

        A call that is cancelled before its thread begins does not run. Later its thread ends by itself.
        """
        attempt, place = begun(fn, keywords), (os.getpid(), self._function, key)
        _RUNNING[place] = attempt
        attempt.add_done_callback(partial(_ended, place))
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


def _ended(place: tuple[int, str, str], attempt: Future[object]) -> None:
    if _RUNNING.get(place) is attempt:
        del _RUNNING[place]


class NotBegun(Exception):
    """The attempt that was waited for never ran."""
