"""Signed text messages (EIP-191). The prefix ensures that a message is never a valid transaction."""

from __future__ import annotations

from ophion.native.crypto import PrivateKey, keccak256
from ophion.primitives.types import Hash32, Signature

_V_OFFSET = 27


def message_hash(message: bytes) -> Hash32:
    """Return the hash that is signed for a message."""
    return keccak256(b"\x19Ethereum Signed Message:\n%d%b" % (len(message), message))


def sign_hash(key: PrivateKey, digest: Hash32) -> Signature:
    """Sign a hash. Returns r, s and v, with v 27 or 28."""
    signature = key.sign(digest)
    return signature[:64] + bytes([signature[64] + _V_OFFSET])
