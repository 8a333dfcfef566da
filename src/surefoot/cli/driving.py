"""Drive a run before a person's eyes, until it ends, pauses, or is stopped by Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from types import FrameType

from surefoot.agent import Agent
from surefoot.cli.exits import CODES, INTERRUPTED, TERMINATED, Terminated
from surefoot.cli.finding import state_of
from surefoot.cli.live import Showing
from surefoot.core.plan.child import open_calls
from surefoot.journal.sqlite import SqliteJournal
from surefoot.run import Run
from surefoot.runtime.world import Watch
from surefoot.types.errors import UsageError

Work = Callable[[Watch, bool], Coroutine[object, object, Run]]
"""What drives the run; it is given who watches, and whether pieces of replies are wanted."""


def conduct(
    agent: Agent,
    work: Work,
    *,
    store: SqliteJournal,
    run_id: str,
    showing: Showing,
    hint: str,
    word: Callable[[Run], Work | None] | None = None,
) -> int:
    """Drive a run and show it; gives the exit code. `word` may have a person's word on how it stands, and drive it on.

    The first Ctrl-C or SIGTERM cancels what is under way and leaves the run resumable; a second one leaves at once.
    """

    async def closed_after(now: Work) -> Run:
        with _cancelled_by_sigterm():
            try:
                return await now(showing.watch, showing.streams)
            finally:
                await agent.aclose()

    next_work: Work | None = work
    run: Run | None = None
    try:
        while next_work is not None:
            with showing:
                run = asyncio.run(closed_after(next_work))
            next_work = word(run) if word is not None else None
    except KeyboardInterrupt:  # from `asyncio.run`, once the task is cancelled and the journal released
        _leave_at_the_next_one(INTERRUPTED)
        return _interrupted(store, run_id, showing, hint, INTERRUPTED)
    except (asyncio.CancelledError, Terminated):  # as above, nobody else cancels it; or nobody drove it just then
        _leave_at_the_next_one(TERMINATED)
        return _interrupted(store, run_id, showing, hint, TERMINATED)
    assert run is not None  # noqa: S101  # the first work was done
    showing.over(run, hint)
    return CODES[run.status]


@contextmanager
def _cancelled_by_sigterm() -> Generator[None]:
    """While this task runs, SIGTERM cancels it, where asyncio lets only Ctrl-C do so."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101  # a coroutine runs in one
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: loop.call_soon_threadsafe(task.cancel))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupted(store: SqliteJournal, run_id: str, showing: Showing, hint: str, code: int) -> int:
    try:
        state = asyncio.run(state_of(store, run_id))
    except UsageError:
        print("surefoot: interrupted before the run began", file=sys.stderr)
        return code
    run = Run.of(state)
    showing.over(run, hint)
    if any(call.attempts for _, call in open_calls(state)) and threading.active_count() > 1:
        print("a tool may still be at work and cannot be stopped; Ctrl-C again leaves at once", file=sys.stderr)
    return code if run.status in ("paused", "interrupted") else CODES[run.status]  # it may have ended just before


def _leave_at_the_next_one(code: int) -> None:
    """From here on nothing is left to be done but to wait for tools' threads, which Python does at its exit."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        os._exit(code)

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
