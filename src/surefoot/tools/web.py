"""`web_fetch`: the text behind a URL, from public addresses only.

Each hop is parsed once, resolved once, every address checked, and connected to a checked address only, so that a name
cannot change its answer between check and connection. Only what is globally routable may be fetched from, however its
host is spelt. Source: spec/primitives.md, 3.6.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

from surefoot.telemetry import traced
from surefoot.tools.call import ToolFailed, call_function, code_of
from surefoot.tools.function import tool
from surefoot.tools.page import ENCODINGS, Body, read_body, text_of_body
from surefoot.types.errors import ConfigError
from surefoot.types.ports import Tool
from surefoot.types.tools import ToolResult

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from aiohttp.abc import ResolveResult
    from yarl import URL

MAX_HOPS = 5  # redirects that are followed
MAX_URL_CHARS = 2048
_ODD = re.compile(r"[\s\x00-\x1f\x7f-\x9f\\\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
"""White space, control characters and backslashes, which parsers read differently; bidirectional controls."""
REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = (80, 443)

Address = IPv4Address | IPv6Address

METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog", "metadata", "instance-data"})
METADATA_ADDRESSES: frozenset[Address] = frozenset(
    map(ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"))
)
"""Where clouds tell a machine its secrets. The last one is globally routable by its number."""

_CLOSED_V4 = (
    *map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16")),  # unspecified, loopback, link-local
    *map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")),  # private, shared
    *map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15")),  # assignments, 6to4 relays, benchmarks
    *map(IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")),  # documentation
    *map(IPv4Network, ("224.0.0.0/4", "240.0.0.0/4")),  # multicast, reserved and broadcast
)
_OPEN_V6 = IPv6Network("2000::/3")  # all that is globally routable today lies in it
_CLOSED_V6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))  # assignments, Teredo; documentation
_HEXADECIMAL = re.compile("0x[0-9a-f]*")
_PARTS = re.compile("[0-9a-fx]+(?:[.][0-9a-fx]+){0,3}[.]?")  # `inet_aton` alone takes anything behind a blank
_MAPPED, _TRANSLATED, _SIX_TO_FOUR = IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"), IPv6Network("2002::/16")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # all addresses of a host, as text; raises `OSError`


@dataclass(frozen=True, slots=True)
class Hop:
    """One checked step: the URL, and the only addresses that may be connected to."""

    url: URL
    addresses: tuple[Address, ...]


async def system_resolve(host: str, port: int) -> list[str]:
    """The system's answer."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def web_fetch_tool(
    *, allow_hosts: Sequence[str] = (), timeout_s: float = 20.0, resolve: Resolve = system_resolve
) -> Tool:
    """The tool `web_fetch`. `allow_hosts` are exact `host:port` pairs that may be fetched from though not public.

    `timeout_s` bounds all hops together. Raises `ConfigError` for an entry of `allow_hosts` without a port.
    """
    allowed = frozenset(map(allowed_host, allow_hosts))

    @tool(effect="read", egress=True, name="web_fetch", timeout_s=timeout_s + 1)
    async def web_fetch(url: str) -> ToolResult:
        """Fetch a web page or text file from the internet and give its text.

        Args:
            url: The full address, with http or https.
        """
        try:
            async with asyncio.timeout(timeout_s):
                if len(url) > MAX_URL_CHARS:
                    raise ToolFailed("The address is too long. Give a shorter one.")
                answer = await get(parsed_url(url.strip(), None), allowed, resolve)
                if not answer.is_success:
                    overloaded = answer.status >= 500 or answer.status in (408, 429)  # noqa: PLR2004
                    why = " ".join(f"The server answered {answer.status} {answer.reason}".split())[:200]
                    raise ToolFailed(f"{why}.", infrastructure=overloaded, code=code_of(answer.status))
                # In a thread: megabytes of text take a good part of a second.
                kind = answer.headers.get("Content-Type", "")
                text = await call_function(text_of_body, {"body": answer.body, "content_type": kind}, on_loop=False)
                return ToolResult(str(text), source=str(answer.url.with_fragment(None)))
        except TimeoutError:
            return ToolResult(f"No complete answer within {timeout_s:g} s.", kind="timeout", infrastructure=True)

    return web_fetch


