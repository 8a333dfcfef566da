"""What all requests of one server share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from surefoot.agent import Agent
from surefoot.server.auth import Keyring
from surefoot.server.bounds import Limits, Pace
from surefoot.server.signals import Live
from surefoot.server.tails import Tails
from surefoot.server.tales import Library
from surefoot.types.ports import JournalStore
from surefoot.worker import Worker


@dataclass(slots=True)
class Site:
    """A server: where runs are kept, which agents it serves, and who may ask. Without a worker it drives no run."""

    store: JournalStore
    agents: Mapping[str, Agent]
    keys: Keyring
    limits: Limits = Limits()
    worker: Worker | None = None
    drives: int = 0
    live: Live = field(default_factory=Live)
    pace: Pace = field(init=False)
    library: Library = field(init=False)
    tails: Tails = field(init=False)
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    began: float = field(default_factory=time.time)
    desk: ThreadPoolExecutor = field(init=False)
    _readers: set[asyncio.Event] = field(default_factory=set[asyncio.Event])

    def __post_init__(self) -> None:
        self.pace = Pace(self.limits)
        self.library = Library(self.store)
        self.tails = Tails(self.store)
        self.desk = ThreadPoolExecutor(1, thread_name_prefix="surefoot-desk")

    def stir(self) -> None:
        """Have the worker look for runs now: one was begun, or something was said to one."""
        if self.worker is not None:
            self.worker.wake()

    @contextmanager
    def reader(self, wake: asyncio.Event) -> Generator[None]:
        """Somebody who reads a stream, and is woken when the server leaves."""
        self._readers.add(wake)
        try:
            yield
        finally:
            self._readers.discard(wake)

    def leave(self) -> None:
        """Take no new runs, and let the readers of streams go."""
        self.leaving.set()
        for wake in self._readers:
            wake.set()
