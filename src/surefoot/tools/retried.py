"""Making a call again that failed for reasons of connection, time or load, and not its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from surefoot.types.tools import ToolResult

MOST_RETRIES = 2
FIRST_WAIT_S = 0.1
"""Seconds before the first retry, and half of those before the second."""


async def retried(
    call: Callable[[], Awaitable[ToolResult]],
    limit_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> ToolResult:
    """What a call gives that may be repeated: after a failure of infrastructure it is made again, at most twice.

    Before that it waits as long as the failure asks for, else a little and then twice as long. Where this would take it
    beyond `limit_s` seconds from the start, the failure stands. Source: spec/primitives.md, 2.5.
    """
    until = clock() + limit_s
    for retry in range(MOST_RETRIES):
        result = await call()
        wait_s = FIRST_WAIT_S * 2**retry if result.retry_after_s is None else result.retry_after_s
        if not result.infrastructure or clock() + wait_s >= until:
            return result
        await sleep(wait_s)
    return await call()
