"""Computes group ids by the rules that all enclaves share (privacy.md 4.1-4.3). The order of the members does not
matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ophion.native.enclave import enclave_group_id

SEED_SIZE: Final = 20
_LOOKUP_SEED: Final = bytes.fromhex("5375ba871e5c3d0f1d055b5da0ac02ea035bed38")


def legacy_id(members: Sequence[bytes]) -> bytes:
    """Return the id of the legacy group with this privateFrom and privateFor."""
    return enclave_group_id(members, None)


def created_id(members: Sequence[bytes], seed: bytes) -> bytes:
    """Return the id of a group that was created with a random seed."""
    return enclave_group_id(members, seed)


def lookup_id(members: Sequence[bytes]) -> bytes:
    """Return the key under which groups with exactly these members are indexed."""
    return enclave_group_id(members, _LOOKUP_SEED)
