"""Ids of groups, as every enclave computes them (privacy.md 4.1-4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ophion.native.crypto import keccak256
from ophion.primitives import rlp

SEED_SIZE: Final = 20
_LOOKUP_SEED: Final = bytes.fromhex("5375ba871e5c3d0f1d055b5da0ac02ea035bed38")


def legacy_id(members: Iterable[bytes]) -> bytes:
    """The group of a privateFrom and its privateFor."""
    return keccak256(rlp.encode(ordered(members)))


def created_id(members: Iterable[bytes], seed: bytes) -> bytes:
    """A group that was made with a random seed."""
    return keccak256(rlp.encode([*ordered(members), seed]))


def lookup_id(members: Iterable[bytes]) -> bytes:
    """Where groups of exactly these members are found."""
    return created_id(members, _LOOKUP_SEED)


def ordered(members: Iterable[bytes]) -> list[bytes]:
    """Each member once, by the hash that Java gives an array of bytes; equal hashes keep their order."""
    return sorted(dict.fromkeys(members), key=_java_hash)


def _java_hash(key: Sequence[int]) -> int:
    value = 1
    for byte in key:
        value = (31 * value + byte - (byte >> 7 << 8)) & 0xFFFFFFFF
    return value - (value >> 31 << 32)
