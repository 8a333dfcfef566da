"""The streams of a server: what it says, watched for its end, and the last words of its process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream
    from mcp.shared.message import SessionMessage

_KEPT_BYTES = 4_096
_LONGEST_READING_S = 1.0  # it takes much less to read to the end of a process, unless a child of it holds the pipe


class LastWords:
    """What a process wrote to standard error last, kept off our own, for when it fails.

    A thread reads it, because not every event loop can read a pipe.
    """

    def __init__(self) -> None:
        self._kept = b""
        self._reader: threading.Thread | None = None

    async def text(self) -> str:
        """At most 4 KiB, decoded as UTF-8 as far as it goes; of a process that ends, up to its end."""
        if self._reader is not None:
            await asyncio.to_thread(self._reader.join, _LONGEST_READING_S)
        return self._kept.decode(errors="replace").strip()

    @contextmanager
    def pipe(self) -> Generator[TextIO]:
        """What the process is to get as its standard error. Our own end is closed with the context."""
        reading, writing = os.pipe()

        def read() -> None:
            with os.fdopen(reading, "rb", buffering=0) as pipe:
                while piece := pipe.read(_KEPT_BYTES):
                    self._kept = (self._kept + piece)[-_KEPT_BYTES:]

        self._reader = threading.Thread(target=read, daemon=True, name="mcp stderr")
        self._reader.start()
        with os.fdopen(writing, "w") as end:
            yield end


class Watched:
    """A stream of the same shape; `on_end` is called when it is over, before anybody who waits for an answer hears.

    The client tells a request that the connection is closed, and nobody else. With this, a server that dies while
    nothing is asked of it is known to be gone before the next call is sent to it.
    """

    def __init__(self, inner: ReadStream[SessionMessage | Exception], on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._on_end = on_end

    @property
    def last_context(self) -> object:
        """What the dispatcher asks streams for that carry it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return await self._until_end(self._inner.receive())

    async def aclose(self) -> None:
        self._on_end()
        await self._inner.aclose()

    def __aiter__(self) -> Watched:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._until_end(self._inner.__anext__())

    async def _until_end(self, message: Awaitable[SessionMessage | Exception]) -> SessionMessage | Exception:
        try:
            return await message
        except BaseException:  # also a cancellation: this stream is read until the link ends, and no longer
            self._on_end()
            raise

    async def __aenter__(self) -> Watched:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._on_end()
        return await self._inner.__aexit__(kind, error, trace)
