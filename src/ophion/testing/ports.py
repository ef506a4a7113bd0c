"""Reserves ports before a node listens on them.

The nodes of a network must know each other's ports before the first node starts. So ports are reserved as in a
quickstart: outside of the ephemeral range, until the test process ends. Neither another test nor an outgoing connection
can take these ports.
"""

from __future__ import annotations

from typing import Final

from ophion.quickstart.ports import PortClaims, spare_port

_CLAIMS: Final = PortClaims()


def free_ports(count: int) -> list[int]:
    """Return reserved ports on which no process listens."""
    return [spare_port(_CLAIMS.take) for _ in range(count)]
