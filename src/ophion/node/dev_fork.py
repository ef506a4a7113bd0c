"""The fork that the options of a development node ask for."""

from __future__ import annotations

from functools import cache

from ophion.chainspec.dev import DEFAULT_DEV_FORK
from ophion.dev.fork.fork import Fork
from ophion.dev.fork.settings import ForkSettings


@cache
def opened_fork(settings: ForkSettings) -> Fork:
    """Open a fork; genesis and chain of one node use the same."""
    return Fork.open(settings)


def fork_name(fork: Fork) -> str:
    """Return the latest fork of the rules that can follow the forked block."""
    header = fork.point.header.header
    if header.requests_hash is not None:
        return DEFAULT_DEV_FORK
    if header.excess_blob_gas is not None:
        return "cancun"
    if header.withdrawals_root is not None:
        return "shanghai"
    return "london" if header.base_fee_per_gas is not None else "berlin"
