"""Raises the process's limit on open files and sockets to the number that the services need."""

from __future__ import annotations

import logging
import resource

logger = logging.getLogger(__name__)

RESERVE = 512
"""Number of files besides connections: the database, logs, listening sockets, peers."""


def allow_open_files(connections: int) -> None:
    """Raise the soft limit for this many connections. Logs a warning when the hard limit is lower."""
    wanted = connections + RESERVE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        logger.warning("limit of open files is too low for the connections limit=%d needed=%d", allowed, wanted)
