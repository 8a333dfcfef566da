"""What stands between the runtimes and the server: it makes their requests alike, and counts them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import orjson
from aiohttp import web

from evals.results import Row

MAX_TOKENS = 256
LIMIT_S = 1800


@dataclass(slots=True)
class Count:
    """What went through since it was last set to zero; `model_s` is what the server says that it worked.

    `lost` are requests that no server answered.
    """

    requests: int = 0
    lost: int = 0
    tokens_in: int = 0
    cached: int = 0
    tokens_out: int = 0
    model_s: float = 0.0


@asynccontextmanager
async def counting(server: str) -> AsyncGenerator[tuple[str, Count]]:
    """A server's base URL, counted: gives the base URL to use. Temperature and length of replies are set for all."""
    count = Count()

    async def forward(request: web.Request) -> web.Response:
        body: Row = orjson.loads(await request.read())
        length = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        body |= {"temperature": 0, length: MAX_TOKENS, "cache_prompt": True}
        try:
            async with client.post(f"{server}/v1/chat/completions", json=body) as reply:
                said = await reply.read()
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            count.lost += 1
            return web.json_response({"error": {"message": str(error)}}, status=502)
        told: Row = orjson.loads(said)
        usage: Row = told.get("usage") or {}
        details: Row = usage.get("prompt_tokens_details") or {}
        timings: Row = told.get("timings") or {}
        count.requests += 1
        count.tokens_in += usage.get("prompt_tokens", 0)
        count.cached += details.get("cached_tokens", 0)
        count.tokens_out += usage.get("completion_tokens", 0)
        count.model_s += (timings.get("prompt_ms", 0) + timings.get("predicted_ms", 0)) / 1000
        return web.Response(body=said, status=reply.status, content_type="application/json")

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", forward)
    runner = web.AppRunner(app)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LIMIT_S)) as client:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", count
        finally:
            await runner.cleanup()