def refusal(address: Address) -> str:
    """Why nothing may be fetched from an address; "" when it may.

    An address that carries an IPv4 address (mapped, NAT64, 6to4) is judged by what it carries; local NAT64 and Teredo
    lie in no globally routable range.
    """
    address = _carried(address)
    if address in METADATA_ADDRESSES:
        return "it is a metadata address of a cloud"
    if isinstance(address, IPv4Address):
        closed = any(address in network for network in _CLOSED_V4)
    else:
        closed = address.scope_id is not None or address not in _OPEN_V6 or any(address in each for each in _CLOSED_V6)
    return "it is not a public address" if closed else ""


def is_this_machine(host: str) -> bool:
    """Whether a host, as `plain_host` gives it, is a loopback address in any spelling, or a name of this machine."""
    try:
        address = literal_address(host)
    except ValueError:
        return False
    return host == "localhost" or host.endswith(".localhost") if address is None else address.is_loopback


def host_refusal(host: str) -> str:
    """Why a host name is refused before it is resolved; "" when it is not. `host` is as `plain_host` gives it."""
    if host in METADATA_NAMES:
        return "it is a metadata host of a cloud"
    return "it is this machine" if literal_address(host) is None and is_this_machine(host) else ""


def plain_host(host: str) -> str:
    """Lower case, without the dot at the end and the brackets of IPv6; for comparing hosts."""
    return host.casefold().removesuffix(".").removeprefix("[").removesuffix("]")


def literal_address(host: str) -> Address | None:
    """The address that a host spells, in any way that a resolver would take; None when it is a name.

    Besides the usual forms these are one to four parts, each decimal, octal or hexadecimal, the last one filling what
    is left: `2130706433`, `127.1`, `0x7f.1`. Raises `ValueError` for what ends like a number but is none.
    """
    host = plain_host(host)
    if ":" in host:
        return ip_address(host)
    last_label = host.rpartition(".")[2]
    if not last_label.isdigit() and not _HEXADECIMAL.fullmatch(last_label):
        return None
    try:
        return IPv4Address(socket.inet_aton(host if _PARTS.fullmatch(host) else ""))
    except OSError as error:
        raise ValueError(f"{host} is not an address") from error


def _carried(address: Address) -> Address:
    """The IPv4 address that an address carries, or itself."""
    if address in _MAPPED or address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return IPv4Address(int(address) >> 80 & 0xFFFFFFFF) if address in _SIX_TO_FOUR else address


