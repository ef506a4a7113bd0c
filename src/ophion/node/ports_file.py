"""Files in the data path that name the ports and addresses of a running node.

`ophion.ports` has one `name=port` on each line, as in a Java properties file. With --besu-conventions the node also
writes `besu.ports` and `besu.networks`, which scripts for Besu wait for. The node removes all files when it stops.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

NAME = "ophion.ports"
BESU_PORTS, BESU_NETWORKS = "besu.ports", "besu.networks"


def write_ports(data_path: Path, ports: Mapping[str, int]) -> None:
    """Write the ports file atomically."""
    _write(data_path / NAME, "The ports this node listens on; removed when it stops.", ports)


def remove_ports(data_path: Path) -> None:
    """Remove the ports file, if it exists."""
    (data_path / NAME).unlink(missing_ok=True)


def write_besu_files(data_path: Path, ports: Mapping[str, int], global_ip: str, local_ip: str) -> None:
    """Write ports and addresses to files with Besu's names."""
    _write(data_path / BESU_PORTS, "The ports this node listens on; removed when it stops.", ports)
    addresses = {"global-ip": global_ip, "local-ip": local_ip}
    _write(data_path / BESU_NETWORKS, "The addresses of this node; removed when it stops.", addresses)


def remove_besu_files(data_path: Path) -> None:
    """Remove the files with Besu's names, if they exist."""
    for name in (BESU_PORTS, BESU_NETWORKS):
        (data_path / name).unlink(missing_ok=True)


def _write(path: Path, comment: str, properties: Mapping[str, object]) -> None:
    lines = [f"# {comment}", *(f"{name}={value}" for name, value in properties.items())]
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(beside, path)
