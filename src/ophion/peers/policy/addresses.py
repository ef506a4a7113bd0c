"""Subnets, and public or private IP addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

Subnet: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"


def read_subnet(text: str) -> Subnet:
    """Parse `10.0.0.0/8`, `fd00::/8` or a single address. Raises `ValueError` otherwise."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(
            f"'{text}' is not a subnet: expected an address and a prefix, for example 10.1.0.0/16"
        ) from None


def is_within(ip: str, subnets: Sequence[Subnet]) -> bool:
    """Whether an address is in one of the subnets. An empty list allows every address."""
    if not subnets:
        return True
    address = ipaddress.ip_address(ip)
    return any(address in subnet for subnet in subnets if subnet.version == address.version)


@lru_cache(maxsize=1024)
def is_public(ip: str) -> bool:
    """Whether an address is globally routable. Limits per address apply only to such addresses."""
    return ipaddress.ip_address(ip).is_global
