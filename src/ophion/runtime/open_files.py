"""How many files and sockets this process may have open: as many as its services promise."""

from __future__ import annotations

import logging
import resource

logger = logging.getLogger(__name__)

RESERVE = 512
"""Files beside the connections: the database, logs, listening sockets, peers."""


def allow_open_files(connections: int) -> None:
    """Raise the soft limit for so many connections; a hard limit below that is worth a warning."""
    wanted = connections + RESERVE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        logger.warning("open files are limited to %d by the system; connections want %d", allowed, wanted)
