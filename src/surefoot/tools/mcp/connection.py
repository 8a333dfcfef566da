"""The connection to one server within one event loop: opened at first need, shared, and opened again when lost."""

from __future__ import annotations

import asyncio

from surefoot.tools.mcp.declared import McpServer
from surefoot.tools.mcp.link import Link
from surefoot.tools.mcp.offers import Listing

MOST_TRIES = 3
"""Tries to connect before those who wait are told; the next one who needs the server begins anew."""


class Unreachable(Exception):
    """A server could not be reached in time; nothing was sent to it. The message says which and why."""


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
                link = await self._open_link()
                await link.settled()
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

    async def _open_link(self) -> Link:
        if self._link is not None and not self._link.is_lost:
            return self._link
        if self._opening is None:
            self._opening = asyncio.create_task(self._made(), name=f"mcp opening {self.server.name}")
        opening = self._opening
        try:
            await asyncio.wait((opening,))
        finally:
            if opening.done() and self._opening is opening:
                self._opening = None
        return opening.result()

    async def _made(self) -> Link:
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
                    if await link.opened():
                        return link
                    why = link.failure
            except TimeoutError:
                why = f"no answer within {self.server.connect_timeout_s:g} s"
            finally:
                if not link.is_open:
                    await link.aclose()
        raise Unreachable(f"the MCP server {self.server.name} cannot be reached: {why}")
