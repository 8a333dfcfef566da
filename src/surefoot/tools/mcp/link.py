"""The connection to one MCP server within one event loop: opened at first need, shared, and opened again when lost.

A link lives in a task of its own: the client of the `mcp` package has to be left in the task that entered it, and a
call that is cancelled must not take along a connection that others use. What ends by itself is `is_lost`, and stays so.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from surefoot.tools.mcp.config import McpServer
from surefoot.tools.mcp.login import auth_of
from surefoot.tools.mcp.offers import MOST_TOOLS, Listing, listing_of
from surefoot.tools.mcp.streams import LastWords, Post, Watched
from surefoot.types.errors import UsageError

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp.client.session import IncomingMessage
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolResult, InputRequiredResult, Tool
    from pydantic import TypeAdapter

T = TypeVar("T")
_LOG = logging.getLogger("surefoot")

MOST_TRIES = 3  # tries to connect before those who wait are told; the next one who needs the server begins anew
MOST_PAGES = 100
LONGEST_CLOSING_S = 10.0  # a process gets 2 seconds to end by itself and 2 more after SIGTERM; then it is killed

_LONGEST_LISTENING_PAUSE_S = 60.0

_REFUSED = ("Session terminated", "Server returned an error response")
"""The client's own words for an answer that is not one of MCP: a gateway that is down, a session that is gone."""
_NO_SESSION = -32001  # servers that are made with an SDK say so of a session that they do not know
_FORGOTTEN = (400, 404, 410)
"""The HTTP statuses with which servers say that they do not know the session (any more); MCP asks for 404."""


