"""Ports that are reserved before a node listens on them.

Nodes of a network know each other before the first starts, so a random free port does not help. These are claimed like
those of a quickstart, outside of the ephemeral range, until the test process ends: neither another test nor an outgoing
connection can take one.
"""

from __future__ import annotations

from typing import Final

from ophion.quickstart.ports import Claims, spare_port

_CLAIMS: Final = Claims()


def free_ports(count: int) -> list[int]:
    """Return reserved ports with no listener."""
    return [spare_port(_CLAIMS.take) for _ in range(count)]
