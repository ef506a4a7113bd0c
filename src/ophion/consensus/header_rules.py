"""Header rules that all engines share.

Each rule is a function of a header, its parent and the specification, and raises `InvalidHeader(rule, got, expected)`.
The block builder uses the same functions for expected values (`next_base_fee`, `next_excess_blob_gas`, ...), so built
blocks follow the rules.
"""

from __future__ import annotations

from typing import Final

from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.forks import BlobParameters, Fork, Milestone
from ophion.chainspec.spec import ChainSpec
from ophion.errors import InvalidHeader
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import EMPTY_OMMERS_HASH

MIN_GAS_LIMIT: Final = 5000
MAX_GAS_LIMIT: Final = 2**63 - 1
GAS_LIMIT_DIVISOR: Final = 1024
_GOQUORUM_MARK: Final = '"isQuorum": true'
MAX_EXTRA_DATA: Final = 32
GAS_PER_BLOB: Final = 2**17
_ELASTICITY: Final = 2
_BASE_FEE_CHANGE_DIVISOR: Final = 8
_MIN_BLOB_BASE_FEE: Final = 1
_BLOB_BASE_COST: Final = 2**13

_TAIL: Final = (
    ("base_fee_per_gas", Milestone.LONDON),
    ("withdrawals_root", Milestone.SHANGHAI),
    ("blob_gas_used", Milestone.CANCUN),
    ("excess_blob_gas", Milestone.CANCUN),
    ("parent_beacon_block_root", Milestone.CANCUN),
    ("requests_hash", Milestone.PRAGUE),
)


# --- position in the chain ----------------------------------------------------------------------


def check_parent(header: Header, parent: HashedHeader) -> None:
    """Check that the header contains the hash of its parent and the next block number."""
    if header.parent_hash != parent.hash:
        raise InvalidHeader("parent hash", header.parent_hash, parent.hash)
    if header.number != parent.header.number + 1:
        raise InvalidHeader("number", header.number, parent.header.number + 1)


def check_timestamp(header: Header, parent: Header, least_distance_s: int = 1) -> None:
    """Check that the timestamp is at least `least_distance_s` seconds after the timestamp of the parent."""
    if header.timestamp < parent.timestamp + least_distance_s:
        raise InvalidHeader("timestamp", header.timestamp, f"at least {parent.timestamp + least_distance_s}")


def check_not_future(header: Header, now: int, lead_s: int) -> None:
    """Check that the timestamp is at most `lead_s` seconds in the future. The error is transient, because time
    passes.
    """
    if header.timestamp > now + lead_s:
        raise InvalidHeader("timestamp in the future", header.timestamp, f"at most {now + lead_s}", transient=True)


def check_extra_data(header: Header) -> None:
    """Check the length of the extra data. Engines that store consensus data there do not use this rule."""
    if len(header.extra_data) > MAX_EXTRA_DATA:
        raise InvalidHeader("extra data length", len(header.extra_data), f"at most {MAX_EXTRA_DATA}")


def check_no_ommers(header: Header) -> None:
    """Check that the header has no ommers, which only proof of work allows."""
    if header.ommers_hash != EMPTY_OMMERS_HASH:
        raise InvalidHeader("ommers hash", header.ommers_hash, EMPTY_OMMERS_HASH)


# --- gas ----------------------------------------------------------------------------------------


def check_gas_used(header: Header) -> None:
    """Check that the gas used is within the gas limit."""
    if header.gas_used > header.gas_limit:
        raise InvalidHeader("gas used", header.gas_used, f"at most {header.gas_limit}")


def check_gas_limit(header: Header, parent: Header, spec: ChainSpec) -> None:
    """Check that the gas limit is in the absolute range and, except on a network of GoQuorum, differs from the parent's
    limit by less than 1/1024. For the first London block, the parent's limit is doubled first.
    """
    limit = header.gas_limit
    if not MIN_GAS_LIMIT <= limit <= MAX_GAS_LIMIT:
        raise InvalidHeader("gas limit", limit, f"{MIN_GAS_LIMIT} to {MAX_GAS_LIMIT}")
    reference = _reference_gas_limit(header, parent, spec)
    bound = reference // GAS_LIMIT_DIVISOR
    if abs(limit - reference) >= bound and not spec.has_free_gas_limit:
        expected = f"less than {bound} away from {reference}"
        if spec.engine is EngineKind.QBFT:
            expected += f"; more needs {_GOQUORUM_MARK} in the config of the genesis file, for a network of GoQuorum"
        raise InvalidHeader("gas limit", limit, expected)