class Progress(Protocol):
    """Is told how far a call is. MUST NOT raise."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class Unreachable(Exception):
    """A server could not be reached in time; nothing was sent to it. The message says which and why."""


class LinkLost(Exception):
    """The connection was lost while an answer was waited for: whether the call took effect is not known.

    Unless it `is_refused`: then it did not.
    """

    is_refused = False


class Link:
    """A connection that is being made, then stands, then is over. `mode`: how the version is agreed on.

    `ready` says in the end whether it stands, `failure` why it does not. `listing` is what the server offers now;
    `settled`: no change of it is still to be read, or the link is over.
    """

    def __init__(self, server: McpServer, mode: Literal["auto", "legacy"]) -> None:
        self.server = server
        self.is_lost = False
        self.listing = Listing()
        self.failure = ""
        self._mode: Literal["auto", "legacy"] = mode
        self._words = LastWords()
        self._status = 0
        self._client: Client | None = None
        self._wake = asyncio.Event()
        self.settled = asyncio.Event()
        self._is_stale = False
        self._is_closing = False
        self.ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        # In a context of its own, so that it keeps nothing of the run that happened to need it first.
        self._task = asyncio.create_task(self._live(), name=f"mcp {server.name}", context=Context())

    async def call(
        self, tool: str, arguments: Mapping[str, object], on_progress: Progress
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool by the server's own name, once. Cancelling it tells the server so.

        Raises `LinkLost`, `MCPError` for a refusal by the server, `ValidationError` for an answer that is none.
        """
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  # the extra `mcp` loads late
        from mcp_types import CallToolRequest, CallToolRequestParams  # noqa: PLC0415  # as above

        assert self._client is not None  # noqa: S101  # only a link that stands is called

        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        post = Post()
        try:  # not its `call_tool`, which would check results by patterns of the server's choice
            with post:
                return await self._client.session.send_request(request, _answers(), progress_callback=on_progress)
        except MCPError as error:
            if self._is_lost_by(error):
                lost = LinkLost(post.why)
                lost.is_refused = post.is_refused
                raise lost from error
            raise

    async def ask(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """What the server answers to what is no call. Raises `MCPError`, or `LinkLost` where no answer came."""
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  # the extra `mcp` loads late

        assert self._client is not None  # noqa: S101  # only a link that stands is asked
        try:
            async with asyncio.timeout(self.server.connect_timeout_s):
                return await ask(self._client)
        except TimeoutError as error:
            raise LinkLost(f"no answer within {self.server.connect_timeout_s:g} s") from error
        except MCPError as error:
            if self._is_lost_by(error):
                raise LinkLost("") from error
            raise

    def _is_lost_by(self, error: MCPError) -> bool:
        """Whether an error is that of a lost connection: servers use its code for errors of their own.

        A session that an HTTP server does not know any more is over, whoever's words say so: the client's own, or, from
        servers that are made with an SDK, those of an answer of MCP.
        """
        from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST  # noqa: PLC0415  # as above
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS  # noqa: PLC0415  # as above

        is_http = bool(self.server.url)
        is_told = error.message in _REFUSED or error.code in (INVALID_REQUEST, CONNECTION_CLOSED, _NO_SESSION)
        has_session = self._client is not None and self._client.protocol_version not in MODERN_PROTOCOL_VERSIONS
        is_forgotten = is_http and has_session and is_told and self._status in _FORGOTTEN
        if is_forgotten:
            self._lose()
        is_closed = error.code == CONNECTION_CLOSED and (self.is_lost or is_http)
        return is_forgotten or is_closed or (is_http and error.message in _REFUSED)

    async def aclose(self) -> None:
        """End it: the session is closed, the process ended. Waits `LONGEST_CLOSING_S`, then no more."""
        self._is_closing = True
        self._wake.set()
        if not self.ready.done():
            self._task.cancel()
        try:
            _, late = await asyncio.wait((self._task,), timeout=LONGEST_CLOSING_S)
            if late:
                _LOG.warning("the MCP server %s did not close within %g s", self.server.name, LONGEST_CLOSING_S)
        finally:
            self._task.cancel()  # does nothing to one that has ended

    async def _live(self) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                from mcp.client.client import Client  # noqa: PLC0415  # the extra `mcp` takes a second to load
                from mcp_types import Implementation, ToolListChangedNotification  # noqa: PLC0415  # as above

                async def on_message(message: IncomingMessage) -> None:
                    if isinstance(message, ToolListChangedNotification):
                        self._changed()

                # else garbage of a server lands on our stderr
                logging.getLogger("mcp").addHandler(logging.NullHandler())
                transport = self._over_http() if self.server.url else self._over_pipes()
                self._client = await stack.enter_async_context(
                    Client(
                        transport,
                        mode=self._mode,
                        client_info=Implementation(name="surefoot", version="1"),
                        message_handler=on_message,
                        cache=None,  # a listing is always asked for: pins are only as good as it is new
                    )
                )
                self.listing = await self._list_all()
                self.settled.set()
                self.ready.set_result(True)
                listening = asyncio.create_task(self._listen(self._client))

                async def end_listening() -> None:
                    listening.cancel()
                    await asyncio.wait((listening,))

                stack.push_async_callback(end_listening)
                while not (self._is_closing or self.is_lost):  # the list is read again as often as it changes
                    if self._is_stale:
                        self._is_stale = False
                        self.listing = await self._list_all()
                        continue
                    self.settled.set()
                    self._wake.clear()
                    await self._wake.wait()
        except Exception as error:  # noqa: BLE001  # the client raises whatever its transports do, in groups
            _LOG.debug("the connection to the MCP server %s", self.server.name, exc_info=error)
            told: BaseException = error
            while isinstance(told, BaseExceptionGroup):
                told = cast("BaseExceptionGroup[BaseException]", told).exceptions[0]
            kind = "" if isinstance(told, UsageError) else type(told).__name__
            parts = [": ".join(filter(None, (kind, str(told))))]
            if self._status >= 400:  # noqa: PLR2004  # refusals of HTTP begin there
                parts.append(f"HTTP status {self._status}")
            if words := await self._words.text():
                parts.append(f"its last words: {' '.join(words.split())[-300:]}")
            self.failure = self.server.without_secrets("; ".join(parts))  # in one line
        finally:
            self._lose()
            self.settled.set()
            if not self.ready.done():
                self.ready.set_result(False)

    @contextlib.asynccontextmanager
    async def _over_pipes(self) -> AsyncGenerator[Any]:  # Any: the streams, whose types load late
        from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: PLC0415  # the extra `mcp` loads late

        server = self.server
        env = dict(server.env) or None
        started = StdioServerParameters(command=server.command, args=list(server.args), env=env, cwd=server.cwd)
        with contextlib.ExitStack() as until_started:
            words = until_started.enter_context(self._words.pipe())
            async with stdio_client(started, errlog=words) as (read, write):
                until_started.close()  # the process has its own end now; when that closes, the reading ends
                yield Watched(read, self._lose), write

    @contextlib.asynccontextmanager
    async def _over_http(self) -> AsyncGenerator[Any]:  # Any: the streams, whose types load late
        import httpx2  # noqa: PLC0415  # the extra `mcp` loads late
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415  # as above

        def on_status(status: int) -> None:
            self._status = status

        limit = httpx2.Timeout(self.server.connect_timeout_s, read=None)  # the limit of an answer is that of its call
        async with (
            Post.client(
                on_status, headers=dict(self.server.headers), timeout=limit, auth=auth_of(self.server)
            ) as client,
            streamable_http_client(self.server.url, http_client=client) as (read, write),
        ):
            yield Watched(read, self._lose), write

    async def _list_all(self) -> Listing:
        """All pages of the server's list. Raises `TimeoutError`, or what the client does."""
        assert self._client is not None  # noqa: S101  # it was just entered
        tools: list[Tool] = []
        async with asyncio.timeout(self.server.connect_timeout_s):
            cursor: str | None = None
            for _ in range(MOST_PAGES):
                page = await self._client.list_tools(cursor=cursor)
                tools += page.tools
                if page.next_cursor is None or page.next_cursor == cursor or len(tools) > MOST_TOOLS:
                    break
                cursor = page.next_cursor
        has_resources = self._client.server_capabilities.resources is not None
        return listing_of(self.server, tools, has_resources=has_resources)

    async def _listen(self, client: Client) -> None:
        """From version 2026-07-28 on, changes are told on a stream that has to be asked for, and may end."""
        from mcp.client.subscriptions import SubscriptionLost  # noqa: PLC0415  # the extra `mcp` loads late
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  # as above
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS  # noqa: PLC0415  # as above

        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools and tools.list_changed):
            return
        pause_s = 1.0
        while not self.is_lost:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._changed()
            except MCPError as error:
                _LOG.debug("the MCP server %s does not tell of changes: %s", self.server.name, error)
                return
            except SubscriptionLost:
                pass  # what was missed meanwhile is read below
            await asyncio.sleep(pause_s)
            pause_s = min(_LONGEST_LISTENING_PAUSE_S, pause_s * 2)
            self._changed()

    def _changed(self) -> None:
        self._is_stale = True
        self.settled.clear()
        self._wake.set()

    def _lose(self) -> None:
        self.is_lost = True
        self._wake.set()


