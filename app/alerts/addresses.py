"""Which network addresses a webhook may go to. Pure.

Public ones only. Where IPv6 carries an IPv4 address inside (mapped, NAT64, 6to4), the one inside
counts, since that is where the packets arrive. The ranges are those of the IANA registries of
special-purpose addresses; they are listed here because Python's own list differs by version.
"""

from __future__ import annotations

import ipaddress
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Reach(Enum):
    PUBLIC = "public"
    PRIVATE = "private"
    """Loopback, private, shared, reserved, multicast and the like."""
    METADATA = "metadata"
    """Link-local, and where clouds tell their machines who they are and with which credentials."""


_NOT_PUBLIC_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")
"""All that is given out to the public; of it not:"""
_NOT_PUBLIC_V6 = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_METADATA = tuple(
    ipaddress.ip_network(text)
    for text in (
        "169.254.0.0/16",
        "fe80::/10",
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure; looks public
        "192.0.0.192",  # Oracle
        "fd00:ec2::/32",  # AWS
        "fd00:c1::a9fe:a9fe",  # Oracle
        "fd00:42::42",  # Scaleway
        "fd20:ce::254",  # Google
    )
)
_IPV4_INSIDE = (
    (IPv6Network("::ffff:0:0/96"), 0),  # mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # translated
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
)
"""The network, and how many bits follow the IPv4 address."""


def parse(text: str) -> Address | None:
    """An address in its usual spelling, without zone; None of anything else.

    Decimal, hexadecimal, octal and shortened spellings are none of it.
    """
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def reach(address: Address) -> Reach:
    if any(address in network for network in _METADATA):
        return Reach.METADATA
    if isinstance(address, IPv4Address):
        outside = any(address in network for network in _NOT_PUBLIC_V4)
        return Reach.PRIVATE if outside else Reach.PUBLIC
    for network, shift in _IPV4_INSIDE:
        if address in network:
            return reach(IPv4Address((int(address) >> shift) & 0xFFFF_FFFF))
    outside = any(address in network for network in _NOT_PUBLIC_V6)
    return Reach.PUBLIC if address in _PUBLIC_V6 and not outside else Reach.PRIVATE
