"""What all requests of one server share, and what it lets pass at once, before a journal is touched."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect, Request

from surefoot.agent import Agent
from surefoot.server.answers import Problem
from surefoot.server.auth import Keyring
from surefoot.server.signals import Live
from surefoot.server.tails import Tails
from surefoot.server.tales import Library
from surefoot.types.ports import JournalStore
from surefoot.worker import Worker

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds. Source: spec/serving.md, section 4."""

    body: int = MIB
    task: int = MIB // 4
    attachments: int = 8 * MIB
    queued: int = 1_000
    streams: int = 500
    streams_a_token: int = 20
    requests_s: float = 50.0
    burst: int = 100
    header: int = 16 * 1024
    idle_s: float = 30.0
    word_s: float = 2.0
    call_s: float = 25.0


@dataclass(slots=True)
class Pace:
    """Requests of each token, and its open streams. A token bucket: `burst` at once, then `requests_s`."""

    limits: Limits
    _left: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    _streams: Counter[str] = field(default_factory=Counter[str])

    def count(self, name: str) -> None:
        """Let a request of that token pass, or raise `Problem`."""
        now = time.monotonic()
        left, at = self._left.get(name, (float(self.limits.burst), now))
        left = min(float(self.limits.burst), left + (now - at) * self.limits.requests_s)
        if left < 1.0:
            self._left[name] = left, now
            retry_s = (1.0 - left) / self.limits.requests_s
            raise Problem("too_fast", "this token makes too many requests", retry_after_s=retry_s)
        self._left[name] = left - 1.0, now

    @contextmanager
    def stream(self, name: str) -> Generator[None]:
        """A place for a stream while it is open. Raises `Problem` where there is none."""
        if self._streams[name] >= self.limits.streams_a_token or self._streams.total() >= self.limits.streams:
            raise Problem("too_many_streams", "no more streams can be opened now", retry_after_s=5)
        self._streams[name] += 1
        try:
            yield
        finally:
            self._streams[name] -= 1

    @property
    def streams(self) -> int:
        return self._streams.total()


async def body_of(request: Request, most: int, within_s: float) -> bytes:
    """The body, which may have `most` bytes. Raises `Problem`."""
    too_large = Problem("too_large", f"the body may have {most:,} bytes")
    said = request.headers.get("content-length", "0")
    if not said.isdigit() or int(said) > most:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    raise too_large
    except TimeoutError as error:
        raise Problem("too_slow", f"the body did not arrive within {within_s:g} seconds") from error
    except ClientDisconnect as error:
        raise Problem("too_slow", "the body was cut off") from error
    return bytes(body)


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
