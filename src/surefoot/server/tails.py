"""The newest records of the runs that somebody follows, as frames: read once, however many follow.

A reader has a place, not a queue. One that is far behind reads the journal at its own pace, until it has come so near
to the end that it finds what it lacks here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice

from surefoot.server.sse import record_frame
from surefoot.types.errors import JournalError, UsageError
from surefoot.types.ports import JournalStore

KEPT_BYTES = 256 * 1024
PIECE_BYTES = 64 * 1024


@dataclass(slots=True)
class Tail:
    """The records of one run from `first` up to `next`. `is_over` once none will come; `wrong` says why, if damaged."""

    first: int
    next: int
    frames: deque[bytes] = field(default_factory=deque[bytes])
    size: int = 0
    is_over: bool = False
    wrong: str = ""
    readers: set[asyncio.Event] = field(default_factory=set[asyncio.Event])

    async def follow(self, store: JournalStore, run_id: str) -> None:
        """Take in what is recorded until the run ends; a reader hears of each record, and of the end."""
        try:
            async for record in store.subscribe(run_id, self.next):
                self.frames.append(piece := record_frame(record))
                self.next, self.size = record.seq + 1, self.size + len(piece)
                while self.size > KEPT_BYTES and len(self.frames) > 1:
                    self.size -= len(self.frames.popleft())
                    self.first += 1
                self._wake()
                if record.seq % 100 == 0:
                    await asyncio.sleep(0)
        except JournalError as error:
            self.wrong = str(error)
        except UsageError:  # the run was deleted meanwhile
            pass
        finally:
            self.is_over = True
            self._wake()

    def after(self, place: int) -> tuple[bytes, int]:
        """Frames from a place that is not before `first`, as many as go out at once, and the place after them."""
        pieces: list[bytes] = []
        size = 0
        for piece in islice(self.frames, place - self.first, None):
            pieces.append(piece)
            size += len(piece)
            if size >= PIECE_BYTES:
                break
        return b"".join(pieces), place + len(pieces)

    def _wake(self) -> None:
        for reader in self.readers:
            reader.set()


class Tails:
    """The tails of all runs that are followed."""

    def __init__(self, store: JournalStore) -> None:
        self._store = store
        self._tails: dict[str, tuple[Tail, asyncio.Task[None]]] = {}

    @property
    def size(self) -> int:
        return sum(tail.size for tail, _ in self._tails.values())

    @asynccontextmanager
    async def of(self, run_id: str, records: int, wake: asyncio.Event) -> AsyncGenerator[Tail]:
        """The tail of a run that has so many records; `wake` is set when there is more."""
        known = self._tails.get(run_id)
        if known is None or known[0].is_over:
            tail = Tail(records, records)
            known = self._tails[run_id] = tail, asyncio.ensure_future(tail.follow(self._store, run_id))
        tail, following = known
        tail.readers.add(wake)
        try:
            yield tail
        finally:
            tail.readers.discard(wake)
            if not tail.readers:
                if self._tails.get(run_id) is known:
                    del self._tails[run_id]
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following
