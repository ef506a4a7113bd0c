"""Creates the `BlockEnv` of a block from its header.

Import, building, calls and traces share this module, so a call sees the same values as a transaction in the same block.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ophion.chainspec.forks import BlobParameters
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.header_rules import blob_base_fee
from ophion.native.executor import BlockEnv, ChainRules
from ophion.primitives.header import Header
from ophion.primitives.types import Address, Hash32


class EnvOverrides(Struct, frozen=True):
    """Header fields that a simulated call replaces. A field that is None is not replaced."""

    number: int | None = None
    timestamp: int | None = None
    gas_limit: int | None = None
    beneficiary: Address | None = None
    mix_hash: Hash32 | None = None
    """Value of PREVRANDAO after the merge."""
    base_fee: int | None = None
    blob_base_fee: int | None = None


_NOTHING = EnvOverrides()


def chain_rules(
    spec: ChainSpec, is_relaxed: bool = False, signatures: Sequence[tuple[bytes, Address]] = ()
) -> ChainRules:
    """Return the part of the environment that all blocks of a network share.

    With `is_relaxed` (development chains), senders may have code and a transaction's gas has no cap. `signatures` are
    pairs of signature and address: ecrecover returns this address for the signature.
    """
    return ChainRules(
        chain_id=spec.chain_id,
        contract_size_limit=spec.contract_size_limit,
        deposit_contract=spec.deposit_contract,
        withdrawal_request_contract=spec.withdrawal_request_contract,
        consolidation_request_contract=spec.consolidation_request_contract,
        is_relaxed=is_relaxed,
        signatures=signatures,
    )


def block_env(
    spec: ChainSpec,
    rules: ChainRules,
    header: Header,
    beneficiary: Address,
    block_hashes: bytes | None = None,
    overrides: EnvOverrides = _NOTHING,
) -> BlockEnv:
    """Return the environment of a block.

    `beneficiary` earns the fees. The engine determines this address, because under Clique it is not the header's
    coinbase. `block_hashes` are the ancestor hashes, newest first. If None, the hashes of the canonical chain are read.
    """
    fork = spec.fork_of(header)
    blobs = fork.blobs
    # BFT headers may omit all fields since Shanghai, of which the withdrawals root is the first. A network with such
    # headers has no blobs (consensus.md 8).
    has_blobs = header.withdrawals_root is not None
    excess_blob_gas = header.excess_blob_gas
    if overrides.blob_base_fee is not None and blobs is not None:
        excess_blob_gas = excess_for_fee(overrides.blob_base_fee, blobs)
    return BlockEnv(
        rules=rules,
        fork=fork.name,
        number=header.number if overrides.number is None else overrides.number,
        timestamp=header.timestamp if overrides.timestamp is None else overrides.timestamp,
        beneficiary=beneficiary if overrides.beneficiary is None else overrides.beneficiary,
        gas_limit=header.gas_limit if overrides.gas_limit is None else overrides.gas_limit,
        difficulty=header.difficulty,
        mix_hash=header.mix_hash if overrides.mix_hash is None else overrides.mix_hash,
        base_fee=header.base_fee_per_gas if overrides.base_fee is None else overrides.base_fee,
        excess_blob_gas=excess_blob_gas,
        max_blobs=None if blobs is None else blobs.max if has_blobs else 0,
        blob_fee_fraction=None if blobs is None else blobs.fee_fraction,
        parent_beacon_root=header.parent_beacon_block_root,
        parent_hash=header.parent_hash,
        block_hashes=block_hashes,
        dao_fork=spec.dao_fork_block == header.number and header.number > 0,
    )


def excess_for_fee(fee: int, blobs: BlobParameters) -> int:
    """Return the smallest excess blob gas whose blob base fee is at least `fee`. An `eth_call` that sets
    `maxFeePerBlobGas` executes with this excess blob gas.
    """
    low, high = 0, 1
    while blob_base_fee(high, blobs.fee_fraction) < fee and high < 2**40:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if blob_base_fee(middle, blobs.fee_fraction) < fee:
            low = middle + 1
        else:
            high = middle
    return low
