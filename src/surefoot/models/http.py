"""Requests to one HTTP endpoint over aiohttp. Import this with the first request, since it loads aiohttp."""

import asyncio
import io
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import NamedTuple
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable
from surefoot.types.messages import ModelSettings, Patience

OnEvents = Callable[[list[bytes]], bool]
"""Takes the data of events of a stream as they come; true when no more are wanted."""

MOST_BYTES = 64 * 2**20
"""Of a reply, whole or streamed: none is near that, and a server that sends more must not fill the memory."""

_KEEP_ALIVE_S = 30.0
_LARGE_BODY = 2**20  # beyond this aiohttp warns about bytes, and wants a file to read from
_ERROR_BYTES = 65_536  # as much of an error page as is read
_DRAIN_S = 0.1
_BOM = b"\xef\xbb\xbf"


class Rejection(NamedTuple):
    """An answer with another status than 200."""

    status: int
    body: bytes
    retry_after_ms: str | None
    retry_after: str | None


class Http:
    """POST to one URL. One session an event loop, made at the first request; a session of a dead loop is dropped.

    `shown_url` is how errors name it; `near`: see `ModelSettings.patience`.
    """

    def __init__(self, url: str, shown_url: str, headers: dict[str, str], *, near: bool) -> None:
        self._url = URL(url)
        self._shown = shown_url
        self._headers = headers
        self._near = near
        self._limits: tuple[object, Patience, aiohttp.ClientTimeout] = None, Patience(0, 0), aiohttp.ClientTimeout()
        self._sessions: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[None]]] = {}

    async def post(
        self,
        body: bytes,
        settings: ModelSettings,
        deadline_s: float | None,
        on_events: OnEvents | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes | Rejection | None:
        """The whole answer; `None` of a stream, whose events all went to `on_events`. `headers`: of this request alone.

        Raises `ModelTimeout`, `ModelUnreachable`, and `ModelRefused` above 64 MiB. Cancelling closes the connection.
        """
        loop = asyncio.get_running_loop()
        held = self._sessions.get(loop)
        session = held[0] if held is not None and not held[0].closed else await self._opened(loop)
        known, patience, timeout = self._limits
        if known is not settings:  # they are the same from request to request
            patience = settings.patience(near=self._near)
            timeout = aiohttp.ClientTimeout(None, settings.connect_timeout_s)
            self._limits = settings, patience, timeout
        whole_s = patience.whole_s if deadline_s is None else min(deadline_s, patience.whole_s)
        now_s, answer, count = loop.time(), None, 0
        ends_s = now_s + whole_s  # the client times the connection alone
        wait = asyncio.timeout_at(min(ends_s, now_s + patience.first_token_s) if on_events else ends_s)
        try:
            async with wait:
                data = body if len(body) <= _LARGE_BODY else io.BytesIO(body)
                asked = session.post(self._url, data=data, headers=headers, timeout=timeout, allow_redirects=False)
                answer = await asked
                if answer.status != 200:  # noqa: PLR2004 - HTTP
                    return await _rejection(answer)
                if on_events is None or "json" in answer.headers.get("Content-Type", ""):
                    return await self._whole(answer)
                events = EventStream()
                async for chunk in answer.content.iter_any():
                    wait.reschedule(min(ends_s, loop.time() + settings.between_tokens_timeout_s))
                    count += len(chunk)
                    if count > MOST_BYTES:
                        raise self._too_long(answer)
                    if on_events(events.feed(chunk)):
                        wait.reschedule(None)  # the reply is whole, whatever becomes of the connection
                        await _drain(answer)
                        break
                else:
                    on_events(events.close())
                return None
        except TimeoutError as error:
            is_silent = wait.expired() and wait.when() != ends_s  # a stream that had time left
            failure: ModelError = self._late(error, settings, whole_s, is_silent=is_silent, has_begun=count > 0)
        except (aiohttp.ClientError, OSError) as error:
            failure = self._unreachable(error)
        finally:
            if answer is not None and not answer.closed:  # one that was read to its end is closed
                answer.release()
        failure.status = 0 if answer is None else answer.status
        raise failure  # out here nothing of the client's error clings to it but the cause

    async def aclose(self) -> None:
        """Close the connections of this event loop; a later request opens them again."""
        if held := self._sessions.pop(asyncio.get_running_loop(), None):
            await held[1].aclose()

    async def _opened(self, loop: asyncio.AbstractEventLoop) -> aiohttp.ClientSession:
        # The proxy of the environment is looked up once, since aiohttp would do so with every request.
        host = self._url.host or ""
        is_direct = host in ("localhost", "127.0.0.1", "::1") or proxy_bypass(host)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=None if is_direct else getproxies().get(self._url.scheme),
        )
        closing = _closed_with_loop(session)
        await anext(closing)
        self._sessions[loop] = session, closing  # nothing above waits, so no other task was first
        for dead in [kept for kept in tuple(self._sessions) if kept.is_closed()]:
            if gone := self._sessions.pop(dead, None):  # another thread may have been first
                await gone[1].aclose()
        return session

    async def _whole(self, response: aiohttp.ClientResponse) -> bytes:
        pieces: list[bytes] = []
        count = 0
        while not response.content.at_eof():
            pieces.append(await response.content.readany())  # unpacked, so that no small zip becomes a large reply
            count += len(pieces[-1])
            if count > MOST_BYTES:
                raise self._too_long(response)
        return b"".join(pieces)

    def _late(
        self, error: TimeoutError, settings: ModelSettings, whole_s: float, *, is_silent: bool, has_begun: bool
    ) -> ModelError:
        patience = settings.patience(near=self._near)
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            limit_s = settings.connect_timeout_s
            limit = f"no connection within {limit_s:g} s; is the server running? raise `connect_timeout_s`"
        elif is_silent and not has_begun:
            limit = f"no first token within {patience.first_token_s:g} s; raise `first_token_timeout_s` or retry"
        elif is_silent:
            limit_s = settings.between_tokens_timeout_s
            limit = f"no further token for {limit_s:g} s; raise `between_tokens_timeout_s` or retry"
        elif whole_s != patience.whole_s:
            limit = f"no reply within the {whole_s:.3g} s that were left of the run's time"
        else:
            limit = f"no whole reply within {whole_s:g} s; raise `request_timeout_s` or retry"
        failure = ModelTimeout(f"{self._shown}: {limit}")
        failure.stalled = is_silent and has_begun
        failure.__cause__ = error
        return failure

    def _too_long(self, response: aiohttp.ClientResponse) -> ModelRefused:
        response.close()
        return ModelRefused(
            f"{self._shown} sent a reply of more than {MOST_BYTES >> 20} MiB; is it a model server? "
            "check the base URL, or lower `max_output_tokens`"
        )

    def _unreachable(self, error: aiohttp.ClientError | OSError) -> ModelError:
        if isinstance(error, aiohttp.ClientResponseError):
            # its representation holds the headers that were sent, and so the key: it must not become the cause
            return ModelUnreachable(f"{self._shown} answered something that is not HTTP; retry, or check the base URL")
        if isinstance(error, aiohttp.ClientConnectorError):
            why = error.os_error.strerror or error.os_error
            said = f"could not reach {self._shown} ({why}); is the server running? is the base URL right?"
        else:
            said = f"the connection to {self._shown} broke off ({str(error) or type(error).__name__}); retry"
        failure = ModelUnreachable(said)
        failure.__cause__ = error
        return failure


