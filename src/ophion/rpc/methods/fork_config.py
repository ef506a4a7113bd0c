"""`eth_config`: the current, the next and the last known fork configuration (EIP-7910).

Tools compare this configuration between nodes before a fork. The entry of a fork has its activation time, which is 0
for forks activated by block number.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

from ophion.chain.queries import ChainQueries
from ophion.chainspec.forks import Fork, Milestone
from ophion.chainspec.spec import ChainSpec
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import Address, Hash32

_PRECOMPILES: Final = (
    ("ECREC", 0x01, Milestone.FRONTIER),
    ("SHA256", 0x02, Milestone.FRONTIER),
    ("RIPEMD160", 0x03, Milestone.FRONTIER),
    ("ID", 0x04, Milestone.FRONTIER),
    ("MODEXP", 0x05, Milestone.BYZANTIUM),
    ("BN254_ADD", 0x06, Milestone.BYZANTIUM),
    ("BN254_MUL", 0x07, Milestone.BYZANTIUM),
    ("BN254_PAIRING", 0x08, Milestone.BYZANTIUM),
    ("BLAKE2F", 0x09, Milestone.ISTANBUL),
    ("KZG_POINT_EVALUATION", 0x0A, Milestone.CANCUN),
    ("BLS12_G1ADD", 0x0B, Milestone.PRAGUE),
    ("BLS12_G1MSM", 0x0C, Milestone.PRAGUE),
    ("BLS12_G2ADD", 0x0D, Milestone.PRAGUE),
    ("BLS12_G2MSM", 0x0E, Milestone.PRAGUE),
    ("BLS12_PAIRING_CHECK", 0x0F, Milestone.PRAGUE),
    ("BLS12_MAP_FP_TO_G1", 0x10, Milestone.PRAGUE),
    ("BLS12_MAP_FP2_TO_G2", 0x11, Milestone.PRAGUE),
    ("P256VERIFY", 0x100, Milestone.OSAKA),
)
_BEACON_ROOTS: Final = bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")
_HISTORY_STORAGE: Final = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
_WITHDRAWAL_REQUESTS: Final = bytes.fromhex("00000961ef480eb55e80d19ad83579a64c007002")
_CONSOLIDATION_REQUESTS: Final = bytes.fromhex("0000bbddc7ce488642fb579f8b00f3a590007251")


def fork_config(queries: ChainQueries, genesis_hash: Hash32) -> dict[str, Any]:
    """Return the entries `current`, `next` and `last`. `next` and `last` are null if no fork is scheduled."""
    spec, head = queries.spec, queries.head.header
    begun = [time for time in spec.fork_times if time <= head.timestamp]
    to_come = [time for time in spec.fork_times if time > head.timestamp]

    def entry(time: int, fork: Fork) -> dict[str, Any]:
        blocks = spec.fork_blocks if time else [number for number in spec.fork_blocks if number <= head.number]
        passed = [*blocks, *(other for other in spec.fork_times if other <= time)]
        return _entry(spec, fork, time, fork_id(genesis_hash, passed))

    return {
        "current": entry(begun[-1] if begun else 0, spec.fork_of(head)),
        "next": entry(to_come[0], spec.fork_at(head.number, to_come[0])) if to_come else None,
        "last": entry(to_come[-1], spec.fork_at(head.number, to_come[-1])) if to_come else None,
    }


def fork_id(genesis_hash: Hash32, passed: list[int]) -> bytes:
    """Return the checksum of the genesis hash and all passed forks, in order (EIP-2124)."""
    checksum = zlib.crc32(genesis_hash)
    for point in passed:
        checksum = zlib.crc32(point.to_bytes(8, "big"), checksum)
    return checksum.to_bytes(4, "big")


def _entry(spec: ChainSpec, fork: Fork, time: int, identifier: bytes) -> dict[str, Any]:
    blobs = fork.blobs
    schedule = (
        None
        if blobs is None
        else {"target": blobs.target, "max": blobs.max, "baseFeeUpdateFraction": blobs.fee_fraction}
    )
    return {
        "activationTime": time,
        "blobSchedule": schedule,
        "chainId": quantity(spec.chain_id),
        "forkId": data(identifier),
        "precompiles": {
            name: data(number.to_bytes(20, "big")) for name, number, since in _PRECOMPILES if fork.has(since)
        },
        "systemContracts": {name: data(address) for name, address in _system_contracts(spec, fork)},
    }


def _system_contracts(spec: ChainSpec, fork: Fork) -> list[tuple[str, Address]]:
    found = []
    if fork.has(Milestone.CANCUN):
        found.append(("BEACON_ROOTS_ADDRESS", _BEACON_ROOTS))
    if fork.has(Milestone.PRAGUE):
        consolidations = spec.consolidation_request_contract or _CONSOLIDATION_REQUESTS
        found.append(("CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS", consolidations))
        if spec.deposit_contract is not None:
            found.append(("DEPOSIT_CONTRACT_ADDRESS", spec.deposit_contract))
        found.append(("HISTORY_STORAGE_ADDRESS", _HISTORY_STORAGE))
        withdrawals = spec.withdrawal_request_contract or _WITHDRAWAL_REQUESTS
        found.append(("WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS", withdrawals))
    return found
