"""The file that names the ports in use, for whoever asked for port 0 (operations.md 5).

`ophion.ports` in the data path, one `name=port` a line as in a Java properties file; it is there while the node runs.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

NAME = "ophion.ports"


def write_ports(data_path: Path, ports: Mapping[str, int]) -> None:
    """Write the file in one step, so that nobody reads half of it."""
    lines = ["# The ports this node listens on; removed when it stops."]
    lines += [f"{name}={port}" for name, port in ports.items()]
    descriptor, beside = tempfile.mkstemp(dir=data_path, prefix=f".{NAME}.")  # new, 0600, and through no link
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(beside, data_path / NAME)


def remove_ports(data_path: Path) -> None:
    """Take the file away; it may be gone already."""
    (data_path / NAME).unlink(missing_ok=True)
