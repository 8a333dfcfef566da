"""A server's address as a user writes it: where requests go, what may be shown of it, and the key written into it."""

import ipaddress
from urllib.parse import SplitResult, unquote, urlsplit

from surefoot.types.dataclass import dataclass
from surefoot.types.errors import ConfigError


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """An address without user and password. `host` is in lower case, `netloc` is host and port, `key` is "" or secret.

    `key` is the password of the URL as it was written, or the user where there is no password.
    """

    url: str
    scheme: str
    host: str
    netloc: str
    key: str = ""

    def __repr__(self) -> str:
        return f"BaseUrl({self.url!r})"  # never the key


def parse_base_url(url: str) -> BaseUrl:
    """Take user and password out of a URL. Raises `ConfigError`, which shows neither, for one that cannot be called."""
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("base_url", shown(url), "a base URL begins with http:// or https:// and names a host")
    if not _has_valid_port(parts):
        raise ConfigError("base_url", shown(url), "the port of a base URL that names a host is from 1 to 65535")
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        # a raw / ? or # ended the host inside a password: what is taken for the host is a user's name
        raise ConfigError("base_url", shown(url), "write / ? # of a password as %2F %3F %23, and @ of a path as %40")
    netloc = parts.netloc.rpartition("@")[2]
    key = unquote(parts.password or parts.username or "")
    return BaseUrl(parts._replace(netloc=netloc).geturl(), parts.scheme, parts.hostname, netloc, key)


def shown(url: str) -> str:
    """What an error may show of text that may be a URL with a password, however badly it is written."""
    before, at, rest = url.rpartition("@")
    scheme, mark, _ = before.partition("://")
    return f"{scheme}{mark}{rest}" if at and mark else rest


def host_of(url: str) -> str:
    """The host of a URL in lower case; "" where it has none."""
    parts = _split(url)
    return (parts.hostname or "") if parts is not None else ""


def is_local_url(url: str) -> bool:
    """Whether a URL points to this machine or into a private network, where servers seldom ask for a key."""
    host = host_of(url)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a name; one without a dot resolves only inside the own network, unless it is a number
        if not host or host.isdecimal() or host.startswith("0x"):
            return False
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_private or address.is_link_local


def is_this_machine(url: str) -> bool:
    """Whether a URL points to this very machine."""
    host = host_of(url)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:  # its words may hold the password, so it is not passed on
        return None


def _has_valid_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False
