"""Starts a development chain with a genesis block whose number is not 0."""

from __future__ import annotations

from msgspec.structs import replace

from ophion.chain.chain import Chain
from ophion.chainspec.genesis import Genesis
from ophion.native.exceptions import translated
from ophion.native.executor import genesis_state


def begin_at_number(chain: Chain, genesis: Genesis, number: int) -> None:
    """Start the chain at block `number`, with the state and the other fields of the genesis block. If the database
    already has a chain from this number on, the chain continues from its head.
    """
    known = chain.canonical(number)
    if known is not None:
        chain.genesis = known
        return
    accounts = [(one.address, one.nonce, one.balance, one.code, one.storage) for one in genesis.accounts]
    header = replace(chain.genesis.header, number=number)
    with translated():
        chain.begin_at(chain.engine.hashed(header), genesis_state(chain.store, accounts))
