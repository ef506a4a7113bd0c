"""What is said about a port that another program has."""

from __future__ import annotations

import errno
import os


def is_taken(error: OSError) -> bool:
    """Whether this is why nobody can listen there."""
    return error.errno == errno.EADDRINUSE


def taken(flag: str | None = None) -> str:
    """Why, and what to do about it; `flag` chooses the port, where the caller knows it."""
    choose = "choose another one" if flag is None else f"choose another one with {flag}"
    return f"{os.strerror(errno.EADDRINUSE)}. Another program has this port: {choose}, or 0 for any that is free."
