import pytest

from app.alerts.addresses import Reach, parse, reach


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "93.184.216.34", "172.15.255.255", "172.32.0.1", "2606:4700:4700::1111"],
)
def test_addresses_given_out_to_the_public_are_public(address: str) -> None:
    assert Reach.PUBLIC is reach(parse(address))


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "127.0.0.1", "127.8.8.8", "10.1.2.3", "192.168.1.1"),
        *("172.16.0.1", "172.31.255.255", "100.64.0.1", "100.127.255.255", "192.0.0.8"),
        *("192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "192.88.99.1"),
        *("224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::7f00:1", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "100::1"),
        *("2001:db8::1", "3fff::1", "5f00::1", "64:ff9b:1::a9fe:a9fe"),
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
    ],
)
def test_special_addresses_are_not_public(address: str) -> None:
    assert Reach.PRIVATE is reach(parse(address))


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "febf::1"),
        *("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"),
        *("fd00:c1::a9fe:a9fe", "fd00:42::42"),
        *("::ffff:169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::169.254.169.254"),
        "2002:a9fe:a9fe::1",
    ],
)
def test_link_local_and_metadata_addresses_are_told_apart(address: str) -> None:
    assert Reach.METADATA is reach(parse(address))


@pytest.mark.parametrize(
    "address", ["::ffff:127.0.0.1", "64:ff9b::10.0.0.1", "2002:7f00:1::", "2002:c0a8:101::5"]
)
def test_a_private_address_inside_of_another_is_private(address: str) -> None:
    assert Reach.PRIVATE is reach(parse(address))


@pytest.mark.parametrize("address", ["::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1"])
def test_a_public_address_inside_of_another_is_public(address: str) -> None:
    assert Reach.PUBLIC is reach(parse(address))


@pytest.mark.parametrize(
    "text", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "", "1.2.3.4.5"]
)
def test_other_spellings_are_no_addresses(text: str) -> None:
    assert parse(text) is None
