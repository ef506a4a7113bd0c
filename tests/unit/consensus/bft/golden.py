"""Test vectors shared by both protocols (consensus.md 7). Keys 1 to 4 are public and for tests only."""

from __future__ import annotations

from msgspec.structs import replace

from ophion.consensus.bft.extra_data import BftExtraData, ExtraForm
from ophion.consensus.bft.message_factory import BftProtocol
from ophion.consensus.bft.messages import ProposedBlock
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.consensus.engine import Vote
from ophion.native.crypto import PrivateKey
from ophion.primitives import rlp
from ophion.primitives.header import Header
from ophion.primitives.types import (
    EMPTY_BLOOM,
    EMPTY_OMMERS_HASH,
    EMPTY_TRIE_ROOT,
    ZERO_ADDRESS,
    ZERO_NONCE,
)

K1, K2, K3, K4 = (PrivateKey(number.to_bytes(32, "big")) for number in range(1, 5))
VALIDATORS = tuple(sorted(key.address for key in (K1, K2, K3, K4)))
BFT_MIX_HASH = bytes.fromhex("63746963616c2062797a616e74696e65206661756c7420746f6c6572616e6365")

GENESIS_EXTRA = BftExtraData(bytes(32), VALIDATORS)
_FIRST, _SECOND = (1).to_bytes(20, "big"), (2).to_bytes(20, "big")
SEALED_EXTRA = BftExtraData(
    bytes(range(1, 33)),
    (_FIRST, _SECOND),
    Vote(_FIRST, True),
    0x00FEDCBA,
    (
        (1).to_bytes(32, "big") + (10).to_bytes(32, "big") + b"\0",
        (10).to_bytes(32, "big") + (1).to_bytes(32, "big") + b"\0",
    ),
)
"""Extra data with a vote, a round and two seals, from the tests of other clients (consensus.md 7.3)."""


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def bft_header(**fields: object) -> Header:
    """Return a header with the values that all vectors share."""
    values: dict[str, object] = {
        "parent_hash": bytes(32),
        "ommers_hash": EMPTY_OMMERS_HASH,
        "coinbase": ZERO_ADDRESS,
        "state_root": bytes(32),
        "transactions_root": EMPTY_TRIE_ROOT,
        "receipts_root": EMPTY_TRIE_ROOT,
        "logs_bloom": EMPTY_BLOOM,
        "difficulty": 1,
        "number": 1,
        "gas_limit": 4704588,
        "gas_used": 0,
        "timestamp": 1530674616,
        "extra_data": b"",
        "mix_hash": BFT_MIX_HASH,
        "nonce": ZERO_NONCE,
    }
    values.update(fields)
    return Header(**values)  # type: ignore[arg-type]


def message_header(protocol: BftProtocol, extra: BftExtraData = GENESIS_EXTRA) -> Header:
    """Return the header of consensus.md 7.4."""
    return bft_header(
        parent_hash=unhex("a7762d3307dbf2ae6a1ae1b09cf61c7603722b2379731b6b90409cdb8c8288a0"),
        coinbase=K4.address,
        state_root=unhex("ca07595b82f908822971b7e848398e3395e59ee52565c7ef3603df1a1fa7bc80"),
        extra_data=protocol.encode_extra(extra, ExtraForm.FULL),
    )


def message_block(protocol: BftProtocol, round_number: int = 0) -> ProposedBlock:
    """Return the block of consensus.md 7.4: the header of `message_header`, no transactions, no ommers."""
    header = message_header(protocol, replace(GENESIS_EXTRA, round=round_number))
    return protocol.candidate(rlp.list_of([header.encode(), rlp.EMPTY_LIST, rlp.EMPTY_LIST]))


COMMITTEE = ValidatorSet.of(1, VALIDATORS, ZERO_ADDRESS)