async def _closed_with_loop(session: aiohttp.ClientSession) -> AsyncGenerator[None]:
    """Closes the session when it is closed itself, which an event loop does at its end, and when it is collected."""
    try:
        yield
    finally:
        await session.close()


async def _rejection(response: aiohttp.ClientResponse) -> Rejection:
    headers, body = response.headers, b""
    while len(body) < _ERROR_BYTES and (more := await response.content.read(_ERROR_BYTES - len(body))):
        body += more
    return Rejection(response.status, body, headers.get("retry-after-ms"), headers.get("Retry-After"))


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read past the end mark, so that the connection can be used again; a server that dawdles loses it."""
    if response.content.at_eof():
        return
    try:
        async with asyncio.timeout(_DRAIN_S):
            await response.content.read(1)
    except TimeoutError:
        response.close()


class EventStream:
    """Reads server-sent events: bytes in, the data of whole events out.

    Lines end with LF, CRLF or CR; comments and other fields are passed over. However the bytes are cut into chunks,
    also inside a character or between CR and LF, the events are the same. Linear, also where no line ever ends.
    """

    def __init__(self) -> None:
        self._rest = bytearray()  # of an event that has not ended; searched once
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that these bytes complete, in order; events without data are left out."""
        if self._after_cr or b"\r" in chunk:
            if self._after_cr and chunk.startswith(b"\n"):  # the second half of a CRLF whose first half has counted
                chunk = chunk[1:]
                self._after_cr = chunk.endswith(b"\r")
            elif chunk:
                self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if rest := self._rest:
            searched = len(rest) - 1  # the first half of an empty line may have come before
            rest += chunk
            end = rest.rfind(b"\n\n", searched)
            if end < 0:
                return []
            chunk = bytes(rest)
        else:
            end = chunk.rfind(b"\n\n")
        self._rest = bytearray(chunk[end + 2 :] if end >= 0 else chunk)
        if end < 0:
            return []
        events: list[bytes] = []
        for block in chunk[:end].split(b"\n\n"):
            if block.startswith(b"data: ") and b"\n" not in block and len(block) > 6:  # noqa: PLR2004  # nearly always
                events.append(block[6:])
            elif data := _data_of(block):
                events.append(data)
        return events

    def close(self) -> list[bytes]:
        """The data of a last event that the server did not end with an empty line."""
        rest, self._rest = bytes(self._rest), bytearray()
        data = _data_of(rest)
        return [data] if data else []


def _data_of(block: bytes) -> bytes:
    lines = block.removeprefix(_BOM).split(b"\n")
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
