"""A proxy on loopback that cuts what a server says after some bytes, and a reader who comes again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import aiohttp
from server_world import LIMIT_S, frames_of, token_of


@dataclass
class Proxy:
    """Where it listens, and how often it has cut."""

    port: int = 0
    cuts: int = 0


@asynccontextmanager
async def cutting(port: int, after: Callable[[], int | None]) -> AsyncGenerator[Proxy]:
    """Pass connections on to `port`; of each, as many bytes of the answer as `after` says, all of them for None."""
    proxy = Proxy()
    handling: set[asyncio.Task[object]] = set()

    async def up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()

    async def down(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = after()
        while left is None or left > 0:
            data = await reader.read(65_536 if left is None else min(left, 65_536))
            if not data:
                return
            left = None if left is None else left - len(data)
            writer.write(data)
            await writer.drain()
        proxy.cuts += 1

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        both = {asyncio.ensure_future(up(reader, far_writer)), asyncio.ensure_future(down(far_reader, writer))}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            for line in (writer, far_writer):
                line.close()
                with suppress(OSError):
                    await line.wait_closed()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handling.add(asyncio.ensure_future(passed(reader, writer)))

    async with await asyncio.start_server(begin, "127.0.0.1", 0) as listening:
        proxy.port = listening.sockets[0].getsockname()[1]
        yield proxy
    for one in handling:
        one.cancel()
    await asyncio.gather(*handling, return_exceptions=True)


async def followed(port: int, path: str, who: str = "all") -> list[dict[str, str]]:
    """All records of a stream to its end, over as many connections as it takes."""
    found: list[dict[str, str]] = []
    async with asyncio.timeout(LIMIT_S * 10):
        while True:
            last = {"Last-Event-ID": found[-1]["id"]} if found else {}
            headers = {"Authorization": f"Bearer {token_of(who)}", "Accept": "text/event-stream", **last}
            with suppress(aiohttp.ClientError):
                async with (
                    aiohttp.ClientSession() as client,
                    client.get(f"http://127.0.0.1:{port}{path}", headers=headers) as response,
                ):
                    async for one in frames_of(response.content):
                        if "id" in one:
                            found.append(one)
                        if one["event"] == "end":
                            return found
