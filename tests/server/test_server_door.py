"""What comes through the door, and what does not: hosts, origins, bodies, tokens, sizes, and slow requests."""

from __future__ import annotations

import asyncio
import logging
from io import BytesIO

import pytest
from server_world import Served, raw, serving, token_of

from surefoot import MemoryJournal
from surefoot.server.site import Limits

pytestmark = pytest.mark.anyio


async def test_every_answer_says_what_a_browser_may_load(served: Served) -> None:
    for path in ("/", "/v1/me", "/nowhere", "/problems/changed", "/openapi.json"):
        assert "default-src 'none'" in (await served.ask("GET", path)).headers["Content-Security-Policy"]


async def test_a_token_is_asked_for_and_who_guesses_is_soon_sent_away(served: Served) -> None:
    none = await served.refused("401 unauthorized", "GET", "/v1/me", who="")
    assert none.headers["WWW-Authenticate"] == "Bearer"
    basic = await served.ask("GET", "/v1/me", who="", headers={"Authorization": f"Basic {token_of('all')}"})
    assert basic.status == 401
    for _ in range(9):
        assert (await served.ask("GET", "/v1/me", who="guess")).status == 401
    for who in ("guess", "all"):
        blocked = await served.refused("429 too_fast", "GET", "/v1/me", who=who)
        assert 0 < int(blocked.headers["Retry-After"]) <= 60
    assert (await served.ask("GET", "/healthz", who="")).status == 200


async def test_too_many_requests_are_held_back_for_one_token_alone() -> None:
    async with serving(MemoryJournal(), limits=Limits(burst=5, requests_s=0.01)) as served:
        assert [(await served.ask("GET", "/v1/me")).status for _ in range(6)] == [200] * 5 + [429]
        assert (await served.ask("GET", "/v1/me", who="reader")).status == 200


async def test_what_is_too_large_is_refused_before_it_is_read(served: Served) -> None:
    large = b'{"reason":"' + b"x" * 2 * 1024 * 1024 + b'"}'
    await served.refused("413 too_large", "POST", "/v1/runs/none/cancel", data=BytesIO(large))
    head = f"POST /v1/runs/none/cancel HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token_of('all')}\r\n"
    head += "Content-Type: application/json\r\n"
    announced = await raw(served.port, f"{head}Connection: close\r\nContent-Length: 99999999999\r\n\r\n".encode())
    assert announced.startswith(b"HTTP/1.1 413")
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    chunked = f"{head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + piece * 17 + b"0\r\n\r\n"
    assert (await raw(served.port, chunked)).startswith(b"HTTP/1.1 413")


async def test_ten_thousand_headers_are_too_many(served: Served) -> None:
    headers = "".join(f"X-{number}: y\r\n" for number in range(10_000))
    found = await raw(served.port, f"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n".encode())
    assert found.startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\nHost: loc", b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab"]
)
async def test_whoever_does_not_finish_a_request_is_cut_off(data: bytes) -> None:
    async with serving(MemoryJournal(), limits=Limits(idle_s=1.0)) as served:
        await raw(served.port, data, limit_s=10)


async def test_a_header_that_drips_in_buys_no_time() -> None:
    async with serving(MemoryJournal(), limits=Limits(idle_s=1.0)) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        closed = asyncio.ensure_future(reader.read())
        async with asyncio.timeout(10):
            while not closed.done():
                writer.write(b"GET / HTTP/1.1\r\n" if reader.at_eof() else b"X")
                await asyncio.wait((closed,), timeout=0.05)
        writer.close()


async def test_a_body_that_never_comes_is_not_waited_for() -> None:
    async with serving(MemoryJournal(), limits=Limits(idle_s=1.0)) as served:
        head = f"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token_of('all')}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 10\r\nConnection: close\r\n\r\n"
        assert b"408" in (await raw(served.port, head.encode(), limit_s=10)).partition(b"\r\n")[0]


async def test_the_log_names_templates_and_tokens_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(MemoryJournal()) as served:
        await served.ask("GET", "/v1/runs/secret-run/rows?q=secret-word")
        await served.ask("POST", "/v1/runs", {"agent": "none", "task": "secret task"})
        await served.ask("GET", "/v1/me", who="wrong-secret")
        await served.ask("GET", "/secret-path")
    told = caplog.text
    assert "GET /v1/runs/{run_id}/rows 404" in told
    assert " all\n" in told
    for secret in ("secret-run", "secret-word", "secret task", "wrong-secret", "secret-path", token_of("all")):
        assert secret not in told
