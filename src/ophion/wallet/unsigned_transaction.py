"""A transaction before it is signed: its fields, its signing hash and its encodings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from ophion.native.crypto import PrivateKey, keccak256
from ophion.primitives import rlp
from ophion.primitives.types import Address, Hash32, Signature

LEGACY: Final = 0
ACCESS_LIST: Final = 1
DYNAMIC_FEE: Final = 2
BLOB: Final = 3
SET_CODE: Final = 4

AccessList: TypeAlias = Sequence[tuple[Address, Sequence[Hash32]]]
Authorization: TypeAlias = tuple[int, Address, int, int, int, int]
"""An authorization as a tuple: chain id, address, nonce, y parity, r, s."""

_UNPROTECTED: Final = 27
_PROTECTED: Final = 35


class UnsignedTransaction(Struct, frozen=True, kw_only=True):
    """All fields that a sender chooses. Fields that the type does not have are ignored."""

    type: int
    chain_id: int | None
    """Chain id. None for a legacy transaction without replay protection (before EIP-155)."""
    nonce: int
    gas: int
    to: Address | None
    """The recipient; None for the creation of a contract."""
    value: int = 0
    input: bytes = b""
    gas_price: int = 0
    """Gas price of a transaction of type 0 or 1. Other types ignore it."""
    max_fee_per_gas: int = 0
    max_priority_fee_per_gas: int = 0
    access_list: AccessList = ()
    max_fee_per_blob_gas: int = 0
    blob_hashes: Sequence[Hash32] = ()
    authorizations: Sequence[Authorization] = ()

    @property
    def signing_hash(self) -> Hash32:
        """Return the hash that the sender signs."""
        if self.type == LEGACY:
            chain = [] if self.chain_id is None else [rlp.scalar(self.chain_id), b"", b""]
            return keccak256(rlp.encode([*self._legacy_fields(), *chain]))
        return keccak256(bytes([self.type]) + rlp.encode(self._typed_fields()))

    def signed_by(self, key: PrivateKey) -> bytes:
        """Return the signed transaction, without blobs."""
        return self.with_signature(key.sign(self.signing_hash))

    def with_signature(self, signature: Signature) -> bytes:
        """Return the transaction with this signature: r, s and the parity of y."""
        parity = signature[64]
        if self.type == LEGACY:
            v = parity + (_UNPROTECTED if self.chain_id is None else _PROTECTED + 2 * self.chain_id)
            return rlp.encode([*self._legacy_fields(), rlp.scalar(v), *_r_and_s(signature)])
        return bytes([self.type]) + rlp.encode([*self._typed_fields(), rlp.scalar(parity), *_r_and_s(signature)])

    @property
    def unsigned(self) -> bytes:
        """Return the encoding without a signature."""
        if self.type == LEGACY:
            return rlp.encode([*self._legacy_fields(), b"", b"", b""])
        return bytes([self.type]) + rlp.encode([*self._typed_fields(), b"", b"", b""])

    def _legacy_fields(self) -> list[rlp.Encodable]:
        return [
            rlp.scalar(self.nonce),
            rlp.scalar(self.gas_price),
            rlp.scalar(self.gas),
            self.to or b"",
            rlp.scalar(self.value),
            self.input,
        ]

    def _typed_fields(self) -> list[rlp.Encodable]:
        prices = [self.gas_price] if self.type == ACCESS_LIST else [self.max_priority_fee_per_gas, self.max_fee_per_gas]
        fields: list[rlp.Encodable] = [
            rlp.scalar(self.chain_id or 0),
            rlp.scalar(self.nonce),
            *(rlp.scalar(price) for price in prices),
            rlp.scalar(self.gas),
            self.to or b"",
            rlp.scalar(self.value),
            self.input,
            [[address, list(slots)] for address, slots in self.access_list],
        ]
        if self.type == BLOB:
            fields += [rlp.scalar(self.max_fee_per_blob_gas), list(self.blob_hashes)]
        if self.type == SET_CODE:
            fields.append([_authorization(one) for one in self.authorizations])
        return fields


def _authorization(one: Authorization) -> rlp.Encodable:
    chain_id, address, nonce, parity, r, s = one
    return [rlp.scalar(chain_id), address, rlp.scalar(nonce), rlp.scalar(parity), rlp.scalar(r), rlp.scalar(s)]


def _r_and_s(signature: Signature) -> tuple[bytes, bytes]:
    return signature[:32].lstrip(b"\0"), signature[32:64].lstrip(b"\0")
