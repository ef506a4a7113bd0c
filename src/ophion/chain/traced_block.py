"""Creates the `TracedBlock` of a stored block: its body, environment, rewards and the state before it.

Traces over JSON-RPC and the datasets of `ophion.data` share this module, so both execute a block alike.
"""

from __future__ import annotations

from ophion.chain.ancestor_hashes import ancestor_hashes
from ophion.chain.block import ommers_of
from ophion.chain.block_environment import block_env
from ophion.chain.chain import Chain
from ophion.native.tracing import TracedBlock
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader


def traced_block_of(chain: Chain, header: HashedHeader, body: Body | None = None) -> TracedBlock | None:
    """Return a block with the state of its parent; None for genesis, or if the parent or the body is missing.

    Raises `MissingStateError` when the state is pruned. If the engine pays no reward, `rewards` has one entry: the
    beneficiary, with a reward of 0.
    """
    parent = None if header.number == 0 else chain.header(header.parent_hash)
    body = body or chain.store.body(header.hash)
    if parent is None or body is None:
        return None
    beneficiary = chain.engine.beneficiary(header)
    hashes = None if chain.is_canonical(parent) else ancestor_hashes(chain.store, chain.header, parent)
    return TracedBlock(
        parent=chain.state(parent.header),
        env=block_env(chain.spec, chain.rules, header.header, beneficiary, hashes),
        body=body,
        hash=header.hash,
        rewards=chain.engine.rewards(header, ommers_of(body)) or [(beneficiary, 0)],
    )
