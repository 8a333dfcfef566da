"""Await foreign code for a limited time, and leave it behind where it does not let itself be stopped.

The code runs in a task of its own, because one that swallows its cancellation would hold whoever awaits it for ever:
the run, and whoever wants to stop that. Whatever is raised inside stays inside, since a task that ends with
`KeyboardInterrupt` or `SystemExit` takes the whole loop along. The loop does not know that task: `asyncio.run` cancels
and awaits all that it knows before it ends, and here whoever awaits the work does so, for a limited time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from surefoot.tools.call import Raised, goes_on, is_stopping

_LOG = logging.getLogger("surefoot")


class Late(TimeoutError):
    """No result in time. `is_left`: the code still runs, and nobody waits for it any more."""

    def __init__(self, *, is_left: bool) -> None:
        super().__init__()
        self.is_left = is_left


async def within(
    work: Callable[[], Awaitable[object]], limit_s: float, grace_s: float, name: str, key: str = ""
) -> object:
    """What the work gives; raises what it raises, and `Late` when it takes longer than `limit_s`.

    It is cancelled then, as when this task is, and has `grace_s` seconds to tidy up; a result that comes in that time
    counts. One that had ended when this task was cancelled is given all the same. Cancelled once more, this task leaves
    the work at once. What is left counts as an attempt at the call of that `key`. `name` is for the log.
    """
    loop = asyncio.get_running_loop()
    made = _Made(loop.create_future())
    task = asyncio.Task(made.by(work), loop=loop)
    asyncio._unregister_task(task)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # told in "Extending asyncio"
    timer = loop.call_later(limit_s, made.stop, task, grace_s)
    try:
        outcome = await made.ended
    except asyncio.CancelledError:
        if made.outcome is _RUNNING:  # this task is cancelled, and the work with it
            made.ended = loop.create_future()
            made.stop(task, grace_s)
            try:
                await made.ended
            finally:
                if made.outcome in (_RUNNING, _LEFT):
                    _leave(task, name, key)
            raise
        outcome = made.outcome
    finally:
        timer.cancel()
        if task.done() and not task.cancelled():
            task.exception()  # an interrupt inside of it has left the loop already; nobody has to be told again
    if outcome is _LEFT:
        _leave(task, name, key)
        raise Late(is_left=True)
    if outcome is _STOPPED:
        raise Late(is_left=False) if made.is_stopped else asyncio.CancelledError
    if isinstance(outcome, Raised):
        raise outcome.error
    return outcome


_RUNNING, _LEFT, _STOPPED = object(), object(), object()
"""It has not ended; it did not end in its grace either; it let itself be cancelled."""


class _Made:
    """How some work ends: known in the same turn of the loop, so that no result waits longer than it has to."""

    __slots__ = ("ended", "is_stopped", "outcome")

    def __init__(self, ended: asyncio.Future[object]) -> None:
        self.ended = ended
        self.outcome: object = _RUNNING
        self.is_stopped = False

    async def by(self, work: Callable[[], Awaitable[object]]) -> object:
        outcome: object = _STOPPED
        try:
            outcome = await work()
        except BaseException as error:  # it goes on as a value
            if is_stopping(error):
                raise
            outcome = Raised(error)
        finally:
            self.over(outcome)
        return outcome

    def stop(self, task: asyncio.Task[object], grace_s: float) -> None:
        self.is_stopped = True
        task.cancel()
        task.get_loop().call_later(grace_s, self.over, _LEFT)

    def over(self, outcome: object) -> None:
        self.outcome = outcome
        if not self.ended.done():
            self.ended.set_result(outcome)


def _leave(task: asyncio.Task[object], name: str, key: str) -> None:
    _LOG.warning("%s did not stop when it was cancelled: it is left running", name)
    task._log_destroy_pending = False  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage, reportUnknownMemberType]  # it may outlive its loop
    if key:
        goes_on(key, task)
