"""The header fields of a new block that all engines fill in the same way."""

from __future__ import annotations

from ophion.chainspec.forks import Milestone
from ophion.chainspec.spec import ChainSpec
from ophion.consensus import header_rules as rules
from ophion.consensus.engine import BlockPreferences
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import (
    EMPTY_BLOOM,
    EMPTY_OMMERS_HASH,
    EMPTY_REQUESTS_HASH,
    EMPTY_TRIE_ROOT,
    ZERO_HASH,
    ZERO_NONCE,
)


def unsealed_header(
    parent: HashedHeader, preferences: BlockPreferences, spec: ChainSpec, merged: bool = False
) -> Header:
    """Return a header on `parent` with gas limit, base fee and the fields of later forks. Difficulty and roots are
    empty.
    """
    number = parent.number + 1
    fork = spec.fork_at(number, preferences.timestamp, merged)
    is_first_london = fork.has(Milestone.LONDON) and parent.header.base_fee_per_gas is None
    is_cancun = fork.blobs is not None
    return Header(
        parent_hash=parent.hash,
        ommers_hash=EMPTY_OMMERS_HASH,
        coinbase=preferences.author,
        state_root=ZERO_HASH,
        transactions_root=EMPTY_TRIE_ROOT,
        receipts_root=EMPTY_TRIE_ROOT,
        logs_bloom=EMPTY_BLOOM,
        difficulty=0,
        number=number,
        gas_limit=rules.next_gas_limit(parent.header, is_first_london, preferences.target_gas_limit),
        gas_used=0,
        timestamp=preferences.timestamp,
        extra_data=preferences.extra_data,
        mix_hash=preferences.mix_hash,
        nonce=ZERO_NONCE,
        base_fee_per_gas=rules.base_fee_for(parent.header, fork, spec, preferences.fixed_base_fee),
        withdrawals_root=EMPTY_TRIE_ROOT if fork.has(Milestone.SHANGHAI) else None,
        blob_gas_used=0 if is_cancun else None,
        excess_blob_gas=rules.next_excess_blob_gas(parent.header, fork, fork.blobs) if fork.blobs is not None else None,
        parent_beacon_block_root=preferences.parent_beacon_block_root if is_cancun else None,
        requests_hash=EMPTY_REQUESTS_HASH if fork.has(Milestone.PRAGUE) else None,
    )
