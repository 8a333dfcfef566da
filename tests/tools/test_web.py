"""`web_fetch` against a real local server, and against what it must not reach."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from yarl import URL

from surefoot.tools.calling import ToolFailed
from surefoot.tools.web import Resolve, checked_hop, web_fetch_tool
from surefoot.types.errors import ConfigError
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
Call = Callable[..., Awaitable[ToolResult]]


@dataclass
class Site:
    """A local server: its port, and what it was asked."""

    port: int = 0
    asked: list[web.BaseRequest] = field(default_factory=list[web.BaseRequest])

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        match request.path:
            case "/page":
                return web.Response(text="<p>Hello <b>there</b>", content_type="text/html")
            case "/gzip":
                body = gzip.compress(b"squeezed")
                return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": "text/plain"})
            case "/bomb":
                body = gzip.compress(bytes(64 * 1024 * 1024), compresslevel=1)
                return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": "text/plain"})
            case "/to":
                location = request.query["where"]
                return web.Response(status=302, headers={"Location": location, "Set-Cookie": "a=b"})
            case "/count":
                left = int(request.query["n"])
                return web.Response(status=302, headers={"Location": f"/count?n={left - 1}" if left > 1 else "/page"})
            case "/huge-header":
                return web.Response(text="x", headers={"X-Huge": "x" * 100_000})
            case "/png":
                return web.Response(body=b"\x89PNG", content_type="image/png")
            case "/slow":
                return await self.drip(request)
            case "/busy":
                return web.Response(status=503)
            case _:
                return web.Response(status=404)

    async def drip(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.01)  # the drip is the case; the client hangs up


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    runner = web.ServerRunner(web.Server(site.answer), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    site.port = int(runner.addresses[0][1])
    yield site
    await runner.cleanup()


async def never(host: str, port: int) -> Sequence[str]:
    raise AssertionError(f"{host}:{port} was looked up")


def answering(*addresses: str) -> tuple[Resolve, list[str]]:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        del port
        asked.append(host)
        return addresses

    return resolve, asked


class TestFetching:
    @pytest.fixture
    def fetch(self, site: Site, call: Call) -> Call:
        made = web_fetch_tool(allow_hosts=(f"127.0.0.1:{site.port}",), timeout_s=5, resolve=never)

        async def once(path: str) -> ToolResult:
            return await call(made, url=f"http://127.0.0.1:{site.port}{path}")

        return once

    async def test_a_page_becomes_text(self, fetch: Call, site: Site) -> None:
        assert await fetch("/page#part") == ToolResult("Hello there", source=f"http://127.0.0.1:{site.port}/page")
        (request,) = site.asked
        assert request.method == "GET"
        assert request.headers["Host"] == f"127.0.0.1:{site.port}"
        assert not {"Cookie", "Authorization"} & set(request.headers)

    async def test_compressed_answers(self, fetch: Call) -> None:
        assert (await fetch("/gzip")).content == "squeezed"
        assert "larger than" in (await fetch("/bomb")).content

    async def test_redirects_are_followed_without_cookies(self, fetch: Call, site: Site) -> None:
        assert (await fetch("/to?where=/page")).content == "Hello there"
        assert "Cookie" not in site.asked[-1].headers
        assert (await fetch("/count?n=5")).content == "Hello there"
        assert "more than 5 times" in (await fetch("/count?n=6")).content

    @pytest.mark.parametrize(
        "target",
        [
            "http://127.0.0.1:1/",
            "http://localhost/",
            "http://169.254.169.254/latest/meta-data/",
            "http://metadata.google.internal/",
            "http://[::ffff:10.0.0.1]/",
            "//10.0.0.1/",
            "file:///etc/passwd",
            "ftp://example.com/x",
            "http://user:word@127.0.0.1/",
        ],
    )
    async def test_a_redirect_is_checked_like_the_first(self, fetch: Call, site: Site, target: str) -> None:
        result = await fetch(f"/to?where={target}")
        assert result.is_error
        assert not result.infrastructure
        assert len(site.asked) == 1

    async def test_failures_are_told(self, fetch: Call) -> None:
        assert await fetch("/nothing") == ToolResult("The server answered 404 Not Found.", kind="error")
        assert (await fetch("/busy")).infrastructure
        assert (await fetch("/png")).content == "The answer is not text (image/png)."
        assert (await fetch("/huge-header")).is_error

    async def test_a_slow_drip_ends_with_the_time(self, site: Site, call: Call) -> None:
        made = web_fetch_tool(allow_hosts=(f"127.0.0.1:{site.port}",), timeout_s=0.2)
        result = await call(made, url=f"http://127.0.0.1:{site.port}/slow")
        assert (result.kind, result.infrastructure) == ("timeout", True)

    async def test_nobody_there(self, call: Call) -> None:
        made = web_fetch_tool(allow_hosts=("127.0.0.1:1",))
        result = await call(made, url="http://127.0.0.1:1/")
        assert (result.kind, result.infrastructure) == ("error", True)

    async def test_proxies_of_the_environment_are_not_used(self, fetch: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        assert not (await fetch("/page")).is_error


class TestNames:
    async def test_a_name_is_resolved_once_and_pinned(self, site: Site, call: Call) -> None:
        """A name that answers differently the second time is never asked a second time."""
        asked: list[str] = []

        async def changing(host: str, port: int) -> Sequence[str]:
            del port
            asked.append(host)
            return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.99"]

        made = web_fetch_tool(allow_hosts=(f"site.test:{site.port}",), resolve=changing)
        result = await call(made, url=f"http://SITE.test:{site.port}/page")
        assert result.content == "Hello there"
        assert asked == ["site.test"]
        assert site.asked[0].headers["Host"] == f"site.test:{site.port}"

    async def test_each_redirect_is_resolved_anew(self, site: Site, call: Call) -> None:
        resolve, asked = answering("127.0.0.1")
        made = web_fetch_tool(allow_hosts=(f"a.test:{site.port}", f"b.test:{site.port}"), resolve=resolve)
        target = f"http://b.test:{site.port}/page"
        assert (await call(made, url=f"http://a.test:{site.port}/to?where={target}")).source == target
        assert asked == ["a.test", "b.test"]

    @pytest.mark.parametrize(
        "addresses",
        [("127.0.0.1",), ("8.8.8.8", "10.0.0.1"), ("8.8.8.8", "::1"), ("fe80::1%1",), ("169.254.169.254",), ()],
    )
    async def test_every_address_must_be_public(self, call: Call, addresses: tuple[str, ...]) -> None:
        resolve, asked = answering(*addresses)
        assert (await call(web_fetch_tool(resolve=resolve), url="http://example.com/")).is_error
        assert asked == ["example.com"]

    async def test_an_allowed_name_does_not_open_metadata(self, call: Call) -> None:
        resolve, _ = answering("169.254.169.254")
        made = web_fetch_tool(allow_hosts=("inner.test:80",), resolve=resolve)
        assert "metadata" in (await call(made, url="http://inner.test/")).content

    async def test_international_names_are_encoded_before_they_are_compared(self, site: Site, call: Call) -> None:
        resolve, asked = answering("127.0.0.1")
        made = web_fetch_tool(allow_hosts=(f"bücher.test:{site.port}",), resolve=resolve)
        assert not (await call(made, url=f"http://xn--bcher-kva.test:{site.port}/page")).is_error
        assert asked == ["xn--bcher-kva.test"]

    async def test_a_name_that_is_not_found(self, call: Call) -> None:
        async def unknown(host: str, port: int) -> Sequence[str]:
            raise OSError(host, port)

        result = await call(web_fetch_tool(resolve=unknown), url="http://nowhere.test/")
        assert (result.content, result.infrastructure) == ("The host nowhere.test cannot be found.", True)


REFUSED = [
    *("http://127.0.0.1/", "http://2130706433/", "http://127.1/", "http://0x7f.1/", "http://0177.0.0.1/", "http://0/"),
    *("http://localhost/", "http://localhost./", "http://LOCALHOST/", "http://x.localhost/", "http://localhost:3000/"),
    *(
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[fe80::1%25eth0]/",
    ),
    *("http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://[2001:0:1::1]/", "http://[fd00:ec2::254]/"),
    *("http://10.0.0.5/", "http://192.168.1.1/", "http://172.16.0.1/", "http://100.64.0.1/", "http://169.254.169.254/"),
    *("http://100.100.100.200/", "http://168.63.129.16/", "http://metadata.google.internal/computeMetadata/"),
    *("http://１２７.０.０.１/", "http://127。0。0。1/", "http://ⓛocalhost/", "http://0.0.0.0/", "http://224.0.0.1/"),
    *("http://8.8.8.8:8080/", "https://8.8.8.8:22/", "http://1.2.3.4.5/", "http://256.1.1.1/"),
    *("ftp://8.8.8.8/", "file:///etc/passwd", "gopher://8.8.8.8/", "data:text/plain,x", "javascript:1", "/etc/passwd"),
    *("http://", "http:///x", "", "http://user@8.8.8.8/", "http://user:word@8.8.8.8/", "http://8.8.8.8\\@127.0.0.1/"),
    *(
        "http://8.8.8.8 /",
        "http://8.8.8.8/\nx",
        "http://8.8.8.8/a b",
        "http://8.8.8.8/\u202e",
        "http://[::1",
        "http://a:b/",
    ),
    f"http://8.8.8.8/{'x' * 3000}",
]


@pytest.mark.parametrize("url", REFUSED)
async def test_refused_before_anything_is_looked_up(call: Call, url: str) -> None:
    result = await call(web_fetch_tool(resolve=never, timeout_s=2), url=url)
    assert result.kind == "error"
    assert not result.infrastructure
    assert "Error:" not in result.content


async def test_https_does_not_lead_to_http() -> None:
    resolve, _ = answering("8.8.8.8")
    with pytest.raises(ToolFailed, match="https to http"):
        await checked_hop(URL("http://example.com/"), frozenset(), resolve, "https")
    hop = await checked_hop(URL("https://example.com/"), frozenset(), resolve, "http")
    assert [str(address) for address in hop.addresses] == ["8.8.8.8"]


async def test_metadata_is_open_when_it_is_named() -> None:
    hop = await checked_hop(URL("http://169.254.169.254/"), frozenset({("169.254.169.254", 80)}), never)
    assert hop.addresses


@pytest.mark.parametrize("entry", ["localhost", "", "http://x:80", "x:80/path", "u@x:80", "x:99999", "256.1.1.1:80"])
def test_allowed_hosts_are_pairs(entry: str) -> None:
    with pytest.raises(ConfigError, match="host:port"):
        web_fetch_tool(allow_hosts=(entry,))


def test_what_it_promises() -> None:
    spec = web_fetch_tool().spec
    assert (spec.name, spec.effect, spec.parameters["required"]) == ("web_fetch", "read", ["url"])
