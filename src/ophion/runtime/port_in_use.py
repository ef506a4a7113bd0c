"""Error text for a port that is already in use."""

from __future__ import annotations

import errno
import os


def is_taken(error: OSError) -> bool:
    """Whether the error means that the port is in use."""
    return error.errno == errno.EADDRINUSE


def taken(flag: str | None = None) -> str:
    """Return the error text with the cause and a fix. `flag` is the option that sets the port, if known."""
    choose = "choose another one" if flag is None else f"choose another one with {flag}"
    return f"{os.strerror(errno.EADDRINUSE)}. Another program has this port: {choose}, or 0 for any that is free."
