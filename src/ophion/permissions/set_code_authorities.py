"""Authorities of a set-code transaction (EIP-7702). The account rules apply to authorities and senders alike."""

from __future__ import annotations

from typing import Any, Final

from ophion.native.crypto import keccak256, recover_addresses
from ophion.native.transactions import Transaction
from ophion.primitives import rlp
from ophion.primitives.types import Address

SET_CODE_TYPE: Final = 4
_AUTHORIZATIONS: Final = 9
"""Position of the authorization list in the transaction."""
_MAGIC: Final = b"\x05"
_MAX_S: Final = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
"""Maximum `s` of a signature: half the order of secp256k1 (EIP-2). Execution ignores an authorization with a larger
`s`.
"""


def authorities(transaction: Transaction) -> list[Address]:
    """Return the accounts that signed an authorization in the transaction, without duplicates. Other transaction types
    have no authorities.

    Does not check whether chain id and nonce of an authorization are valid. A check of the nonce would need the state.
    """
    if transaction.type != SET_CODE_TYPE:
        return []
    raw = transaction.raw
    listed: Any = rlp.decode_list(raw[1:], len(raw))[_AUTHORIZATIONS]
    signatures = []
    for chain_id, address, nonce, parity, r, s in listed:
        # the Rust extension has already checked that each entry has six fields
        if parity in (b"", b"\x01") and int.from_bytes(s, "big") <= _MAX_S:
            digest = keccak256(_MAGIC + rlp.encode([chain_id, address, nonce]))
            signatures.append((digest, r.rjust(32, b"\0") + s.rjust(32, b"\0") + (parity or b"\0")))
    return [account for account in dict.fromkeys(recover_addresses(signatures)) if account is not None]