def allowed_host(entry: str) -> tuple[str, int]:
    """Host and port of an entry `host:port`. Raises `ConfigError` for anything else."""
    from yarl import URL  # noqa: PLC0415  # comes with aiohttp, which loads when it is used

    try:
        url = URL(f"http://{entry}")
        if url.explicit_port and url.host and url.path == "/" and not url.user:
            host = url.raw_host or ""
            return str(literal_address(host) or plain_host(host)), url.explicit_port  # one spelling for each host
    except ValueError:
        pass
    raise ConfigError("allow_hosts", entry, "must be host:port")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said in the end, and the checked address that said it."""

    url: URL
    status: int
    reason: str
    headers: Mapping[str, str]
    body: Body

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004  # the range of success


async def get(
    target: URL, allowed: frozenset[tuple[str, int]], resolve: Resolve, headers: Mapping[str, str] | None = None
) -> Answer:
    """What is found at the end of all redirects. With `headers`, which may hold secrets, none may leave the origin.

    Raises `ToolFailed`, with no cause: an error of the client knows the headers that were sent.
    """
    from aiohttp import ClientError  # noqa: PLC0415  # loads when it is used: half of the cost of a start

    before = ""
    for _ in range(MAX_HOPS + 1):
        hop = await checked_hop(target, allowed, resolve, before)
        try:
            async with (
                session_for(hop) as session,
                session.get(hop.url, headers=traced(headers), allow_redirects=False) as response,
            ):
                location = response.headers.get("Location", "")
                if response.status not in REDIRECTS or not location:
                    is_read = headers is not None or 200 <= response.status < 300  # noqa: PLR2004  # as above
                    encoding = response.headers.get("Content-Encoding", "")
                    body = await read_body(response.content, encoding) if is_read else Body(b"", is_cut=False)
                    return Answer(hop.url, response.status, response.reason or "", response.headers.copy(), body)
        except (ClientError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            why = str(error) or type(error).__name__
        else:
            target, before = parsed_url(location, hop.url), hop.url.scheme
            if headers is not None and target.origin() != hop.url.origin():
                raise ToolFailed(f"{hop.url.host} leads to another server ({target.host}), which is not followed.")
            continue
        raise ToolFailed(f"{hop.url.host} gave no usable answer: {why}", infrastructure=True)
    raise ToolFailed(f"{target.host} leads on to another address more than {MAX_HOPS} times. Give the final one.")


def parsed_url(text: str, base: URL | None) -> URL:
    """Parsed once; the host comes out IDNA-encoded."""
    from yarl import URL  # noqa: PLC0415  # see `get`

    url, fault = None, ""
    try:
        if _ODD.search(text):
            fault = "it holds white space, a backslash or characters that do not show"
        else:
            url = URL(text) if base is None else base.join(URL(text))
            if url.scheme not in ("http", "https") or not url.raw_host:
                fault = "it does not begin with http:// or https:// and a host"
            elif "%" in url.raw_host and ":" not in url.raw_host:
                fault = "its host is written with percent signs"
            elif url.user is not None or url.password is not None:
                fault = "it holds a user name or password"
    except (ValueError, TypeError) as error:
        fault = str(error)
    if url is None or fault:
        raise ToolFailed(f"The address cannot be fetched: {fault}.")
    return url


async def checked_hop(url: URL, allowed: frozenset[tuple[str, int]], resolve: Resolve, before: str = "") -> Hop:
    """Resolve once, check every address. `before` is the scheme of the hop before this one.

    Raises `ToolFailed` in words that do not tell which addresses a name has inside.
    """
    if before == "https" and url.scheme == "http":
        raise ToolFailed("The page leads from https to http, which is not followed.")
    host, port = plain_host(url.raw_host or ""), url.port or 0
    try:
        literal = literal_address(host)
    except ValueError as error:
        raise ToolFailed(f"{host} is neither a host name nor an address.") from error
    is_allowed = (str(literal or host), port) in allowed
    if not is_allowed and port not in _PORTS:
        raise ToolFailed(f"Port {port} is closed to this tool; only the usual ports of the web are open.")
    why = "" if is_allowed else host_refusal(host)
    if why:
        raise ToolFailed(f"{host} may not be fetched from: {why}.")
    addresses = (literal,) if literal else ()
    if literal is None:
        try:
            addresses = tuple(ip_address(text) for text in await resolve(host, port))
        except (OSError, ValueError) as error:
            raise ToolFailed(f"The host {host} cannot be found.", infrastructure=True) from error
        if not addresses:
            raise ToolFailed(f"The host {host} has no address.", infrastructure=True)
    # An allowed name opens metadata only when it is a name of metadata itself.
    is_named = literal is not None or host in METADATA_NAMES
    for address in addresses:
        is_open = is_allowed and (is_named or _carried(address) not in METADATA_ADDRESSES)
        why = "" if is_open else refusal(address)
        if why:
            raise ToolFailed(f"{host} may not be fetched from: {why}.")
    return Hop(url.with_host(str(literal)) if literal else url, addresses)


def session_for(hop: Hop) -> ClientSession:
    """A session for one hop: nothing is remembered, nothing is read from the environment."""
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector  # noqa: PLC0415  # see `get`
    from aiohttp.abc import AbstractResolver  # noqa: PLC0415

    class Pinned(AbstractResolver):
        """Knows the checked addresses and nothing else."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            del family  # all checked addresses may be tried
            return [
                {
                    "hostname": host,
                    "host": str(address),
                    "port": port,
                    "family": socket.AF_INET if address.version == 4 else socket.AF_INET6,  # noqa: PLR2004
                    "proto": 0,
                    "flags": socket.AI_NUMERICHOST,
                }
                for address in hop.addresses
            ]

        async def close(self) -> None: ...

    return ClientSession(
        connector=TCPConnector(resolver=Pinned(), use_dns_cache=False, force_close=True),
        cookie_jar=DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        timeout=ClientTimeout(total=None),  # the deadline of the call bounds everything
        headers={
            "User-Agent": "surefoot",
            "Accept": "text/*, application/json, */*;q=0.1",
            "Accept-Encoding": ENCODINGS,
        },
    )
