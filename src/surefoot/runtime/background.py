"""The event loop of synchronous callers, in a thread of its own, and who uses what on a loop.

All threads of a process share that loop, so connections and files outlive a call; what several agents use, such as a
model or a journal, is closed when the last of them has left.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future, wait
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

from surefoot.types.errors import UsageError

T = TypeVar("T")


class Closable(Protocol):
    """What is opened at its first use, and closed with `aclose`; it can be used again afterwards."""

    async def aclose(self) -> None:
        """Close what this event loop uses."""
        ...


@dataclass(slots=True, eq=False)
class _Use:
    thing: Closable
    users: int = 0
    closing: asyncio.Lock = field(default_factory=asyncio.Lock)


_USES: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, _Use]] = WeakKeyDictionary()
_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}
_STARTING = threading.Lock()


async def hold(things: Sequence[Closable]) -> None:
    """Keep things open on this event loop until `leave` is called as often."""
    uses = _USES.setdefault(asyncio.get_running_loop(), {})
    held = [uses.setdefault(id(thing), _Use(thing)) for thing in things]
    for use in held:
        use.users += 1
    try:
        for use in held:
            async with use.closing:  # it may be closed just now
                pass
    except BaseException:
        await leave(things)
        raise


async def leave(things: Sequence[Closable]) -> None:
    """Close what nobody holds any more, the last first. Raises what closing raises, once all is closed."""
    uses = _USES[asyncio.get_running_loop()]

    async def close(use: _Use) -> None:
        async with use.closing:
            if not use.users:
                await use.thing.aclose()
            if not use.users:
                uses.pop(id(use.thing), None)

    async with AsyncExitStack() as unused:
        for use in [uses[id(thing)] for thing in things]:
            use.users -= 1
            if not use.users:
                unused.push_async_callback(close, use)


class Held:
    """Who uses things, which a block keeps open: `with` for the `_sync` forms, `async with` for the others."""

    _used: Sequence[Closable]

    async def aclose(self) -> None:
        """Give back connections and files. It can be used again afterwards."""
        for one in reversed(self._used):
            await one.aclose()

    def __enter__(self) -> Self:
        """Keep connections and files open for the `_sync` forms until the end of the block, which closes them."""
        run_in_background(hold(self._used))
        return self

    def __exit__(self, *_: object) -> None:
        run_in_background(leave(self._used))

    async def __aenter__(self) -> Self:
        """As `with`, for this event loop."""
        await hold(self._used)
        return self

    async def __aexit__(self, *_: object) -> None:
        await leave(self._used)

    def _sync(self, work: Coroutine[object, object, T]) -> T:
        return run_in_background(work, self._used)


def run_in_background(work: Coroutine[object, object, T], things: Sequence[Closable] = ()) -> T:
    """What `work` gives, run on the loop in the background while this thread waits; `things` stay open meanwhile.

    An interrupt of the waiting thread cancels the work and waits for its end; a second one does not wait. Raises
    `UsageError` where an event loop is running, which would stand still.
    """
    with suppress(RuntimeError):  # what `work` raises must not seem to come of it
        asyncio.get_running_loop()
        work.close()
        raise UsageError(
            "an event loop is running here: await `run` or `resume` in place of their `_sync` forms, and use"
            " `async with`"
        )

    async def run_held() -> T:
        await hold(things)
        try:
            return await work
        finally:
            await leave(things)

    return _awaited(run_held())


def _awaited(work: Coroutine[object, object, T]) -> T:
    loop, ended, tasks = background_loop(), Future[T](), list[asyncio.Task[T]]()

    def begin() -> None:  # in the context of the caller, which is that of a run where a tool calls
        tasks.append(asyncio.ensure_future(work))
        tasks[0].add_done_callback(pass_on)

    def pass_on(task: asyncio.Task[T]) -> None:
        if task.cancelled():
            ended.set_exception(asyncio.CancelledError())
        elif error := task.exception():
            ended.set_exception(error)
        else:
            ended.set_result(task.result())

    def stop() -> None:
        tasks[0].cancel()

    loop.call_soon_threadsafe(begin)
    try:
        wait((ended,))
    except BaseException:  # an interrupt, which comes to the main thread alone
        loop.call_soon_threadsafe(stop)  # after `begin`
        wait((ended,))
        raise
    return ended.result()


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop in the background of this process, begun at the first call. A forked child has one of its own."""
    with _STARTING:
        if (process := os.getpid()) not in _LOOPS:
            _LOOPS[process] = loop = asyncio.new_event_loop()

            def serve() -> None:
                while True:  # what somebody's model raises its caller gets, too
                    with suppress(SystemExit, KeyboardInterrupt):
                        loop.run_forever()

            threading.Thread(target=serve, name="surefoot-loop", daemon=True).start()
        return _LOOPS[process]
