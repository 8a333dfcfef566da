"""The MCP servers of one agent: their tools for a run that begins, and the end of them all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from importlib.util import find_spec
from types import TracebackType
from weakref import WeakKeyDictionary

from surefoot.tools.mcp.config import McpServer
from surefoot.tools.mcp.link import Connection, Unreachable
from surefoot.tools.mcp.offers import Listing
from surefoot.tools.mcp.tool import McpTool
from surefoot.types.errors import UsageError, extra_needed

_LOG = logging.getLogger("surefoot")


class McpServers:
    """Servers with one connection each, opened when it is first needed and shared by all runs of an event loop.

    `async with McpServers(servers_of("mcp.json")) as servers:` closes them at the end; so does `aclose`. Raises
    `UsageError` when the extra is not installed. `backoff_s`: the pause after a try to connect that failed.
    """

    def __init__(self, servers: Sequence[McpServer], *, backoff_s: float = 0.5) -> None:
        if servers and find_spec("mcp") is None:
            raise UsageError(f"MCP servers need the package mcp; {extra_needed('mcp')}")
        self.servers = tuple(servers)
        self._backoff_s = backoff_s
        # A connection belongs to the loop that opened it, and `run_sync` makes a loop for each run.
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, _Held] = WeakKeyDictionary()

    async def __aenter__(self) -> McpServers:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def tools(self) -> tuple[McpTool, ...]:
        """The tools as they are now, for a run that begins: servers in their order, tools in that of the server.

        The same object as before while nothing has changed. What changes later is not seen by that run: new tools stay
        hidden from it, and one whose pin changed refuses to be called. A server that was reached before and cannot be
        now offers what it did, and its calls fail. Raises `UsageError` for one that was never reached and is not
        `optional`.
        """
        return (await self._current()).tools

    async def listings(self) -> dict[str, Listing]:
        """What each server offers, by its name, as of `tools`; without optional servers that were never reached."""
        held = await self._current()
        return {one.server.name: listing for one, listing in zip(held.connections, held.of, strict=True) if listing}

    async def aclose(self) -> None:
        """Close the connections of this event loop and end its processes. Can be used again afterwards."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await asyncio.gather(*(connection.aclose() for connection in held.connections))

    async def _current(self) -> _Held:
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            self._held[loop] = _Held(tuple(Connection(server, self._backoff_s) for server in self.servers))
        held = self._held[loop]
        now = tuple(await asyncio.gather(*map(_listing, held.connections)))
        if any(old is not new for old, new in zip(held.of, now, strict=True)):
            held.of = now
            held.tools = tuple(
                McpTool(offer, connection)
                for connection, listing in zip(held.connections, now, strict=True)
                if listing
                for offer in listing.offers.values()
            )
        return held


class _Held:
    """The connections of one event loop, and the tools that were made from their listings."""

    def __init__(self, connections: tuple[Connection, ...]) -> None:
        self.connections = connections
        self.of: tuple[Listing | None, ...] = (None,) * len(connections)
        self.tools: tuple[McpTool, ...] = ()


async def _listing(connection: Connection) -> Listing | None:
    """What it offers now, else what it offered before; None for an optional one that was never reached."""
    try:
        await connection.ready()
    except Unreachable as error:
        if connection.listing is None and not connection.server.optional:
            raise UsageError(f'{error}; mend it, or give it "optional": true') from error
        _LOG.warning("%s; the run begins %s", error, "with its tools as they were" if connection.listing else "without")
    return connection.listing
