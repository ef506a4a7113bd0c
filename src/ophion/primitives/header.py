"""Block headers.

`Header` holds the fields of the RLP (consensus.md 0.2). The consensus engine computes the hash of a header
(`Engine.hashed`) and returns header and hash as a `HashedHeader`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError
from ophion.primitives.types import Address, Hash32

_CLASSIC_FIELDS: Final = 15
_TAIL_FIELDS: Final = 8
_WITHDRAWALS_ROOT: Final = 16
_GAPPED_FIELDS: Final = 18
_NAMES: Final = (
    "parentHash",
    "ommersHash",
    "coinbase",
    "stateRoot",
    "transactionsRoot",
    "receiptsRoot",
    "logsBloom",
    "difficulty",
    "number",
    "gasLimit",
    "gasUsed",
    "timestamp",
    "extraData",
    "mixHash",
    "nonce",
    "baseFeePerGas",
    "withdrawalsRoot",
    "blobGasUsed",
    "excessBlobGas",
    "parentBeaconBlockRoot",
    "requestsHash",
    "blockAccessListHash",
    "slotNumber",
)
# `_SIZES` holds the exact size of each byte field and the maximum size of each scalar field; extra data has no limit
_SIZES: Final = {0: 32, 1: 32, 2: 20, 3: 32, 4: 32, 5: 32, 6: 256, 13: 32, 14: 8, 16: 32, 19: 32, 20: 32, 21: 32}
_WIDTHS: Final = {7: 32, 8: 8, 9: 8, 10: 8, 11: 8, 15: 32, 17: 8, 18: 8, 22: 8}


class Header(Struct, frozen=True):
    """A block header: fifteen fields of all forks, and further fields that later forks add.

    A later field is present only if every field before it is present. Other clients write one exception: 18 fields that
    end with base fee, blob gas used and excess blob gas (consensus.md 8).
    """

    parent_hash: Hash32
    """Hash of the parent block; zero in a genesis block."""
    ommers_hash: Hash32
    """Keccak-256 of the RLP list of ommer headers."""
    coinbase: Address
    """The beneficiary (proof of work), the proposer (BFT) or the target of a vote (Clique)."""
    state_root: Hash32
    """Root of the world state after the block."""
    transactions_root: Hash32
    """Root of the trie of transactions by position."""
    receipts_root: Hash32
    """Root of the trie of receipts by position."""
    logs_bloom: bytes
    """256 bytes: the union of the bloom filters of all receipts."""
    difficulty: int
    """Weight of the block in fork choice; zero after the merge."""
    number: int
    """Height of the block; 0 for the genesis block."""
    gas_limit: int
    """Maximum gas of all transactions."""
    gas_used: int
    """Gas used by all transactions."""
    timestamp: int
    """Unix time in seconds."""
    extra_data: bytes
    """Arbitrary bytes; consensus data in proof-of-authority networks."""
    mix_hash: Hash32
    """Proof-of-work mix, a constant (BFT), zero (Clique) or `prevRandao` (after the merge)."""
    nonce: bytes
    """8 bytes: proof-of-work nonce or the direction of a vote."""
    base_fee_per_gas: int | None = None
    """Wei burned per unit of gas. From London on (EIP-1559)."""
    withdrawals_root: Hash32 | None = None
    """Root of the trie of withdrawals by position. From Shanghai on (EIP-4895)."""
    blob_gas_used: int | None = None
    """Blob gas of the block's transactions. From Cancun on (EIP-4844)."""
    excess_blob_gas: int | None = None
    """Accumulated blob gas above the target. It determines the blob base fee. From Cancun on."""
    parent_beacon_block_root: Hash32 | None = None
    """Root of the parent beacon block. From Cancun on (EIP-4788)."""
    requests_hash: Hash32 | None = None
    """Commitment to the requests for the consensus layer. From Prague on (EIP-7685)."""
    block_access_list_hash: Hash32 | None = None
    """Commitment to the block access list (EIP-7928). Decoded, but not used."""
    slot_number: int | None = None
    """Slot of the consensus layer. Decoded, but not used."""

    def encode(self) -> bytes:
        """Encode the header as RLP."""
        return rlp.list_of(self.encoded_fields(self.extra_data))

    def encoded_fields(self, extra_data: bytes) -> list[bytes]:
        """Return the encoded fields, with `extra_data` in place of the own extra data: engines hash and sign headers
        without the seals.
        """
        scalar = rlp.encode_int
        fields = [
            b"\xa0" + self.parent_hash,
            b"\xa0" + self.ommers_hash,
            b"\x94" + self.coinbase,
            b"\xa0" + self.state_root,
            b"\xa0" + self.transactions_root,
            b"\xa0" + self.receipts_root,
            b"\xb9\x01\x00" + self.logs_bloom,
            scalar(self.difficulty),
            scalar(self.number),
            scalar(self.gas_limit),
            scalar(self.gas_used),
            scalar(self.timestamp),
            rlp.encode_bytes(extra_data),
            b"\xa0" + self.mix_hash,
            b"\x88" + self.nonce,
        ]
        if self.base_fee_per_gas is not None:
            fields.append(scalar(self.base_fee_per_gas))
            if self.withdrawals_root is not None:
                fields.append(b"\xa0" + self.withdrawals_root)
            self._append_tail(fields)
        return fields

    def _append_tail(self, fields: list[bytes]) -> None:
        if self.blob_gas_used is None:
            return
        fields.append(rlp.encode_int(self.blob_gas_used))
        for value in (
            self.excess_blob_gas,
            self.parent_beacon_block_root,
            self.requests_hash,
            self.block_access_list_hash,
            self.slot_number,
        ):
            if value is None:
                return
            fields.append(rlp.encode_int(value) if isinstance(value, int) else rlp.encode_bytes(value))

    @classmethod
    def decode(cls, data: bytes) -> Header:
        """Decode a header. Raises `RlpError`, which names the invalid field."""
        items = rlp.decode(data, max_items=_CLASSIC_FIELDS + _TAIL_FIELDS + 1)
        if not isinstance(items, list):
            raise RlpError("a byte string where a block header is expected", 0)
        return cls.from_items(items)

    @classmethod
    def from_items(cls, items: list[rlp.Item]) -> Header:
        """Read a header from decoded RLP items."""
        count = len(items)
        if not _CLASSIC_FIELDS <= count <= _CLASSIC_FIELDS + _TAIL_FIELDS:
            raise RlpError(f"a block header of {count} fields; it has 15 to 23", 0)
        values: list[bytes] = []
        for index, item in enumerate(items):
            if not isinstance(item, bytes):
                raise RlpError(f"header field {_NAMES[index]} is a list", 0)
            values.append(item)
        is_gapped = count == _GAPPED_FIELDS and len(values[_WITHDRAWALS_ROOT]) != _SIZES[_WITHDRAWALS_ROOT]
        if is_gapped:
            values.insert(_WITHDRAWALS_ROOT, b"")
            count += 1
        for index, size in _SIZES.items():
            if index < count and len(values[index]) != size and not (is_gapped and index == _WITHDRAWALS_ROOT):
                raise RlpError(f"header field {_NAMES[index]} has {len(values[index])} bytes instead of {size}", 0)
        numbers: dict[int, int] = {}
        for index, width in _WIDTHS.items():
            if index < count:
                value = values[index]
                if len(value) > width:
                    raise RlpError(f"header field {_NAMES[index]} is wider than {8 * width} bits", 0)
                if value[:1] == b"\x00":
                    raise RlpError(f"header field {_NAMES[index]} has leading zeros", 0)
                numbers[index] = int.from_bytes(value, "big")
        return cls(
            values[0],
            values[1],
            values[2],
            values[3],
            values[4],
            values[5],
            values[6],
            numbers[7],
            numbers[8],
            numbers[9],
            numbers[10],
            numbers[11],
            values[12],
            values[13],
            values[14],
            numbers.get(15),
            values[16] if count > 16 and not is_gapped else None,
            numbers.get(17),
            numbers.get(18),
            values[19] if count > 19 else None,
            values[20] if count > 20 else None,
            values[21] if count > 21 else None,
            numbers.get(22),
        )


class HashedHeader(Struct, frozen=True):
    """A header and its hash, as the consensus engine computes it."""

    header: Header
    hash: Hash32

    @property
    def number(self) -> int:
        """Height of the block."""
        return self.header.number

    @property
    def parent_hash(self) -> Hash32:
        """Hash of the parent block."""
        return self.header.parent_hash

    @property
    def timestamp(self) -> int:
        """Unix time of the block in seconds."""
        return self.header.timestamp

    def __str__(self) -> str:
        return f"{self.header.number} (0x{self.hash.hex()})"
