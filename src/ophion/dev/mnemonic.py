"""Derives private keys from a mnemonic: BIP-39 without its word list, BIP-32, BIP-44 paths.

Words and checksum are not validated. A wallet derives the same accounts from the same text.
"""

from __future__ import annotations

import hashlib
import hmac
import unicodedata

from ophion.errors import OphionError
from ophion.native.crypto import PrivateKey

_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_HARDENED = 2**31
_ROUNDS = 2048
_LENGTHS = (12, 15, 18, 21, 24)


class MnemonicError(OphionError):
    """Raised when no key can be derived from a mnemonic or path."""


def derived_keys(mnemonic: str, path: str, count: int) -> list[bytes]:
    """Return the private keys at `path` followed by 0, 1, …"""
    words = mnemonic.split()
    if len(words) not in _LENGTHS:
        raise MnemonicError(f"The mnemonic has {len(words)} words; 12, 15, 18, 21 or 24 are expected.")
    text = unicodedata.normalize("NFKD", " ".join(words)).encode()
    seed = hashlib.pbkdf2_hmac("sha512", text, b"mnemonic", _ROUNDS)
    key, chain = _split(hmac.digest(b"Bitcoin seed", seed, "sha512"))
    for step in _steps(path):
        key, chain = _child(key, chain, step)
    return [_child(key, chain, index)[0].to_bytes(32, "big") for index in range(count)]


def _steps(path: str) -> list[int]:
    parts = path.strip("/").split("/")
    if parts[0] != "m":
        raise MnemonicError(f"The derivation path '{path}' does not begin with m/.")
    steps = []
    for part in parts[1:]:
        digits = part.rstrip("'hH")
        if not digits.isdecimal() or int(digits) >= _HARDENED or len(part) - len(digits) > 1:
            raise MnemonicError(
                f"The derivation path '{path}' has the part '{part}', which is not a number below 2^31."
            )
        steps.append(int(digits) + (_HARDENED if part != digits else 0))
    return steps


def _split(digest: bytes) -> tuple[int, bytes]:
    return int.from_bytes(digest[:32], "big"), digest[32:]


def _child(key: int, chain: bytes, index: int) -> tuple[int, bytes]:
    secret = key.to_bytes(32, "big")
    if index >= _HARDENED:
        data = b"\0" + secret
    else:
        public = PrivateKey(secret).public_key
        data = bytes([2 + (public[63] & 1)]) + public[:32]
    offset, child_chain = _split(hmac.digest(chain, data + index.to_bytes(4, "big"), "sha512"))
    return (offset + key) % _ORDER, child_chain
