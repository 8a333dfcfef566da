"""The client of the SDK, which speaks to a server of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2  # it comes with the SDK
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent
from server_world import LIMIT_S, Served, token_of


@asynccontextmanager
async def client_of(served: Served, mode: Any = "legacy", who: str = "all", **more: Any) -> AsyncGenerator[Client]:
    """A client with a token; `mode` is how it speaks: "legacy" for 2025-11-25, else the version."""
    headers = {"Authorization": f"Bearer {token_of(who)}"}
    async with (
        asyncio.timeout(LIMIT_S),
        httpx2.AsyncClient(headers=headers, timeout=LIMIT_S) as http,
        Client(streamable_http_client(f"{served.url}/mcp", http_client=http), mode=mode, **more) as client,
    ):
        yield client


def text_of(result: CallToolResult) -> str:
    """The one text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
