"""Texts as accounts sign them (EIP-191): with a prefix, so that no transaction can hide in one."""

from __future__ import annotations

from ophion.native.crypto import PrivateKey, keccak256
from ophion.primitives.types import Hash32, Signature

_V_OFFSET = 27


def message_hash(message: bytes) -> Hash32:
    """What is signed for a message."""
    return keccak256(b"\x19Ethereum Signed Message:\n%d%b" % (len(message), message))


def sign_hash(key: PrivateKey, digest: Hash32) -> Signature:
    """r, s and v, which is 27 or 28 as everybody expects outside of transactions."""
    signature = key.sign(digest)
    return signature[:64] + bytes([signature[64] + _V_OFFSET])
