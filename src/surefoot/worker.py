"""A worker: it takes up the runs of its agents that are ready, and drives up to so many at a time.

A run that waits for a person, or has ended, is let go; a word to it makes it ready again, here or in another worker of
the same journal. A worker that dies leaves its runs to the others as soon as its lease is over, on one machine at once.
Source: spec/scale.md, section 4.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from random import random
from typing import Any

from surefoot.agent import Agent
from surefoot.runtime.under_way import Leave
from surefoot.telemetry import figure, has_provider
from surefoot.types.errors import JournalError, JournalUnavailable, RunBusy, UsageError
from surefoot.types.events import Event
from surefoot.types.messages import Signal
from surefoot.types.ports import LEASE_S, Claimed, JournalStore, RunFilter

_LOG = logging.getLogger("surefoot.worker")

_FIRST_LOOK_S = 0.25
_LAST_LOOK_S = 0.75
"""How long a worker waits until it looks for ready runs again, at first and when nothing comes for long, in seconds."""

_MOST_FAILURES = 3


class Worker:
    """Drives runs of `agents`, by their names, that are in `store`: at most `most` at once.

    The agents must have that journal. `lease_s` is for how long a run stays with a worker that is cut off. `tell` gets
    each event and signal of each run that is driven here, with the id of the run. Raises `UsageError` for an agent that
    is called otherwise than its name.
    """

    def __init__(
        self,
        store: JournalStore,
        agents: Mapping[str, Agent[Any]],
        *,
        most: int = 16,
        lease_s: float = LEASE_S,
        name: str = "",
        tell: Callable[[str, Event | Signal], None] | None = None,
    ) -> None:
        for key, agent in agents.items():
            if agent.name != key:
                raise UsageError(f"agent {key!r} has the name {agent.name!r}; give it this one: Agent(…, name={key!r})")
        self.name = name or f"worker {os.getpid()}"
        self._store, self._agents, self._most, self._lease_s, self._tell = store, agents, most, lease_s, tell
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._failures: dict[str, int] = {}
        self._leave, self._is_over = Leave(), False
        self._woken = asyncio.Event()
        self._renewed = time.monotonic()
        self.lost = 0
        """How many of its runs were taken by others, since it was cut off for longer than its leases."""

    @property
    def driven(self) -> frozenset[str]:
        return frozenset(self._tasks.values())

    def wake(self) -> None:
        """Look for ready runs now: one was started, or something was said to one."""
        self._woken.set()

    async def run(self, *, once: bool = False) -> None:
        """Drive until `drain`. Where the journal is away for long, its runs are let go until it is back.

        With `once`, drive until no run is ready; that raises `JournalError` where the journal is away for long.
        """
        wait_s = _FIRST_LOOK_S
        try:
            while not self._is_over:
                self._woken.clear()
                claimed = await self._look(once=once)
                if once and not self._tasks and claimed is not None:
                    return
                wait_s = _FIRST_LOOK_S if claimed else min(wait_s * 1.5, _LAST_LOOK_S)
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(wait_s * (0.8 + 0.4 * random()), self._lease_s / 3)):  # noqa: S311
                        await self._woken.wait()
        except asyncio.CancelledError:
            for task in self._tasks:
                task.cancel()
            raise
        finally:
            await self._settle()

    async def _look(self, *, once: bool) -> int | None:
        """Take up what is ready and extend the leases; how many runs were taken, None where the journal is away.

        Where it is away for long, or gives no answer, all runs are let go before the leases are over.
        """
        room, began, claimed, wrong = self._most - len(self._tasks), time.monotonic(), None, None
        left_s = self._renewed + self._lease_s * 2 / 3 - began
        leaving = asyncio.get_running_loop().call_later(left_s, self._leave_all)  # a store may take long to give up
        try:
            async with asyncio.timeout(left_s):
                await self._renew(began)
            leaving.cancel()
            async with asyncio.timeout(self._lease_s / (6 if self._tasks else 1)):  # it is soon time to renew again
                if has_provider():
                    wanted = RunFilter(waiting=True, agents=tuple(self._agents))
                    figure("waiting", await self._store.count(wanted))
                claimed = await self._store.claim(self._agents, room, self._lease_s) if room > 0 else ()
            if room > 0 and not self._tasks:
                self._renewed = began
        except (JournalError, TimeoutError) as error:
            wrong = error if isinstance(error, JournalError) else JournalError("the journal gave no answer in time")
            _LOG.warning("the journal cannot be reached", exc_info=True)
            if time.monotonic() > self._renewed + self._lease_s * 2 / 3:
                self._leave_all()
        finally:
            leaving.cancel()
        if self._leave.has_begun and not self._is_over:
            await self._settle()
            if once and wrong is not None:
                raise wrong
            self._leave, self._renewed = Leave(), time.monotonic()
        for one in claimed or ():
            task = asyncio.create_task(self._drive(one))
            self._tasks[task] = one.run_id
            task.add_done_callback(self._let_go)
        return None if claimed is None else len(claimed)

    def _leave_all(self) -> None:
        """Leave all runs; what is still under way one second before the leases are over is cut off."""
        grace_s = self._renewed + self._lease_s - 1 - time.monotonic()
        self._leave.begin(grace_s)
        for task in self._tasks:
            asyncio.get_running_loop().call_later(grace_s, task.cancel)

    async def drain(self, grace_s: float = 30.0) -> None:
        """Let go of all runs: no move begins, calls that may be repeated are cut off, others get so many seconds.

        What is still under way then is left as a crash would leave it. The runs are ready for any other worker.
        """
        self._is_over = True
        self._leave.begin(grace_s)
        self._woken.set()
        await self._settle()

    async def _settle(self) -> None:
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))
            await asyncio.sleep(0)

    def _let_go(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._woken.set()

    async def _renew(self, now: float) -> None:
        """Extend the leases in time, and leave what others have taken."""
        if not self._tasks or now - self._renewed < self._lease_s / 3:
            return
        lost = await self._store.renew(self._lease_s)
        self._renewed = now  # not later: how long the answer took is not known to be left of the lease
        for task, run_id in tuple(self._tasks.items()):
            if run_id in lost:
                _LOG.warning("run %s was taken by another worker", run_id)
                self.lost += 1
                figure("lost", 1)
                task.cancel()

    async def _drive(self, claimed: Claimed) -> None:
        """Drive one run as far as it goes. One that makes its driver fail three times is set aside.

        Not where the journal itself fails: that says nothing about the run.
        """
        run_id, watch = claimed.run_id, None if self._tell is None else partial(self._tell, claimed.run_id)
        agent, leave = self._agents[claimed.agent], self._leave
        try:
            await agent.drive(claimed, by=self.name, watch=watch, stream=watch is not None, leave=leave)
        except RunBusy as error:  # others drive it
            _LOG.warning("run %s: %s", run_id, error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling() and not leave.has_begun:
                raise
        except JournalUnavailable:
            _LOG.warning("run %s could not be recorded", run_id, exc_info=True)
            await asyncio.sleep(_LAST_LOOK_S)  # its place is kept meanwhile: else it would be claimed at once
        except Exception as error:  # noqa: BLE001  # whatever it is, the other runs must go on
            failures = self._failures[run_id] = self._failures.get(run_id, 0) + 1
            _LOG.exception("run %s made its driver fail (%d of %d)", run_id, failures, _MOST_FAILURES)
            if failures >= _MOST_FAILURES:
                self._failures.pop(run_id, None)
                with suppress(JournalError):  # the next worker that finds it so does the same
                    journal = await self._store.open(run_id)
                    await journal.release("set_aside", why=f"{type(error).__name__}: {error}")
        else:
            self._failures.pop(run_id, None)
