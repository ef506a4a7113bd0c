"""Ports that are known before somebody listens on them.

Nodes of a network know each other before the first of them runs, so "any free one" is no help. These are claimed like
those of a quickstart, from numbers that the system gives to nobody, until the test process ends: neither another test
nor a connection that goes out takes one before a node listens there, or while it is down. Where nobody is to listen,
nobody will.
"""

from __future__ import annotations

from typing import Final

from ophion.quickstart.ports import Claims, spare_port

_CLAIMS: Final = Claims()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, and nobody will who is not told to."""
    return [spare_port(_CLAIMS.take) for _ in range(count)]
