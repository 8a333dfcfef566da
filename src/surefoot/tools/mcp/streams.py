"""What goes to a server and comes from it: its stream, watched for its end, calls over HTTP, and its last words."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import httpx2
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


_REFUSALS = range(400, 500)  # HTTP statuses of what was not begun
_FAILURES = range(400, 600)


class Post:
    """How the request of one call fares over HTTP, if the client sends it while the context lasts.

    Whatever else is asked over the same connection tells nothing of it.
    """

    def __init__(self) -> None:
        self.status = 0
        self.is_unsent = False

    @property
    def is_refused(self) -> bool:
        """Whether the call has surely not begun: it could not be sent, or the server has turned it away."""
        return self.is_unsent or self.status in _REFUSALS

    @property
    def why(self) -> str:
        return f"HTTP status {self.status}" if self.status in _FAILURES else ""

    def __enter__(self) -> Post:
        self._before = _POST.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _POST.reset(self._before)

    @staticmethod
    def client(on_status: Callable[[int], None], **settings: Any) -> httpx2.AsyncClient:  # Any: the client's own
        """A client that says so to the call whose request it sends, and to `on_status` of every answer."""
        import httpx2  # noqa: PLC0415  # the extra `mcp` loads late

        def post_of(request: httpx2.Request) -> Post | None:  # a GET asks for the rest of an answer, so the call began
            return _POST.get() if request.method == "POST" else None

        async def on_response(response: httpx2.Response) -> None:
            on_status(response.status_code)
            if (post := post_of(response.request)) is not None:
                post.status = response.status_code

        class Client(httpx2.AsyncClient):
            async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:  # Any: as above
                try:
                    return await super().send(request, **how)
                except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
                    if (post := post_of(request)) is not None:
                        post.is_unsent = True
                    raise

        return Client(event_hooks={"response": [on_response]}, **settings)


_POST: ContextVar[Post | None] = ContextVar("surefoot mcp post", default=None)
"""The call that a request belongs to: the client sends it in the context of whoever calls."""
