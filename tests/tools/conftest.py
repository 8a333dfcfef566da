"""What the tests of tools share."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from served import Site, serving

from surefoot.types.ports import Tool, ToolCallContext
from surefoot.types.tools import ToolResult

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A local server."""
    site = Site()
    async with serving(site.answer) as site.port:
        yield site


@pytest.fixture
def context() -> ToolCallContext:
    return ToolCallContext(run_id="run", call_id="call", idempotency_key="key")


@pytest.fixture
def call(context: ToolCallContext) -> Call:
    async def once(tool: Tool, /, **arguments: object) -> ToolResult:
        return await tool.call(arguments, context)

    return once
