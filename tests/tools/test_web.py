"""Which hosts and addresses are open, however they are spelt, and what `web_fetch` gives of them."""

from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

import pytest
from served import Site, answering, never

from cases import cases, each
from surefoot.tools.web import is_this_machine, literal_address, refusal, web_fetch_tool
from surefoot.types.errors import ConfigError
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
Call = Callable[..., Awaitable[ToolResult]]


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

    async def test_redirects_are_followed_without_cookies(self, fetch: Call, site: Site) -> None:
        told = await fetch("/to?where=/page")
        assert told == ToolResult("Hello there", source=f"http://127.0.0.1:{site.port}/page")
        assert "Cookie" not in site.asked[-1].headers

    async def test_failures_are_told(self, fetch: Call) -> None:
        nothing = ToolResult("The server answered 404 Not Found.", kind="error", error="parameter:404")
        assert await fetch("/nothing") == nothing
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


@cases("tools/web")
def test_every_spelling_is_read(host: str, address: str) -> None:
    assert literal_address(host) == ip_address(address)


@pytest.mark.parametrize("host", ["example.com", "1.example", "0x7f.example", "xn--bcher-kva.example", "a"])
def test_names_are_no_addresses(host: str) -> None:
    assert literal_address(host) is None


@each("host", ["1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "a.1", "08", "1..1", "a.0x1", "::g", "8.8.8.8 x.5"])
def test_what_ends_like_a_number_is_an_address_or_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        literal_address(host)


@each("address", [
    *("8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.169.0.1", "223.255.255.255"),
    *("2606:4700::1111", "2a00::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"),
])  # fmt: skip
def test_open(address: str) -> None:
    assert refusal(ip_address(address)) == ""


@cases("tools/web")
def test_which_hosts_are_this_machine(host: str, is_it: bool) -> None:
    assert is_this_machine(host) is is_it
