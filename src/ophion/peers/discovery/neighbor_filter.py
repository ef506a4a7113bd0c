"""Validates the addresses in a Neighbors packet (networking.md 2.3).

A sender with a public address must not name private addresses. No sender may name unusable addresses.
"""

from __future__ import annotations

import ipaddress
from typing import Final

_MIN_PORT: Final = 1024


def is_plausible(ip: str, udp_port: int, sender_ip: str) -> bool:
    """Whether this node may contact an address that is listed in a Neighbors packet from `sender_ip`."""
    if not ip or udp_port <= _MIN_PORT:
        return False
    address, sender = ipaddress.ip_address(ip), ipaddress.ip_address(sender_ip)
    if address.is_unspecified or address.is_multicast or address.is_reserved or address.is_link_local:
        return False
    if address.is_loopback:
        return sender.is_loopback
    if not address.is_global:
        return not sender.is_global
    return True
