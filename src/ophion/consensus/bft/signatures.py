"""Recovers the authors of BFT signatures under strict rules.

Signatures in BFT messages have 65 bytes, v 0 or 1 and s in the lower half of the order. Other clients reject all other
signatures. Ophion rejects them too, so that it counts the same votes as other clients (consensus.md 0.3, scenario
I-27).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Protocol

from ophion.native.crypto import recover_address
from ophion.native.exceptions import NativeError
from ophion.primitives.types import SIGNATURE_LENGTH, Address, Hash32, Signature

_MAX_CACHED: Final = 2048
"""Maximum number of cached recoveries. Certificates and hostile peers repeat signatures many times."""
_HALF_ORDER: Final = bytes.fromhex("7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0")


class DigestSigner(Protocol):
    """A key that signs digests. `ophion.native.crypto.PrivateKey` implements it."""

    address: Address

    def sign(self, digest: Hash32) -> Signature: ...


def message_author(digest: Hash32, signature: Signature) -> Address | None:
    """Return the signer of a message or commit seal, or None if the signature is invalid."""
    if len(signature) != SIGNATURE_LENGTH or signature[64] > 1 or signature[32:64] > _HALF_ORDER:
        return None
    return _recovered(digest, signature)


def seal_author(digest: Hash32, signature: Signature) -> Address | None:
    """Return the signer of a seal in a finished header. Accepts a high s, because the block may already be on the
    chain.
    """
    if len(signature) != SIGNATURE_LENGTH or signature[64] > 1:
        return None
    return _recovered(digest, signature)


@lru_cache(maxsize=_MAX_CACHED)
def _recovered(digest: Hash32, signature: Signature) -> Address | None:
    try:
        return recover_address(digest, signature)
    except NativeError:
        return None
