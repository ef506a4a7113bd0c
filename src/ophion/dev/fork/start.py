"""Starts or restarts a development chain at a block of another chain."""

from __future__ import annotations

from collections.abc import Iterable

from ophion.chain.chain import Chain
from ophion.dev.fork.remote_state import Fork
from ophion.native.exceptions import translated
from ophion.native.executor import genesis_state
from ophion.primitives.types import Address, Hash32


def start_fork(chain: Chain, fork: Fork, balances: Iterable[tuple[Address, int]]) -> Hash32:
    """Start the chain at the forked block, with funded development accounts. Returns the local state root."""
    funded = list(balances)
    fork.load((address, None, None) for address, _ in funded)
    accounts = [(address, fork.nonce(address), balance, b"", ()) for address, balance in funded]
    with translated():
        execution = genesis_state(chain.store, accounts)
        chain.begin_at(fork.point.header, execution)
        fork.state.attach(chain.store)
    return execution.state_root
