"""Version and client name of Ophion, in the formats that clients and peers expect."""

from __future__ import annotations

import os
import sys

from ophion import __version__


def client_version(identity: str | None = None) -> str:
    """Return `ophion[/<identity>]/v<version>/<os>-<machine>/python<version>`. web3_clientVersion and Hello contain this
    text.
    """
    system = os.uname()
    machine = f"{system.sysname}-{system.machine}".lower().replace(" ", "-")
    name = f"ophion/{identity}" if identity else "ophion"
    return f"{name}/v{__version__}/{machine}/python{sys.version_info.major}.{sys.version_info.minor}"
