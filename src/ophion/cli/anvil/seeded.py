"""Mnemonics of Anvil's options --mnemonic-random and --mnemonic-seed-unsafe."""

from __future__ import annotations

import struct

from ophion.dev.mnemonic import words_of
from ophion.runtime.clock import SystemEntropy

DEFAULT_WORDS = 12
_ENTROPY_BYTES = {12: 16, 15: 20, 18: 24, 21: 28, 24: 32}
_MASK = 2**32 - 1
_CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
_ROUNDS = (
    (0, 4, 8, 12),
    (1, 5, 9, 13),
    (2, 6, 10, 14),
    (3, 7, 11, 15),
    (0, 5, 10, 15),
    (1, 6, 11, 12),
    (2, 7, 8, 13),
    (3, 4, 9, 14),
)


def random_mnemonic(words: int) -> str:
    """Return a new mnemonic. As in Anvil, a number of words that BIP-39 does not have gives 12 words."""
    return words_of(SystemEntropy().token(_ENTROPY_BYTES.get(words, _ENTROPY_BYTES[DEFAULT_WORDS])))


def seeded_mnemonic(seed: int) -> str:
    """Return the mnemonic of 12 words that Anvil derives from a 64-bit seed.

    The entropy is 16 bytes: the low byte of each word of a ChaCha12 block.
    """
    return words_of(_chacha12(_expanded(seed))[::4])


def _expanded(seed: int) -> bytes:
    """Expand 64 bits to a key of 32 bytes by the generator PCG32 (XSH-RR)."""
    state, key = seed, b""
    for _ in range(8):
        state = (state * 6364136223846793005 + 11634580027462260723) & (2**64 - 1)
        shifted, turn = ((state >> 18) ^ state) >> 27 & _MASK, state >> 59
        key += struct.pack("<I", (shifted >> turn | shifted << (32 - turn)) & _MASK)
    return key


def _chacha12(key: bytes) -> bytes:
    """Return block 0 of the ChaCha stream of a key, with 12 rounds and an empty nonce."""
    start = [*_CONSTANTS, *struct.unpack("<8I", key), 0, 0, 0, 0]
    words = list(start)
    for _ in range(6):
        for a, b, c, d in _ROUNDS:
            _quarter_round(words, a, b, c, d)
    return struct.pack("<16I", *((one + two) & _MASK for one, two in zip(words, start, strict=True)))


def _quarter_round(words: list[int], a: int, b: int, c: int, d: int) -> None:
    for one, two, three, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        words[one] = (words[one] + words[two]) & _MASK
        mixed = words[three] ^ words[one]
        words[three] = (mixed << turn | mixed >> (32 - turn)) & _MASK
