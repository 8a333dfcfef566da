"""The stream of what a server says, watched for its end."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream
    from mcp.shared.message import SessionMessage


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
        """The next message. Raises what the stream raises at its end."""
        try:
            return await self._inner.receive()
        except BaseException:
            self._on_end()
            raise

    async def aclose(self) -> None:
        """Close it."""
        self._on_end()
        await self._inner.aclose()

    def __aiter__(self) -> Watched:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self._inner.__anext__()
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
