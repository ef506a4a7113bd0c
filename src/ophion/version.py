"""Which Ophion this is, in the words clients and peers expect."""

from __future__ import annotations

import platform
import sys

from ophion import __version__


def client_version() -> str:
    """`ophion/v<version>/<os>-<machine>/python<version>`, the answer to `--version` and web3_clientVersion."""
    machine = f"{platform.system()}-{platform.machine()}".lower().replace(" ", "-")
    return f"ophion/v{__version__}/{machine}/python{sys.version_info.major}.{sys.version_info.minor}"
