"""What `web_fetch` must not reach, asked for in every way there is. Source: spec/primitives.md, 3.6.

Two local servers stand for the web and for what is inside. What the process really connects to and looks up is heard
from the interpreter itself (its audit events), so that a refusal that comes too late is noticed.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence

import pytest
from served import Site, answering, never, serving
from yarl import URL

from cases import rows
from surefoot.tools.call import ToolFailed
from surefoot.tools.web import MAX_HOPS, checked_hop, web_fetch_tool
from surefoot.types.tools import ToolResult

pytestmark = pytest.mark.anyio
Call = Callable[..., Awaitable[ToolResult]]

HOSTS: Mapping[str, Sequence[str]] = {row["kind"]: row["hosts"] for row in rows("tools/ssrf")}
TARGETS = [
    *(pytest.param(f"http://{host}/x", id=f"{kind}-{ascii(host)[1:-1]}") for kind in HOSTS for host in HOSTS[kind]),
    *(
        pytest.param(url, id=f"scheme-{url}")
        for url in ("file:///etc/passwd", "ftp://8.8.8.8/", "gopher://8.8.8.8/", "data:text/plain,x")
    ),
]
ADDRESSES = [
    pytest.param(host.strip("[]").replace("%25", "%"), id=f"{kind}-{host}")
    for kind in ("private", "loopback", "link-local", "metadata", "unique-local", "shared", "multicast", "reserved",
                 "unspecified", "mapped", "nat64", "6to4", "teredo")
    for host in HOSTS[kind]
    if host[0] in "[0123456789"
]  # fmt: skip
THIS_MACHINE = (
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "017700000001", "0177.0.0.1", "0x7f000001", "0x7f.1"),
    *("127.0.0.1.", "１２７.０.０.１", "①②⑦.0.0.1", "127。0。0。1"),
)
"""Ways to write one address, at which a server listens in these tests."""

_ears: list[list[str]] = []


def _hear(event: str, facts: tuple[object, ...]) -> None:
    if _ears and event == "socket.connect":
        _ears[0].append(f"connect {facts[1]}")
    elif _ears and event in ("socket.getaddrinfo", "socket.gethostbyname"):
        _ears[0].append(f"look up {facts[0]!r}")


sys.addaudithook(_hear)  # for as long as the process lives; there is no way to take it back


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """What the process connected to and looked up since the test began."""
    _ears.append([])
    yield _ears[0]
    _ears.clear()


@pytest.fixture
async def inside() -> AsyncIterator[Site]:
    """A server that may not be fetched from, where the other may."""
    site = Site()
    async with serving(site.answer) as site.port:
        yield site


def connection(site: Site) -> str:
    return f"connect ('127.0.0.1', {site.port})"


def leading_to(site: Site, target: str) -> str:
    return str(URL(f"http://{site.pair}/to").with_query(where=target))


def assert_refused(result: ToolResult) -> None:
    assert result.kind == "error"
    assert not result.infrastructure, "it would be tried again"
    assert "Error:" not in result.content, "it is told in words, not as an exception"
    assert "secret" not in result.content


@pytest.mark.parametrize("url", TARGETS)
async def test_asked_for_it_connects_to_nothing(call: Call, heard: list[str], url: str) -> None:
    """adv-ssrf-private, adv-ssrf-metadata: in a task too, since what is fetched before goes the way of any call."""
    assert_refused(await call(web_fetch_tool(resolve=never, timeout_s=2), url=url))
    assert_refused(await call(web_fetch_tool(resolve=never, timeout_s=2), url=url.replace("http:", "https:")))
    assert heard == []


@pytest.mark.parametrize("url", TARGETS)
async def test_led_to_it_by_a_page_it_stays_there(call: Call, site: Site, heard: list[str], url: str) -> None:
    fetch = web_fetch_tool(allow_hosts=[site.pair], resolve=never, timeout_s=2)
    assert_refused(await call(fetch, url=leading_to(site, url)))
    assert (heard, site.paths) == ([connection(site)], ["/to"])


@pytest.mark.parametrize("address", ADDRESSES)
async def test_a_name_with_such_an_address_is_refused(call: Call, site: Site, heard: list[str], address: str) -> None:
    for answer in ([address], ["8.8.8.8", address], [address, "2606:4700::1111"]):
        resolve, asked = answering(answer)
        assert_refused(await call(web_fetch_tool(resolve=resolve, timeout_s=2), url="http://name.test/"))
        assert (asked, heard) == (["name.test:80"], [])
    resolve, asked = answering([address])
    fetch = web_fetch_tool(allow_hosts=[site.pair], resolve=resolve, timeout_s=2)
    assert_refused(await call(fetch, url=leading_to(site, "https://name.test/")))
    assert (asked, heard) == (["name.test:443"], [connection(site)])


class TestARealServerInside:
    """It listens, so each spelling is shown to reach it where it is allowed: the refusals are not for other reasons."""

    @pytest.mark.parametrize("host", THIS_MACHINE)
    async def test_every_spelling_reaches_it_if_allowed(self, call: Call, site: Site, inside: Site, host: str) -> None:
        target = f"http://{host}:{inside.port}/x"
        closed = web_fetch_tool(allow_hosts=[site.pair], resolve=never, timeout_s=2)
        assert_refused(await call(closed, url=target))
        assert_refused(await call(closed, url=leading_to(site, target)))
        assert inside.asked == []
        opened = web_fetch_tool(allow_hosts=[site.pair, inside.pair], resolve=never, timeout_s=2)
        assert (await call(opened, url=target)).content == f"the secret of {inside.port}"
        assert (await call(opened, url=leading_to(site, target))).content == f"the secret of {inside.port}"
        assert inside.paths == ["/x", "/x"]

    @pytest.mark.parametrize("target", ["//{pair}/x", "http://u:w@{pair}/x", "ftp://{pair}/x"])
    async def test_no_other_way_to_lead_reaches_it(self, call: Call, site: Site, inside: Site, target: str) -> None:
        fetch = web_fetch_tool(allow_hosts=[site.pair], resolve=never, timeout_s=2)
        assert_refused(await call(fetch, url=leading_to(site, target.format(pair=inside.pair))))
        assert inside.asked == []

    async def test_another_name_for_an_allowed_address_is_not_allowed(self, call: Call, inside: Site) -> None:
        resolve, asked = answering(["127.0.0.1"])
        fetch = web_fetch_tool(allow_hosts=[inside.pair], resolve=resolve, timeout_s=2)
        assert_refused(await call(fetch, url=f"http://name.test:{inside.port}/"))
        assert (asked, inside.asked) == ([], [])


class TestANameThatChangesItsAnswer:
    async def test_after_the_check_nobody_asks_again(self, call: Call, site: Site, heard: list[str]) -> None:
        resolve, asked = answering(["127.0.0.1"], ["127.0.0.99"])
        fetch = web_fetch_tool(allow_hosts=[f"name.test:{site.port}"], resolve=resolve, timeout_s=2)
        assert not (await call(fetch, url=f"http://NAME.test:{site.port}/x")).is_error
        assert (asked, heard) == ([f"name.test:{site.port}"], [connection(site)])
        assert [one.headers["Host"] for one in site.asked] == asked

    async def test_with_the_next_page_it_is_checked_again(self, call: Call, site: Site, heard: list[str]) -> None:
        resolve, asked = answering(["127.0.0.1"], ["169.254.169.254"])
        fetch = web_fetch_tool(allow_hosts=[f"name.test:{site.port}"], resolve=resolve, timeout_s=2)
        result = await call(fetch, url=f"http://name.test:{site.port}/to?where=/x")
        assert_refused(result)
        assert "metadata" in result.content
        assert (len(asked), heard, site.paths) == (2, [connection(site)], ["/to"])


class TestTheWay:
    async def test_five_pages_lead_on_and_no_more(self, call: Call, site: Site) -> None:
        fetch = web_fetch_tool(allow_hosts=[site.pair], resolve=never, timeout_s=2)
        assert not (await call(fetch, url=f"http://{site.pair}/count?n={MAX_HOPS}")).is_error
        site.asked.clear()
        assert_refused(await call(fetch, url=f"http://{site.pair}/count?n={MAX_HOPS + 1}"))
        assert len(site.asked) == MAX_HOPS + 1

    async def test_https_does_not_lead_to_http(self) -> None:
        resolve, asked = answering(["8.8.8.8"])
        with pytest.raises(ToolFailed, match="https to http"):
            await checked_hop(URL("http://example.com/"), frozenset(), resolve, "https")
        assert asked == []
        hop = await checked_hop(URL("https://example.com/"), frozenset(), resolve, "http")
        assert [str(address) for address in hop.addresses] == ["8.8.8.8"]

    async def test_metadata_is_open_only_when_it_is_named(self) -> None:
        allowed = frozenset({("169.254.169.254", 80), ("name.test", 80)})
        assert (await checked_hop(URL("http://169.254.169.254/"), allowed, never)).addresses
        for answer in (["169.254.169.254"], ["::ffff:169.254.169.254"], ["10.0.0.5", "100.100.100.200"]):
            with pytest.raises(ToolFailed, match="metadata"):
                await checked_hop(URL("http://name.test/"), allowed, answering(answer)[0])
        hop = await checked_hop(URL("http://name.test/"), allowed, answering(["10.0.0.5"])[0])
        assert [str(address) for address in hop.addresses] == ["10.0.0.5"]

    @pytest.mark.parametrize(
        "url", ["", "http://", "http:///x", "/etc/passwd", "javascript:1", f"http://8.8.8.8/{'x' * 3000}"]
    )
    async def test_what_is_no_address_of_the_web_is_told(self, call: Call, heard: list[str], url: str) -> None:
        assert_refused(await call(web_fetch_tool(resolve=never, timeout_s=2), url=url))
        assert heard == []
