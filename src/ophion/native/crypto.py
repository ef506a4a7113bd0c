"""Private keys, Keccak-256, and secp256k1 signatures and their recovery."""

from __future__ import annotations

from ophion import errors
from ophion._native import (
    DecodeError,
    address_of,
    bft_block_hash,
    keccak256,
    public_key,
    recover,
    recover_address,
    recover_addresses,
    sign,
)

__all__ = [
    "PrivateKey",
    "address_of",
    "bft_block_hash",
    "keccak256",
    "public_key",
    "recover",
    "recover_address",
    "recover_addresses",
    "sign",
]


class PrivateKey:
    """A secp256k1 private key. The secret never appears in a log or a traceback."""

    __slots__ = ("_secret", "address", "public_key")

    def __init__(self, secret: bytes) -> None:
        """Create a key from 32 bytes. Raises `KeyFileError` for zero, and for numbers not below the order of the curve.
        """
        try:
            self.public_key = public_key(secret)
        except DecodeError as error:
            raise errors.KeyFileError(f"Not a valid private key: {error}") from error
        self.address = address_of(self.public_key)
        self._secret = secret

    def sign(self, digest: bytes) -> bytes:
        """Sign a 32-byte digest. Returns r || s || v, with v 0 or 1."""
        return sign(self._secret, digest)

    def secret(self) -> bytes:
        """Return the 32 bytes of the key, for the key file and for key agreement."""
        return self._secret

    def __repr__(self) -> str:
        return f"PrivateKey(address=0x{self.address.hex()})"
