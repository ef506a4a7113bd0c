"""Ids of groups, as every enclave computes them (privacy.md 4.1-4.3); members count once, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ophion.native.enclave import enclave_group_id

SEED_SIZE: Final = 20
_LOOKUP_SEED: Final = bytes.fromhex("5375ba871e5c3d0f1d055b5da0ac02ea035bed38")


def legacy_id(members: Sequence[bytes]) -> bytes:
    """The group of a privateFrom and its privateFor."""
    return enclave_group_id(members, None)


def created_id(members: Sequence[bytes], seed: bytes) -> bytes:
    """A group that was made with a random seed."""
    return enclave_group_id(members, seed)


def lookup_id(members: Sequence[bytes]) -> bytes:
    """Where groups of exactly these members are found."""
    return enclave_group_id(members, _LOOKUP_SEED)
