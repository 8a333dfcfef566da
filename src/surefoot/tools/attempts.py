"""The calls that still run in this process, in threads or in tasks that were left, by function and key of the call.

A thread cannot be stopped, nor can a task that swallows its cancellation: when its call ran out of time or was
cancelled it goes on, and may take effect much later. Whoever asks about that call, or makes it again, is given the end
of the first attempt. A second one beside it could pay twice, and a probe asked meanwhile would say "not done" of
something that is about to be done.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from functools import partial

from surefoot.tools.call import begun, value_of

PROBE_OF = "probe of "
"""How the name of a function begins that is a probe."""

_RUNNING: dict[tuple[int, str, str], Future[object]] = {}
"""One book for all agents. With the process, because after a fork the child knows the entries but has no threads."""


def is_running(key: str) -> bool:
    """Whether a call of that key still runs in this process; its probe does not count."""
    now = [(function, one) for process, function, one in tuple(_RUNNING) if process == os.getpid()]
    return any(one == key and not function.startswith(PROBE_OF) and _running(function, key) for function, one in now)


def goes_on(key: str, task: asyncio.Task[object]) -> None:
    """Book a task that runs on although the call of that key was given up. What it gives is the call's result."""
    attempt, place = _Left(task.get_loop()), (os.getpid(), _ANY, key)
    attempt.set_running_or_notify_cancel()
    _RUNNING[place] = attempt
    attempt.add_done_callback(partial(_ended, place))
    task.add_done_callback(attempt.follow)


async def after_left(key: str, work: Callable[[], Awaitable[object]]) -> object:
    """What a task gives in the end that was left with the call of that key; without one, what `work` gives."""
    if _RUNNING and (attempt := _running(_ANY, key)) is not None:
        with contextlib.suppress(NotBegun):
            return await awaited(attempt)
    return await work()


class _Left(Future[object]):
    """The end of a task that was left. It never comes where the loop is closed before."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop

    def follow(self, task: asyncio.Task[object]) -> None:
        if task.cancelled() or task.exception() is not None:
            self.set_exception(NotBegun())
        else:
            self.set_result(task.result())


_ANY = ""
"""In place of the name of a function: tools of all kinds may leave a task."""


def _running(function: str, key: str) -> Future[object] | None:
    place = (os.getpid(), function, key)
    attempt = _RUNNING.get(place)
    if isinstance(attempt, _Left) and attempt.loop.is_closed():
        return _ended(place, attempt)
    return attempt


async def awaited(attempt: Future[object]) -> object:
    """What an attempt that somebody else began gives in the end; raises what it raises.

    Raises `NotBegun` when it was given up before it ran. Being cancelled here leaves the attempt as it is.
    """
    ended = asyncio.wrap_future(attempt)
    await asyncio.wait((ended,))
    if ended.cancelled():
        raise NotBegun
    return await value_of(ended.result())


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


def _ended(place: tuple[int, str, str], attempt: Future[object]) -> None:
    if _RUNNING.get(place) is attempt:
        del _RUNNING[place]


class NotBegun(Exception):
    """The attempt that was waited for gave nothing: it never ran, or let itself be cancelled in the end."""
