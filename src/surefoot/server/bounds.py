"""What a server lets pass at once, and how it holds back the rest before a journal is touched."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect, Request

from surefoot.server.problems import Problem

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
            raise Problem("too_many_streams", "no further stream can be opened now", retry_after_s=5)
        self._streams[name] += 1
        try:
            yield
        finally:
            self._streams[name] -= 1

    @property
    def streams(self) -> int:
        """How many are open."""
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
        raise Problem("too_slow", f"the body did not come within {within_s:g} seconds") from error
    except ClientDisconnect as error:
        raise Problem("too_slow", "the body broke off") from error
    return bytes(body)
