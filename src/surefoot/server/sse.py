"""Server-sent events: frames, and a response that is one stream of them until somebody closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, suppress

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from surefoot.journal.codec import encode
from surefoot.server.answers import Problem
from surefoot.types.errors import SurefootError
from surefoot.types.ports import Recorded

PING = b": ping\n\n"
PING_S = 15.0
RETRY = b"retry: 1000\n\n"
Write = Callable[[bytes], Awaitable[None]]
"""Sends bytes, and returns when the reader has room for more."""


def frame(event: str, data: bytes = b"{}", id_: int | None = None) -> bytes:
    """One frame. `data` is JSON, which has no line breaks; without an id it does not move the reader's place."""
    return (b"" if id_ is None else b"id: %d\n" % id_) + b"event: %b\ndata: %b\n\n" % (event.encode(), data)


def record_json(record: Recorded) -> bytes:
    """A record as the API gives it. Its event is as the journal writes it: tools by the digest of their blob."""
    (body, _), at, chained = encode(record.event), orjson.dumps(record.at), record.hash.encode()
    return b'{"seq":%d,"at":%b,"hash":"%b","event":%b}' % (record.seq, at, chained, body)


def record_frame(record: Recorded) -> bytes:
    """A record as a frame; its id is its place in the journal."""
    return frame(record.event.type, record_json(record), record.seq)


class EventStream(Response):
    """A stream that `speak` writes, until it returns, the reader goes away, or the server does."""

    media_type = "text/event-stream"

    def __init__(
        self,
        speak: Callable[[Write], Awaitable[None]],
        place: AbstractContextManager[None],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(headers or {})})
        del self.headers["content-length"]
        self._speak = speak
        self._place = place

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. Raises `Problem` where there is no place for it; whatever ends it, nothing of it is left running."""

        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        async def wait_for_disconnect() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        with self._place:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            speaking, leaving = asyncio.ensure_future(self._speak(write)), asyncio.ensure_future(wait_for_disconnect())
            try:
                await asyncio.wait((speaking, leaving), return_when=asyncio.FIRST_COMPLETED)
                if speaking.done():
                    with suppress(SurefootError, Problem):  # what is wrong is told to who comes again
                        speaking.result()
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                for task in (speaking, leaving):
                    task.cancel()
                    with suppress(asyncio.CancelledError, SurefootError, Problem):
                        await task
