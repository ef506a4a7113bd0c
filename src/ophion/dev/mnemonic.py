"""Derives private keys from a mnemonic: BIP-39 with its English word list, BIP-32, BIP-44 paths.

Words and checksum are validated, because a misspelt mnemonic would give accounts that no wallet has.
"""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from ophion.errors import OphionError
from ophion.native.crypto import PrivateKey

_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_HARDENED = 2**31
_ROUNDS = 2048
_WORDS = Path(__file__).with_name("bip39_english.txt")
"""The English word list of BIP-39, one word a line."""
_LENGTHS = (12, 15, 18, 21, 24)


class MnemonicError(OphionError):
    """Raised when no key can be derived from a mnemonic or path."""


def derived_keys(mnemonic: str, path: str, count: int) -> list[bytes]:
    """Return the private keys at `path` followed by 0, 1, …"""
    words = mnemonic.split()
    if len(words) not in _LENGTHS:
        raise MnemonicError(f"The mnemonic has {len(words)} words; 12, 15, 18, 21 or 24 are expected.")
    _check_words(words)
    seed = hashlib.pbkdf2_hmac("sha512", " ".join(words).encode(), b"mnemonic", _ROUNDS)
    key, chain = _split(hmac.digest(b"Bitcoin seed", seed, "sha512"))
    for step in _steps(path):
        key, chain = _child(key, chain, step)
    return [_child(key, chain, index)[0].to_bytes(32, "big") for index in range(count)]


def words_of(entropy: bytes) -> str:
    """Return the mnemonic of 16 to 32 random bytes: the bytes and their checksum, eleven bits a word."""
    bits = len(entropy) // 4
    value = int.from_bytes(entropy, "big") << bits | hashlib.sha256(entropy).digest()[0] >> (8 - bits)
    known = _WORDS.read_text().split()
    count = (len(entropy) * 8 + bits) // 11
    return " ".join(known[value >> 11 * place & 2047] for place in reversed(range(count)))


def _check_words(words: list[str]) -> None:
    """Raise `MnemonicError` for a word that is not in the list, or for a wrong checksum."""
    known = _WORDS.read_text().split()
    numbers = {word: number for number, word in enumerate(known)}
    entropy = 0
    for position, word in enumerate(words, 1):
        if word not in numbers:
            import difflib  # lazy import: only error messages need difflib

            close = difflib.get_close_matches(word, known, n=2)
            hint = f" (did you mean {' or '.join(close)}?)" if close else ""
            raise MnemonicError(f"Word {position} of the mnemonic, '{word}', is not in the word list of BIP-39{hint}.")
        entropy = (entropy << 11) + numbers[word]
    bits = len(words) // 3
    checksum = hashlib.sha256((entropy >> bits).to_bytes(4 * bits, "big")).digest()[0] >> (8 - bits)
    if entropy & ((1 << bits) - 1) != checksum:
        raise MnemonicError("The mnemonic has a wrong checksum: a word is missing, misspelt or in the wrong place.")


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
