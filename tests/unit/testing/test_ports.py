"""Tests ports that are known before a process listens on them."""

from __future__ import annotations

import socket
import subprocess
import sys

from ophion.testing.node_process import environment
from ophion.testing.ports import free_ports

_ANOTHER = """
import sys
from ophion.quickstart.ports import PortClaims
with PortClaims() as claims:
    print([port for port in sys.argv[1:] if claims.take(int(port))])
"""


def test_no_other_process_gets_a_reserved_port() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    command = [sys.executable, "-c", _ANOTHER, *map(str, ports)]
    assert subprocess.run(command, capture_output=True, env=environment(), check=True).stdout == b"[]\n"


def test_a_reserved_port_can_be_listened_on() -> None:
    for port in free_ports(3):
        with socket.create_server(("127.0.0.1", port)) as server:
            assert server.getsockname()[1] == port
