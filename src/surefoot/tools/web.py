"""`web_fetch`: the text behind a URL, from public addresses only.

Each hop is parsed once, resolved once, every address checked, and connected to a checked address only, so that a name
cannot change its answer between check and connection. Source: spec/primitives.md, 3.6.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from surefoot.tools.addresses import (
    METADATA_NAMES,
    Address,
    host_refusal,
    is_metadata,
    literal_address,
    plain_host,
    refusal,
)
from surefoot.tools.body import ENCODINGS, read_body, text_of_body
from surefoot.tools.calling import ToolFailed, called, code_of
from surefoot.tools.function import tool
from surefoot.types.errors import ConfigError
from surefoot.types.ports import Tool
from surefoot.types.tools import ToolResult

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from aiohttp.abc import ResolveResult
    from yarl import URL

MAX_HOPS = 5
"""Redirects that are followed."""
MAX_URL_CHARS = 2048
_ODD = re.compile(r"[\s\x00-\x1f\x7f-\x9f\\\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
"""White space, control characters and backslashes, which parsers read differently; bidirectional controls."""
REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = (80, 443)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""All addresses of a host, as text. Raises `OSError`."""


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
                return await _fetched(url, allowed, resolve)
        except TimeoutError:
            return ToolResult(f"No complete answer within {timeout_s:g} s.", kind="timeout", infrastructure=True)

    return web_fetch


def allowed_host(entry: str) -> tuple[str, int]:
    """Host and port of an entry `host:port`. Raises `ConfigError` for anything else."""
    from yarl import URL  # noqa: PLC0415  # comes with aiohttp, which loads when it is used

    try:
        url = URL(f"http://{entry}")
        if url.explicit_port and url.host and url.path == "/" and not url.user:
            return _canonical(url.raw_host or ""), url.explicit_port
    except ValueError:
        pass
    raise ConfigError("allow_hosts", entry, "must be host:port")


def _canonical(host: str) -> str:
    """One spelling for each host: addresses in their usual form, names plain."""
    return str(literal_address(host) or plain_host(host))


async def _fetched(text: str, allowed: frozenset[tuple[str, int]], resolve: Resolve) -> ToolResult:
    from aiohttp import ClientError  # noqa: PLC0415  # loads when it is used: half of the cost of a start

    if len(text) > MAX_URL_CHARS:
        raise ToolFailed("The address is too long. Give a shorter one.")
    target, before = parsed_url(text.strip(), None), ""
    for _ in range(MAX_HOPS + 1):
        hop = await checked_hop(target, allowed, resolve, before)
        try:
            async with session_for(hop) as session, session.get(hop.url, allow_redirects=False) as response:
                location = response.headers.get("Location", "")
                if response.status not in REDIRECTS or not location:
                    return await _result(response, str(hop.url.with_fragment(None)))
        except (ClientError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise ToolFailed(f"{hop.url.host} gave no usable answer: {error}", infrastructure=True) from error
        target, before = parsed_url(location, hop.url), hop.url.scheme
    raise ToolFailed(f"The page leads on to another more than {MAX_HOPS} times. Give the final address.")


def parsed_url(text: str, base: URL | None) -> URL:
    """Parsed once; the host comes out IDNA-encoded."""
    from yarl import URL  # noqa: PLC0415  # see `_fetched`

    url = None
    try:
        fault = "it holds white space, a backslash or characters that do not show" if _ODD.search(text) else ""
        if not fault:
            url = URL(text) if base is None else base.join(URL(text))
            fault = _fault(url)
    except (ValueError, TypeError) as error:
        fault = str(error)
    if url is None or fault:
        raise ToolFailed(f"The address cannot be fetched: {fault}.")
    return url


def _fault(url: URL) -> str:
    if url.scheme not in ("http", "https") or not url.raw_host:
        return "it does not begin with http:// or https:// and a host"
    if "%" in url.raw_host and ":" not in url.raw_host:
        return "its host is written with percent signs"
    return "it holds a user name or password" if url.user is not None or url.password is not None else ""


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
    addresses = (literal,) if literal else await _resolved(host, port, resolve)
    for address in addresses:
        # An allowed name opens metadata only when it is a name of metadata itself.
        is_open = is_allowed and (not is_metadata(address) or literal is not None or host in METADATA_NAMES)
        why = "" if is_open else refusal(address)
        if why:
            raise ToolFailed(f"{host} may not be fetched from: {why}.")
    return Hop(url.with_host(str(literal)) if literal else url, addresses)


async def _resolved(host: str, port: int, resolve: Resolve) -> tuple[Address, ...]:
    try:
        addresses = tuple(ip_address(text) for text in await resolve(host, port))
    except (OSError, ValueError) as error:
        raise ToolFailed(f"The host {host} cannot be found.", infrastructure=True) from error
    if not addresses:
        raise ToolFailed(f"The host {host} has no address.", infrastructure=True)
    return addresses


def session_for(hop: Hop) -> ClientSession:
    """A session for one hop: nothing is remembered, nothing is read from the environment."""
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector  # noqa: PLC0415  # see `_fetched`
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


async def _result(response: ClientResponse, url: str) -> ToolResult:
    if not 200 <= response.status < 300:  # noqa: PLR2004  # the range of success
        overloaded = response.status >= 500 or response.status in (408, 429)  # noqa: PLR2004
        told = " ".join(f"The server answered {response.status} {response.reason or ''}".split())[:200]
        raise ToolFailed(f"{told}.", infrastructure=overloaded, code=code_of(response.status))
    body = await read_body(response.content, response.headers.get("Content-Encoding", ""))
    # In a thread: megabytes of text take a good part of a second.
    kind = response.headers.get("Content-Type", "")
    text = await called(text_of_body, {"body": body, "content_type": kind}, on_loop=False)
    return ToolResult(str(text), source=url)
