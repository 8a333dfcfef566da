"""Which hosts and addresses are open, however they are spelt, and what `web_fetch` gives of them."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest
from aiohttp import web
from served import answering, never, serving

from cases import each
from surefoot.tools.web import (
    host_refusal,
    is_metadata,
    is_this_machine,
    literal_address,
    plain_host,
    refusal,
    web_fetch_tool,
)
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
    async with serving(site.answer) as site.port:
        yield site


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

    async def test_failures_are_told(self, fetch: Call) -> None:
        assert await fetch("/nothing") == ToolResult(
            "The server answered 404 Not Found.", kind="error", error="parameter:404"
        )
        assert (await fetch("/busy")).infrastructure
        told = "The answer is image/png, not text. Only text, such as HTML, JSON or XML, can be fetched."
        assert (await fetch("/png")).content == told
        assert (await fetch("/huge-header")).is_error

    async def test_a_slow_drip_ends_with_the_time_and_nobody_may_be_there(self, site: Site, call: Call) -> None:
        for port, kind in ((site.port, "timeout"), (1, "error")):
            made = web_fetch_tool(allow_hosts=(f"127.0.0.1:{port}",), timeout_s=0.2)
            result = await call(made, url=f"http://127.0.0.1:{port}/slow")
            assert (result.kind, result.infrastructure) == (kind, True)

    async def test_proxies_of_the_environment_are_not_used(self, fetch: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        assert not (await fetch("/page")).is_error


class TestNames:
    async def test_a_name_is_resolved_once_and_pinned(self, site: Site, call: Call) -> None:
        """A name that answers differently the second time is never asked a second time."""
        resolve, asked = answering(["127.0.0.1"], ["127.0.0.99"])
        made = web_fetch_tool(allow_hosts=(f"site.test:{site.port}",), resolve=resolve)
        result = await call(made, url=f"http://SITE.test:{site.port}/page")
        assert (result.content, asked) == ("Hello there", [f"site.test:{site.port}"])
        assert site.asked[0].headers["Host"] == f"site.test:{site.port}"

    async def test_each_redirect_is_resolved_anew(self, site: Site, call: Call) -> None:
        resolve, asked = answering(["127.0.0.1"])
        hosts = [f"a.test:{site.port}", f"b.test:{site.port}"]
        made, target = web_fetch_tool(allow_hosts=hosts, resolve=resolve), f"http://{hosts[1]}/page"
        assert (await call(made, url=f"http://{hosts[0]}/to?where={target}")).source == target
        assert asked == hosts

    async def test_international_names_are_encoded_before_they_are_compared(self, site: Site, call: Call) -> None:
        """adv-homograph: hosts are compared as they are asked for."""
        resolve, asked = answering(["127.0.0.1"])
        made = web_fetch_tool(allow_hosts=(f"bücher.test:{site.port}",), resolve=resolve)
        assert not (await call(made, url=f"http://xn--bcher-kva.test:{site.port}/page")).is_error
        assert asked == [f"xn--bcher-kva.test:{site.port}"]

    async def test_a_name_that_is_not_found(self, call: Call) -> None:
        async def unknown(host: str, port: int) -> Sequence[str]:
            raise OSError(host, port)

        result = await call(web_fetch_tool(resolve=unknown), url="http://nowhere.test/")
        assert (result.content, result.infrastructure) == ("The host nowhere.test cannot be found.", True)


@pytest.mark.parametrize("entry", ["localhost", "", "http://x:80", "x:80/path", "u@x:80", "x:99999", "256.1.1.1:80"])
def test_allowed_hosts_are_pairs(entry: str) -> None:
    with pytest.raises(ConfigError, match="host:port"):
        web_fetch_tool(allow_hosts=(entry,))


def test_what_it_promises() -> None:
    spec = web_fetch_tool().spec
    assert (spec.name, spec.effect, spec.parameters["required"]) == ("web_fetch", "read", ["url"])


@each(("host", "address"), [
    ("127.0.0.1", "127.0.0.1"), ("2130706433", "127.0.0.1"), ("127.1", "127.0.0.1"), ("127.0.1", "127.0.0.1"),
    ("0x7f.1", "127.0.0.1"), ("0x7f000001", "127.0.0.1"), ("0X7F.0.0.1", "127.0.0.1"), ("0177.0.0.01", "127.0.0.1"),
    ("017700000001", "127.0.0.1"), ("0", "0.0.0.0"), ("127.0.0.1.", "127.0.0.1"), ("1.65535", "1.0.255.255"),
    ("[::1]", "::1"), ("::ffff:7f00:1", "::ffff:127.0.0.1"),
])  # fmt: skip
def test_every_spelling_is_read(host: str, address: str) -> None:
    assert literal_address(host) == ip_address(address)


@pytest.mark.parametrize("host", ["example.com", "1.example", "0x7f.example", "xn--bcher-kva.example", "a"])
def test_names_are_no_addresses(host: str) -> None:
    assert literal_address(host) is None


@each("host", ["1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "a.1", "08", "1..1", "a.0x1", "::g"])
def test_what_ends_like_a_number_is_an_address_or_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        literal_address(host)


@each("address", [
    *("8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.169.0.1", "223.255.255.255"),
    *("2606:4700::1111", "2a00::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"),
])  # fmt: skip
def test_open(address: str) -> None:
    assert refusal(ip_address(address)) == ""


def test_metadata_is_known_inside_other_addresses() -> None:
    assert is_metadata(ip_address("::ffff:169.254.169.254"))
    assert is_metadata(ip_address("168.63.129.16"))
    assert not is_metadata(ip_address("::ffff:169.254.169.253"))


@pytest.mark.parametrize("host", ["localhost.", "LOCALHOST", "a.localhost", "metadata.google.internal", "Metadata"])
def test_closed_names(host: str) -> None:
    assert host_refusal(plain_host(host))


def test_open_names() -> None:
    assert host_refusal("example.com") == host_refusal("mylocalhost") == ""


@each(("host", "is_it"), [
    *((each, True) for each in ("localhost", "x.localhost", "127.0.0.1", "127.255.0.1", "127.1", "2130706433", "::1")),
    *((each, False) for each in ("localhost.org", "notlocalhost", "10.0.0.1", "0.0.0.0", "fe80::1", "8.8.8.8")),
    *((each, False) for each in ("", "1.2.3.4.5", "::g")),
])  # fmt: skip
def test_which_hosts_are_this_machine(host: str, is_it: bool) -> None:
    assert is_this_machine(host) is is_it
