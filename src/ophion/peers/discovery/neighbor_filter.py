"""Which nodes that somebody else names are believed (networking.md 2.3).

Somebody on the Internet has no business naming addresses of our own network, and nobody names addresses that cannot be.
"""

from __future__ import annotations

import ipaddress
from typing import Final

_LOWEST_PORT: Final = 1024


def is_believable(ip: str, udp_port: int, sender_ip: str) -> bool:
    """Whether a node at this address may be asked because a node at `sender_ip` named it."""
    if not ip or udp_port <= _LOWEST_PORT:
        return False
    address, sender = ipaddress.ip_address(ip), ipaddress.ip_address(sender_ip)
    if address.is_unspecified or address.is_multicast or address.is_reserved or address.is_link_local:
        return False
    if address.is_loopback:
        return sender.is_loopback
    if not address.is_global:
        return not sender.is_global
    return True
