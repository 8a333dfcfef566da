"""Who waits for what others write to a database: readers of runs, and drivers to whom something is said.

What has changed is told to all processes at most twenty times a second, outside of appends, which it would hold up. One
connection listens for all who wait here. What is told is a hint: every few seconds they look by themselves, more often
while nothing is heard, so that they may be late and never wrong. Source: spec/scale.md, section 3.3.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager, suppress

from surefoot.journal.postgres_server import ANSWER_S, ERRORS, Database, waits
from surefoot.types.errors import JournalError

EVERY = 0  # in place of a run's number: the summaries of all runs

_TELL_S = 0.05
_LOOK_S = 5.0
_MOST_TOLD = 300  # numbers in one notification, which holds less than 8000 bytes

_NOTIFY = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('surefoot', %s)"
_UNHEARD = "SELECT DISTINCT run FROM surefoot.word WHERE run = ANY (%s) AND outcome = ''"


class Follower:
    """Wakes those who wait here, and tells other processes."""

    def __init__(self, database: Database, *, answer_s: float = ANSWER_S) -> None:
        self._database, self._answer_s = database, answer_s
        self._watchers: defaultdict[int, set[asyncio.Event]] = defaultdict(set)
        self._ears: dict[int, Callable[[], None]] = {}
        self._unasked: set[int] = set()
        self._untold: set[int] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.is_over = False

    @contextmanager
    def watch(self, number: int) -> Generator[asyncio.Event]:
        """An event that is set when a run of that number has, or may have, new records."""
        changed = asyncio.Event()
        self._watchers[number].add(changed)
        self._start("listen", self._listen)
        try:
            yield changed
        finally:
            self._watchers[number].discard(changed)
            if not self._watchers[number]:
                del self._watchers[number]

    def hear(self, number: int, wake: Callable[[], None] | None) -> None:
        """Call `wake` when something is said to the run of that number, or was; with None, no more."""
        self._ears.pop(number, None)
        if wake is not None:
            self._ears[number] = wake
            self._start("listen", self._listen)
            self._unasked.add(number)
            self._start("ask", self._ask)

    def note_word(self, number: int) -> None:
        """Something was said to a run."""
        if (wake := self._ears.get(number)) is not None:
            wake()

    def tell(self, numbers: Iterable[int]) -> None:
        """These runs have changed here."""
        self._changed(numbers)
        self._untold.update(numbers)
        if self._untold:
            self._start("tell", self._tell)

    def rebind(self) -> None:
        """Go on on another event loop."""
        self._tasks.clear()
        self._watchers.clear()
        self._ears.clear()

    async def aclose(self) -> None:
        """End, and with it all waiting."""
        self.is_over = True
        self._changed(tuple(self._watchers))
        for task in tuple(self._tasks.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _start(self, name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        task = self._tasks.get(name)
        if (task is None or task.done()) and not self.is_over:
            self._tasks[name] = asyncio.get_running_loop().create_task(work())

    def _changed(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            for changed in self._watchers.get(number, ()):
                changed.set()

    async def _tell(self) -> None:
        while self._untold:
            await asyncio.sleep(_TELL_S)
            told, self._untold = sorted(self._untold), set()
            for at in range(0, len(told), _MOST_TOLD):
                numbers = " ".join(map(str, told[at : at + _MOST_TOLD]))
                with suppress(JournalError):  # it is a hint
                    await self._database.ask(_NOTIFY, (numbers,), patience_s=0)

    async def _ask(self) -> None:
        """Wake those to whom something was said."""
        while self._unasked:
            asked, self._unasked = list(self._unasked), set()
            with suppress(JournalError):  # it is asked again
                for (number,) in await self._database.ask(_UNHEARD, (asked,), patience_s=0):
                    self.note_word(number)

    async def _listen(self) -> None:
        while True:
            async for _ in waits():
                self._look()
                if await self._has_listened():
                    break

    async def _has_listened(self) -> bool:
        """Listen until the connection breaks; whether there was one."""
        is_there = False
        with suppress(*ERRORS, JournalError):
            connection = await self._database.connect()
            looking = asyncio.create_task(self._look_on())
            try:
                await connection.execute("LISTEN surefoot")
                is_there = True
                while True:
                    async for note in connection.notifies(timeout=_LOOK_S):
                        first, _, number = note.payload.partition(" ")
                        if first == "word" and number.isdecimal():
                            self.note_word(int(number))
                        else:
                            self._changed(int(one) for one in note.payload.split() if one.isdecimal())
                    async with asyncio.timeout(self._answer_s):
                        await connection.execute("SELECT 1")  # else a line that is half-open is never noticed
            finally:
                looking.cancel()
                await connection.close()
        return is_there

    async def _look_on(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(_LOOK_S)

    def _look(self) -> None:
        """Have all see for themselves."""
        self._changed(tuple(self._watchers))
        if self._ears:
            self._unasked.update(self._ears)
            self._start("ask", self._ask)
