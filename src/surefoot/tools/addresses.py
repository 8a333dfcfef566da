"""Which hosts and addresses a tool may fetch from: only what is globally routable, however it is spelt.

Pure: nothing is resolved here. Source: spec/primitives.md, 3.6.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog", "metadata", "instance-data"})
METADATA_ADDRESSES: frozenset[Address] = frozenset(
    map(ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"))
)
"""Where clouds tell a machine its secrets. The last one is globally routable by its number."""

_CLOSED_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network, unspecified
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
_OPEN_V6 = IPv6Network("2000::/3")  # all that is globally routable today lies in it
_CLOSED_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, with Teredo
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
_MAPPED, _TRANSLATED, _SIX_TO_FOUR = IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"), IPv6Network("2002::/16")


def refusal(address: Address) -> str:
    """Why nothing may be fetched from an address; "" when it may.

    An address that carries an IPv4 address (mapped, NAT64, 6to4) is judged by what it carries; local NAT64 and Teredo
    lie in no globally routable range.
    """
    if address in METADATA_ADDRESSES:
        return "it is a metadata address of a cloud"
    if isinstance(address, IPv6Address) and (carried := _carried(address)) is not None:
        return refusal(carried)
    if isinstance(address, IPv4Address):
        closed = any(address in network for network in _CLOSED_V4)
    else:
        closed = address.scope_id is not None or address not in _OPEN_V6 or any(address in each for each in _CLOSED_V6)
    return "it is not a public address" if closed else ""


def is_metadata(address: Address) -> bool:
    """Whether it is a metadata address, also inside another one."""
    carried = _carried(address) if isinstance(address, IPv6Address) else None
    return (carried or address) in METADATA_ADDRESSES


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
    labels = host.split(".")
    if not _is_number(labels[-1]):
        return None
    if len(labels) > 4:  # noqa: PLR2004  # four bytes
        raise ValueError(f"{host} is no address")
    *first, last = (_number(label) for label in labels)
    if any(part > 255 for part in first) or last >= 256 ** (4 - len(first)):  # noqa: PLR2004  # a byte
        raise ValueError(f"{host} is no address")
    return IPv4Address(sum(part << (24 - 8 * at) for at, part in enumerate(first)) + last)


def _carried(address: IPv6Address) -> IPv4Address | None:
    if address in _MAPPED or address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address(int(address) >> 80 & 0xFFFFFFFF)
    return None


def _is_number(label: str) -> bool:
    return label.isdigit() or (label.startswith("0x") and all(each in "0123456789abcdef" for each in label[2:]))


def _number(label: str) -> int:
    """As `inet_aton` reads it. Raises `ValueError`."""
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    if len(label) > 1 and label.startswith("0"):
        return int(label, 8)
    return int(label)