class Connection:
    """One server's link, whichever it is at the moment.

    `listing` is what the server offered last; None before the first time. `backoff_s` is the pause after the first
    try that failed; it doubles. The first try lets the server choose among versions; as some servers end when they
    are asked that, the others begin as servers before 2026 expect it.
    """

    def __init__(self, server: McpServer, backoff_s: float = 0.5) -> None:
        self.server = server
        self.listing: Listing | None = None
        self._backoff_s = backoff_s
        self._link: Link | None = None
        self._opening: asyncio.Task[Link] | None = None

    async def ready(self, limit_s: float | None = None) -> Link:
        """The link, open and with its listing up to date. Raises `Unreachable`, at the latest after `limit_s`.

        That is never later than `connect_timeout_s`, and cancelling leaves the opening to others who wait for it.
        """
        limit_s = min(self.server.connect_timeout_s, limit_s or self.server.connect_timeout_s)
        try:
            async with asyncio.timeout(limit_s):
                if self._link is not None and not self._link.is_lost:
                    link = self._link
                else:
                    if self._opening is None:
                        self._opening = asyncio.create_task(self._connect(), name=f"mcp opening {self.server.name}")
                    opening = self._opening
                    try:
                        await asyncio.wait((opening,))
                    finally:
                        if opening.done() and self._opening is opening:
                            self._opening = None
                    link = opening.result()
                await link.settled.wait()
        except TimeoutError as error:
            raise Unreachable(f"the MCP server {self.server.name} was not ready within {limit_s:g} s") from error
        self.listing = link.listing
        return link

    async def aclose(self) -> None:
        """End what there is. It can be used again afterwards."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait((opening,))
        link, self._link = self._link, None
        if link is not None:
            await link.aclose()

    async def _connect(self) -> Link:
        old, self._link = self._link, None
        if old is not None:
            await old.aclose()
        why = ""
        for tried in range(MOST_TRIES):
            if tried:
                await asyncio.sleep(self._backoff_s * 2 ** (tried - 1))
            link = Link(self.server, "legacy" if tried else "auto")
            self._link = link  # so that whoever closes ends it, also while it opens
            try:
                async with asyncio.timeout(self.server.connect_timeout_s):
                    if await asyncio.shield(link.ready):
                        return link
                    why = link.failure
            except TimeoutError:
                why = f"no answer within {self.server.connect_timeout_s:g} s"
            finally:
                if link.is_lost or not link.ready.done():
                    await link.aclose()
        raise Unreachable(f"the MCP server {self.server.name} cannot be reached: {why}")


@functools.cache
def _answers() -> TypeAdapter[CallToolResult | InputRequiredResult]:
    from mcp_types import CallToolResult, InputRequiredResult  # noqa: PLC0415  # the extra `mcp` loads late
    from pydantic import TypeAdapter  # noqa: PLC0415  # loads late as well

    return TypeAdapter(CallToolResult | InputRequiredResult)
