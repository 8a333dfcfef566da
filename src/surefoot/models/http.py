"""Requests to one HTTP endpoint over aiohttp: connections kept alive, a limit on every wait, errors in our own words.

This module imports aiohttp; import it when the first request is made, not before.
"""

import asyncio
import io
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from surefoot.models.exchange import Limits, OnChunk, Rejection
from surefoot.types.errors import ModelError, ModelRefused, ModelTimeout, ModelUnreachable

_KEEP_ALIVE_S = 30.0
_LARGE_BODY = 2**20  # beyond this aiohttp warns about bytes, and wants a file to read from
_ERROR_BYTES = 65_536  # as much of an error page as is read
_DRAIN_S = 0.1
MOST_BYTES = 64 * 2**20
"""Of a reply, whole or streamed: none is near that, and a server that sends more must not fill the memory."""


class Http:
    """POST to one URL. One session an event loop, made at the first request; a session of a dead loop is dropped."""

    def __init__(self, url: str, shown_url: str, headers: dict[str, str]) -> None:
        self._url = URL(url)
        self._shown = shown_url
        self._headers = headers
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._timeout = (Limits(0, 0, 0, 0), aiohttp.ClientTimeout())

    async def post(self, body: bytes, limits: Limits) -> bytes | Rejection:
        """The whole answer. Raises `ModelTimeout`, `ModelUnreachable`, and `ModelRefused` for one above 64 MiB.

        Cancelling closes the connection.
        """
        session = await self._session()
        status = 0
        try:
            async with session.post(
                self._url, data=_payload(body), timeout=self._client_timeout(limits), allow_redirects=False
            ) as response:
                status = response.status
                if response.status != 200:  # noqa: PLR2004 - HTTP
                    return await _rejection(response)
                return await self._whole(response)
        except TimeoutError as error:
            failure = self._timed_out(error, limits, "")
        except (aiohttp.ClientError, OSError) as error:
            failure = self._unreachable(error)
        failure.status = status
        raise failure  # out here nothing of the client's error clings to it but the cause

    async def stream(self, body: bytes, limits: Limits, on_chunk: OnChunk) -> bytes | Rejection | None:
        """Hand over the answer in pieces: `None` when it was a stream, its bytes when the server sent it whole.

        Raises as `post` does.
        """
        session = await self._session()
        loop = asyncio.get_running_loop()
        waited_for = "first token"
        status = count = 0
        wait = asyncio.timeout(limits.first_s)
        try:
            async with (
                wait,
                session.post(
                    self._url, data=_payload(body), timeout=self._client_timeout(limits), allow_redirects=False
                ) as response,
            ):
                status = response.status
                if response.status != 200:  # noqa: PLR2004 - HTTP
                    return await _rejection(response)
                if "json" in response.headers.get("Content-Type", ""):
                    return await self._whole(response)
                async for chunk in response.content.iter_any():
                    waited_for = "next token"
                    wait.reschedule(loop.time() + limits.between_s)
                    count += len(chunk)
                    if count > MOST_BYTES:
                        raise self._too_long(response)
                    if on_chunk(chunk):
                        await _drain(response)
                        break
                return None
        except TimeoutError as error:
            failure = self._timed_out(error, limits, waited_for if wait.expired() else "")
        except (aiohttp.ClientError, OSError) as error:
            failure = self._unreachable(error)
        failure.status = status
        raise failure  # as above

    async def _whole(self, response: aiohttp.ClientResponse) -> bytes:
        pieces: list[bytes] = []
        count = 0
        async for piece in response.content.iter_any():  # unpacked, so that no small zip becomes a large reply
            pieces.append(piece)
            count += len(piece)
            if count > MOST_BYTES:
                raise self._too_long(response)
        return b"".join(pieces)

    def _too_long(self, response: aiohttp.ClientResponse) -> ModelRefused:
        response.close()
        return ModelRefused(
            f"{self._shown} sent a reply of more than {MOST_BYTES >> 20} MiB; is it a model server? "
            "check the base URL, or lower `max_output_tokens`"
        )

    async def aclose(self) -> None:
        """Close all connections; a later request opens them again."""
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    async def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        return session if session is not None and not session.closed else await self._open(loop)

    async def _open(self, loop: asyncio.AbstractEventLoop) -> aiohttp.ClientSession:
        for dead in [kept for kept in self._sessions if kept.is_closed()]:
            await self._sessions.pop(dead).close()
        if (session := self._sessions.get(loop)) is not None and not session.closed:
            return session  # another task opened it meanwhile
        self._sessions[loop] = session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=_proxy_for(self._url),
        )
        return session

    def _client_timeout(self, limits: Limits) -> aiohttp.ClientTimeout:
        if self._timeout[0] is not limits:
            self._timeout = (limits, aiohttp.ClientTimeout(total=limits.whole_s, connect=limits.connect_s))
        return self._timeout[1]

    def _timed_out(self, error: TimeoutError, limits: Limits, waited_for: str) -> ModelTimeout:
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            said = f"no connection within {limits.connect_s:g} s; is the server running? raise `connect_timeout_s`"
        elif waited_for == "first token":
            said = f"no first token within {limits.first_s:g} s; raise `first_token_timeout_s` or retry"
        elif waited_for:
            said = f"no further token for {limits.between_s:g} s; raise `between_tokens_timeout_s` or retry"
        elif limits.is_deadline:
            said = f"no reply within the {limits.whole_s:.3g} s that were left of the run's time"
        else:
            said = f"no whole reply within {limits.whole_s:g} s; raise `request_timeout_s` or retry"
        failure = ModelTimeout(f"{self._shown}: {said}")
        failure.stalled = waited_for == "next token"
        failure.__cause__ = error
        return failure

    def _unreachable(self, error: aiohttp.ClientError | OSError) -> ModelError:
        if isinstance(error, aiohttp.ClientConnectorError):
            why = error.os_error.strerror or error.os_error
            failure = ModelUnreachable(
                f"could not reach {self._shown} ({why}); is the server running? is the base URL right?"
            )
        elif isinstance(error, aiohttp.ClientResponseError):
            # its representation holds the headers that were sent, and so the key: it must not become the cause
            return ModelUnreachable(f"{self._shown} answered something that is no HTTP; retry, or check the base URL")
        else:
            why = str(error) or type(error).__name__
            failure = ModelUnreachable(f"the connection to {self._shown} broke off ({why}); retry")
        failure.__cause__ = error
        return failure


def _payload(body: bytes) -> bytes | io.BytesIO:
    return body if len(body) <= _LARGE_BODY else io.BytesIO(body)


async def _rejection(response: aiohttp.ClientResponse) -> Rejection:
    headers = response.headers
    body = await response.content.read(_ERROR_BYTES)
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


def _proxy_for(url: URL) -> str | None:
    """The proxy of the environment for this host, looked up once, since aiohttp would do so with every request."""
    host = url.host or ""
    if host in ("localhost", "127.0.0.1", "::1") or proxy_bypass(host):
        return None
    return getproxies().get(url.scheme)
