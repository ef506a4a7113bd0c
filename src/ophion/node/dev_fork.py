"""Opens the fork of another chain that the options of a development node name."""

from __future__ import annotations

import logging
import socket
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from ophion.chainspec.network_names import DEFAULT_DEV_FORK
from ophion.dev.fork.remote_state import Fork
from ophion.dev.fork.response_cache import find_point
from ophion.dev.fork.settings import ForkSettings

log = logging.getLogger(__name__)

_PROBE_TIMEOUT_S: Final = 2.0


@cache
def opened_fork(settings: ForkSettings) -> Fork:
    """Open a fork at the first call. Later calls return the same fork, which genesis and chain share."""
    _warn_if_away(settings)
    return Fork.open(settings)


def _warn_if_away(settings: ForkSettings) -> None:
    """Warn at start if the fork's source does not accept connections, because a request fails only after several
    retries. A forked block in the cache needs no source.
    """
    number, folder = settings.block_number, settings.cache_path
    if number is not None and folder is not None and find_point(folder, settings.url, number) is not None:
        return
    parts = urlsplit(settings.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), _PROBE_TIMEOUT_S).close()
    except OSError as error:
        log.warning(
            "source of the fork does not answer, trying again source=%s:%d reason=%s retries=%d",
            parts.hostname,
            port,
            error.strerror or error,
            settings.retries,
        )


def fork_name(fork: Fork) -> str:
    """Return the name of the latest protocol fork whose header fields match the forked block."""
    header = fork.point.header.header
    if header.requests_hash is not None:
        return DEFAULT_DEV_FORK
    if header.excess_blob_gas is not None:
        return "cancun"
    if header.withdrawals_root is not None:
        return "shanghai"
    return "london" if header.base_fee_per_gas is not None else "berlin"
