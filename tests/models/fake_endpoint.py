"""A server on the loopback that answers what a test tells it to, byte by byte, and remembers what it was asked."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, cast

import orjson

Json = dict[str, object]


@dataclass(frozen=True)
class Reply:
    """Pieces are written one by one, each on its own; afterwards the connection is kept, closed, or held open."""

    pieces: tuple[bytes, ...]
    then: Literal["keep", "close", "hold"] = "keep"


@dataclass
class FakeEndpoint:
    base_url: str = ""
    bodies: list[Json] = field(default_factory=list[Json])
    headers: list[str] = field(default_factory=list[str])
    connections: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    script: list[Reply] = field(default_factory=list[Reply])
    decide: Callable[[Json], Reply] | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().split("content-length:")[1].split("\r\n")[0])
                body = cast("Json", orjson.loads(await reader.readexactly(length)))
                self.headers.append(head)
                self.bodies.append(body)
                self.asked.set()
                reply = self.decide(body) if self.decide else self.script.pop(0)
                for piece in reply.pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if reply.then == "hold":
                    await reader.read()
                    self.hung_up.set()
                if reply.then != "keep":
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.hung_up.set()
        finally:
            writer.close()


@asynccontextmanager
async def endpoint(*script: Reply, port: int = 0) -> AsyncGenerator[FakeEndpoint, None]:
    fake = FakeEndpoint(script=list(script))
    server = await asyncio.start_server(fake.serve, "127.0.0.1", port)
    fake.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield fake
    finally:
        server.close()


def answer(body: object, status: int = 200, headers: str = "", kind: str = "application/json") -> Reply:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(raw)}\r\n{headers}\r\n"
    return Reply((head.encode() + raw,))


def refusal(status: int, message: str, *, code: object = None, param: object = None, headers: str = "") -> Reply:
    error = {"message": message, "type": "invalid_request_error", "code": code, "param": param}
    return answer({"error": error}, status, headers)


def said(content: object, finish: str = "stop", **message: object) -> Reply:
    return answer(completion(content, finish, **message))


def completion(content: object, finish: str = "stop", **message: object) -> Json:
    return {
        "id": "chatcmpl-1",
        "model": "m-2026",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"content": content, **message}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(raw: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(raw), raw)


def stream(pieces: Iterable[bytes], *, then: Literal["keep", "close", "hold"] = "keep", end: bool = True) -> Reply:
    chunks = [chunked(piece) for piece in pieces if piece]
    return Reply((STREAM_HEAD, *chunks, *([b"0\r\n\r\n"] if end else [])), then)


def event(delta: Json | None = None, finish: str | None = None, **fields: object) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + orjson.dumps({"id": "c1", "model": "m-2026", "choices": choices, **fields}) + b"\n\n"


DONE = b"data: [DONE]\n\n"
