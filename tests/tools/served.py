"""What the tests of the web share: a local server, and resolvers of names."""

import asyncio
import gzip
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from surefoot.tools.web import Resolve


@asynccontextmanager
async def serving(answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> AsyncGenerator[int]:
    """A server on this machine; its port."""
    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


@dataclass
class Site:
    """A local server: `/to?where=…` leads on, `/count?n=…` so many times; of what it does not know it tells its secret.

    `asked` are the requests that came.
    """

    port: int = 0
    asked: list[web.BaseRequest] = field(default_factory=list[web.BaseRequest])

    @property
    def pair(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.asked]

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        match request.path:
            case "/to":
                headers = {"Location": request.query["where"], "Set-Cookie": "a=b"}
                return web.Response(status=302, headers=headers)
            case "/count" if (left := int(request.query["n"])) > 0:
                return web.Response(status=307, headers={"Location": f"/count?n={left - 1}"})
            case "/page":
                return web.Response(text="<p>Hello <b>there</b>", content_type="text/html")
            case "/gzip":
                body = gzip.compress(b"squeezed")
                return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": "text/plain"})
            case "/huge-header":
                return web.Response(text="x", headers={"X-Huge": "x" * 100_000})
            case "/png":
                return web.Response(body=b"\x89PNG", content_type="image/png")
            case "/slow":
                response = web.StreamResponse(headers={"Content-Type": "text/plain"})
                await response.prepare(request)
                while True:
                    await response.write(b"x")
                    await asyncio.sleep(0.01)  # the drip is the case; the client hangs up
            case "/busy" | "/nothing":
                return web.Response(status=503 if request.path == "/busy" else 404)
            case _:
                return web.Response(text=f"the secret of {self.port}")


async def never(host: str, port: int) -> Sequence[str]:
    raise AssertionError(f"{host}:{port} was looked up")


def answering(*answers: Sequence[str]) -> tuple[Resolve, list[str]]:
    """A resolver that gives one answer after the other, the last one ever after, and what it was asked."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(f"{host}:{port}")
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked
