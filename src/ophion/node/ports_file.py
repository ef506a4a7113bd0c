"""The file that names the ports in use, for whoever asked for port 0 (operations.md 5).

`ophion.ports` in the data path, one `name=port` a line as in a Java properties file; it is there while the node runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

NAME = "ophion.ports"


def write_ports(data_path: Path, ports: Mapping[str, int]) -> None:
    """Write the file in one step, so that nobody reads half of it."""
    lines = ["# The ports this node listens on; removed when it stops."]
    lines += [f"{name}={port}" for name, port in ports.items()]
    beside = data_path / f".{NAME}.new"
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)  # through no link
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(beside, data_path / NAME)


def remove_ports(data_path: Path) -> None:
    """Take the file away; it may be gone already."""
    (data_path / NAME).unlink(missing_ok=True)
