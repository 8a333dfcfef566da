"""What the tests of the web share: a local server, and resolvers of names."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

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


async def never(host: str, port: int) -> Sequence[str]:
    raise AssertionError(f"{host}:{port} was looked up")


def answering(*answers: Sequence[str]) -> tuple[Resolve, list[str]]:
    """A resolver that gives one answer after the other, the last one ever after, and what it was asked."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(f"{host}:{port}")
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked
