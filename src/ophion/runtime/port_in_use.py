"""Error text for a port that another program uses."""

from __future__ import annotations

import errno
import os


def is_taken(error: OSError) -> bool:
    """Whether the error means that the port is in use."""
    return error.errno == errno.EADDRINUSE


def taken(flag: str | None = None) -> str:
    """Return the cause and what to do; `flag` is the option that sets the port, where known."""
    choose = "choose another one" if flag is None else f"choose another one with {flag}"
    return f"{os.strerror(errno.EADDRINUSE)}. Another program has this port: {choose}, or 0 for any that is free."
