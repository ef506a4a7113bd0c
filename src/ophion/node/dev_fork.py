"""The fork that the options of a development node ask for."""

from __future__ import annotations

from functools import cache

from ophion.chainspec.dev import DEFAULT_DEV_FORK
from ophion.dev.fork.fork import Fork
from ophion.dev.fork.settings import ForkSettings


@cache
def opened_fork(settings: ForkSettings) -> Fork:
    """Open a fork, once: genesis and chain of a node share it."""
    return Fork.open(settings)


def fork_name(fork: Fork) -> str:
    """Return the name of the latest protocol fork that fits the header fields of the forked block."""
    header = fork.point.header.header
    if header.requests_hash is not None:
        return DEFAULT_DEV_FORK
    if header.excess_blob_gas is not None:
        return "cancun"
    if header.withdrawals_root is not None:
        return "shanghai"
    return "london" if header.base_fee_per_gas is not None else "berlin"