def next_gas_limit(parent: Header, is_first_london: bool, target: int | None) -> int:
    """Return the gas limit of the next block: the parent's limit, moved one step towards the target, if any
    (consensus.md 5.2).
    """
    limit = parent.gas_limit
    if target is not None:
        step = max(limit // GAS_LIMIT_DIVISOR - 1, 0)
        limit = min(target, limit + step) if target > limit else max(target, limit - step)
    if is_first_london:
        limit *= _ELASTICITY
    return max(MIN_GAS_LIMIT, min(limit, MAX_GAS_LIMIT))


def is_first_london(header: Header, parent: Header, spec: ChainSpec) -> bool:
    """Whether the header is the first header with a base fee."""
    return spec.fork_of(header).has(Milestone.LONDON) and not spec.fork_of(parent).has(Milestone.LONDON)


def _reference_gas_limit(header: Header, parent: Header, spec: ChainSpec) -> int:
    return parent.gas_limit * _ELASTICITY if is_first_london(header, parent, spec) else parent.gas_limit


# --- base fee -----------------------------------------------------------------------------------


def next_base_fee(parent: Header, spec: ChainSpec) -> int:
    """Return the base fee of the block after `parent` by EIP-1559. Network options are ignored."""
    if parent.base_fee_per_gas is None:
        return spec.initial_base_fee
    fee = parent.base_fee_per_gas
    target = parent.gas_limit // _ELASTICITY
    if parent.gas_used == target or target == 0:
        return fee
    if parent.gas_used > target:
        return fee + max(fee * (parent.gas_used - target) // target // _BASE_FEE_CHANGE_DIVISOR, 1)
    return fee - fee * (target - parent.gas_used) // target // _BASE_FEE_CHANGE_DIVISOR


def check_base_fee(header: Header, parent: Header, spec: ChainSpec) -> None:
    """Check the base fee, unless a network option replaces EIP-1559 (consensus.md 5.3)."""
    if header.base_fee_per_gas is None or spec.zero_base_fee or spec.fixed_base_fee:
        return
    expected = next_base_fee(parent, spec)
    if header.base_fee_per_gas != expected:
        raise InvalidHeader("base fee", header.base_fee_per_gas, expected)


def base_fee_for(parent: Header, fork: Fork, spec: ChainSpec, fixed_base_fee: int) -> int | None:
    """Return the base fee that a builder writes into the block after `parent`, or None before London."""
    if not fork.has(Milestone.LONDON):
        return None
    if spec.zero_base_fee:
        return 0
    if spec.fixed_base_fee:
        return fixed_base_fee
    return next_base_fee(parent, spec)


# --- fields of later forks ----------------------------------------------------------------------


def check_tail(header: Header, fork: Fork) -> None:
    """Check that the header has exactly the fields of the active fork."""
    for name, since in _TAIL:
        value = getattr(header, name)
        if (value is not None) != fork.has(since):
            expected = "present" if fork.has(since) else "absent"
            got = "absent" if value is None else "present"
            raise InvalidHeader(name.replace("_", " "), got, f"{expected} in {fork.milestone.name.lower()}")
    if header.block_access_list_hash is not None:
        raise InvalidHeader("fields after requests hash", "present", "absent")


def check_blobs(header: Header, parent: Header, fork: Fork) -> None:
    """Check blob gas used and excess blob gas (EIP-4844, EIP-7918)."""
    if fork.blobs is None or header.blob_gas_used is None or header.excess_blob_gas is None:
        return
    if header.blob_gas_used % GAS_PER_BLOB:
        raise InvalidHeader("blob gas used", header.blob_gas_used, f"a multiple of {GAS_PER_BLOB}")
    if header.blob_gas_used > fork.blobs.max * GAS_PER_BLOB:
        raise InvalidHeader("blob gas used", header.blob_gas_used, f"at most {fork.blobs.max * GAS_PER_BLOB}")
    expected = next_excess_blob_gas(parent, fork, fork.blobs)
    if header.excess_blob_gas != expected:
        raise InvalidHeader("excess blob gas", header.excess_blob_gas, expected)


def next_excess_blob_gas(parent: Header, fork: Fork, blobs: BlobParameters) -> int:
    """Return the excess blob gas of the block after `parent`. `fork` and `blobs` belong to the new block."""
    excess = parent.excess_blob_gas or 0
    used = parent.blob_gas_used or 0
    target = blobs.target * GAS_PER_BLOB
    if excess + used < target:
        return 0
    if fork.has(Milestone.OSAKA):
        # the blob fee does not fall while execution gas costs more than blob gas (EIP-7918)
        price = blob_base_fee(excess, blobs.fee_fraction)
        if _BLOB_BASE_COST * (parent.base_fee_per_gas or 0) > GAS_PER_BLOB * price:
            return excess + used * (blobs.max - blobs.target) // blobs.max
    return excess + used - target


def blob_base_fee(excess_blob_gas: int, fee_fraction: int) -> int:
    """Return the price of blob gas in wei: e^(excess/fraction), by the integer series of EIP-4844."""
    index = 1
    output = 0
    term = _MIN_BLOB_BASE_FEE * fee_fraction
    while term > 0:
        output += term
        term = term * excess_blob_gas // (fee_fraction * index)
        index += 1
    return output // fee_fraction
