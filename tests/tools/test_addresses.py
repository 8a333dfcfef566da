"""Which hosts and addresses are open, however they are spelt."""

from ipaddress import ip_address

import pytest

from surefoot.tools.web import host_refusal, is_metadata, is_this_machine, literal_address, plain_host, refusal


@pytest.mark.parametrize(("host", "address"), [
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


@pytest.mark.parametrize(
    "host", ["1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "a.1", "08", "1..1", "a.0x1", "::g"]
)
def test_what_ends_like_a_number_is_an_address_or_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        literal_address(host)


@pytest.mark.parametrize("address", [
    *("0.0.0.0", "0.1.2.3", "10.0.0.5", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.1.1", "172.16.0.1"),
    *("172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
    *("224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "169.254.169.254", "100.100.100.200", "168.63.129.16"),
    *("::", "::1", "::7f00:1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00::1", "fd00:ec2::254", "ff02::1"),
    *("100::1", "2001:db8::1", "2001::1", "2001:0:53aa:64c:0:5efe:7f00:1", "3fff::1", "5f00::1", "4000::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::8.8.8.8"),
    *("2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::"),
])  # fmt: skip
def test_closed(address: str) -> None:
    assert refusal(ip_address(address))


@pytest.mark.parametrize("address", [
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


@pytest.mark.parametrize(("host", "is_it"), [
    *((each, True) for each in ("localhost", "x.localhost", "127.0.0.1", "127.255.0.1", "127.1", "2130706433", "::1")),
    *((each, False) for each in ("localhost.org", "notlocalhost", "10.0.0.1", "0.0.0.0", "fe80::1", "8.8.8.8")),
    *((each, False) for each in ("", "1.2.3.4.5", "::g")),
])  # fmt: skip
def test_which_hosts_are_this_machine(host: str, is_it: bool) -> None:
    assert is_this_machine(host) is is_it
