"""What comes through the door, and what does not: hosts, origins, bodies, tokens, sizes, and slow requests."""

from __future__ import annotations

import asyncio
import json
import logging
from io import BytesIO

import pytest
from server_world import raw, serving, token_of

from surefoot import MemoryJournal
from surefoot.server.site import Limits

pytestmark = pytest.mark.anyio

START = {"agent": "none", "task": "say hello"}


@pytest.mark.parametrize(
    ("host", "is_let_in"),
    [
        ("127.0.0.1:{port}", True),
        ("localhost:{port}", True),
        ("localhost", True),
        ("[::1]:{port}", True),
        ("RUNS.example", True),
        ("evil.example", False),
        ("evil.example:{port}", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:{port}", False),
        ("127.0.0.2:{port}", False),
        ("[::1].evil.example", False),
        ("", False),
    ],
)
async def test_a_host_has_to_be_one_of_its_own(host: str, is_let_in: bool) -> None:
    async with serving(MemoryJournal()) as served:
        named = host.format(port=served.port)
        for path in ("/v1/me", "/", "/healthz", "/openapi.json"):
            reply = await served.ask("GET", path, headers={"Host": named})
            assert (reply.status != 421) == is_let_in, (path, reply.body)
            assert reply.problem == ("" if is_let_in else "wrong_host")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "https://127.0.0.1:{port}"}, 200),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://localhost:{port}"}, 403),  # not the host that this request names
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "https://page.example"}, 200),
        ({"Origin": "https://page.example.evil.example"}, 403),
        ({"Origin": "https://page.example", "Sec-Fetch-Site": "cross-site"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
async def test_a_page_of_another_site_is_refused(headers: dict[str, str], status: int) -> None:
    async with serving(MemoryJournal(), origins=["https://page.example/"]) as served:
        sent = {name: value.format(port=served.port) for name, value in headers.items()}
        reply = await served.ask("GET", "/v1/me", headers=sent)
        assert reply.status == status
        assert reply.problem == ("foreign_origin" if status == 403 else "")
        is_foreign = sent.get("Origin") == "https://page.example"
        assert reply.headers.get("Access-Control-Allow-Origin") == ("https://page.example" if is_foreign else None)
        assert "Access-Control-Allow-Credentials" not in reply.headers


async def test_an_allowed_page_is_told_so_before_it_asks_and_no_other() -> None:
    async with serving(MemoryJournal(), origins=["https://page.example"]) as served:
        asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        good = await served.ask("OPTIONS", "/v1/runs", who="", headers={**asks, "Origin": "https://page.example"})
        assert good.status == 204
        assert good.headers["Access-Control-Allow-Headers"] == "authorization"
        bad = await served.ask("OPTIONS", "/v1/runs", who="", headers={**asks, "Origin": "https://evil.example"})
        assert bad.status == 403
        assert "Access-Control-Allow-Headers" not in bad.headers


async def test_a_link_on_another_site_opens_the_page_and_nothing_else_does() -> None:
    async with serving(MemoryJournal()) as served:
        click = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert (await served.ask("GET", "/runs/abc", who="", headers=click)).status == 200
        for other in ({"Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Dest": "image"}):
            assert (await served.ask("GET", "/runs/abc", who="", headers={**click, **other})).status == 403
        posted = await served.ask("POST", "/v1/runs", START, headers=click)
        assert (posted.status, posted.problem) == (403, "foreign_origin")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_a_body_has_to_be_json_so_that_no_form_can_be_sent(kind: str) -> None:
    async with serving(MemoryJournal()) as served:
        data = json.dumps(START).encode()
        reply = await served.ask("POST", "/v1/runs", data=data, headers={"Content-Type": kind})
        assert (reply.status, reply.problem) == (415, "not_json")


async def test_every_answer_says_what_a_browser_may_do_with_it() -> None:
    async with serving(MemoryJournal()) as served:
        for path in ("/", "/v1/me", "/nowhere", "/problems/changed", "/openapi.json"):
            headers = (await served.ask("GET", path)).headers
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cross-Origin-Opener-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "Server" not in headers


async def test_a_token_is_asked_for_and_who_guesses_is_soon_sent_away() -> None:
    async with serving(MemoryJournal()) as served:
        none = await served.ask("GET", "/v1/me", who="")
        assert (none.status, none.problem) == (401, "unauthorized")
        assert none.headers["WWW-Authenticate"] == "Bearer"
        basic = await served.ask("GET", "/v1/me", who="", headers={"Authorization": f"Basic {token_of('all')}"})
        assert basic.status == 401
        for _ in range(9):
            assert (await served.ask("GET", "/v1/me", who="guess")).status == 401
        for who in ("guess", "all"):
            blocked = await served.ask("GET", "/v1/me", who=who)
            assert (blocked.status, blocked.problem) == (429, "too_fast")
            assert 0 < int(blocked.headers["Retry-After"]) <= 60
        assert (await served.ask("GET", "/healthz", who="")).status == 200


async def test_too_many_requests_are_held_back_for_one_token_alone() -> None:
    async with serving(MemoryJournal(), limits=Limits(burst=5, requests_s=0.01)) as served:
        assert [(await served.ask("GET", "/v1/me")).status for _ in range(6)] == [200] * 5 + [429]
        assert (await served.ask("GET", "/v1/me", who="reader")).status == 200


async def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    async with serving(MemoryJournal()) as served:
        large = b'{"reason":"' + b"x" * 2 * 1024 * 1024 + b'"}'
        reply = await served.ask("POST", "/v1/runs/none/cancel", data=BytesIO(large))
        assert (reply.status, reply.problem) == (413, "too_large")
        head = f"POST /v1/runs/none/cancel HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token_of('all')}\r\n"
        head += "Content-Type: application/json\r\n"
        announced = await raw(served.port, f"{head}Connection: close\r\nContent-Length: 99999999999\r\n\r\n".encode())
        assert announced.startswith(b"HTTP/1.1 413")
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        chunked = f"{head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + piece * 17 + b"0\r\n\r\n"
        assert (await raw(served.port, chunked)).startswith(b"HTTP/1.1 413")


async def test_ten_thousand_headers_are_too_many() -> None:
    async with serving(MemoryJournal()) as served:
        headers = "".join(f"X-{number}: y\r\n" for number in range(10_000))
        found = await raw(
            served.port, f"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n".encode()
        )
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


async def test_what_is_not_there_is_a_problem_with_a_page_of_its_own() -> None:
    async with serving(MemoryJournal()) as served:
        for method, path, status, name in (
            ("GET", "/nowhere", 404, "not_found"),
            ("DELETE", "/v1/runs", 405, "no_such_method"),
            ("GET", "/static/../../auth.py", 404, "not_found"),
            ("GET", "/static/%2e%2e/auth.py", 404, "not_found"),
            ("GET", "/static/..%2f..%2fauth.py", 404, "not_found"),
            ("GET", "/problems/none", 404, "not_found"),
        ):
            reply = await served.ask(method, path, headers=None)
            assert (reply.status, reply.problem) == (status, name), path
        page = await served.ask("GET", "/problems/changed", who="")
        assert page.status == 200
        assert b"The question has changed" in page.body


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
