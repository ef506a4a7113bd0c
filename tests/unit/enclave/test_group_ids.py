"""Tests ids of groups: the published vectors of privacy.md 16."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest

from ophion.enclave.group_ids import created_id, legacy_id, lookup_id
from ophion.native.crypto import keccak256
from ophion.primitives import rlp

G = "g59BmTeJIn7HIcnq8VQWgyh/pDbvbt2eyP0Ii60aDDw="
N = "negmDcN2P4ODpqn/6WkJ02zT/0w0bjhGpkZ8UP6vARk="
SIX = "6fg8q5rWMBoAT2oIiU3tYJbk4b7oAr7dxaaVY7TeM3U="
A = "A1aVtMxLCUHmBVHXoZzzBgPbW/wj5axDpW9X8l91SGo="
B = "Ko2bVqD+nNlNYL5EE7y3IdOnviftjiizpjRt+HTuFBs="
BULE = "BULeR8JyUWhiuuCMU/HLA0Q5pzkYT+cHII3ZKBey3Bo="
ITZ = "1iTZde/ndBHvzhcl7V68x44Vx7pl8nwx9LqnM/AfJUg="

LEGACY = [
    ((G, N), "68/Cq0mVjB8FbXDLE1tbDRAvD/srluIok137uFOaClM="),
    ((G, N, SIX), "/xzRjCLioUBkm5LYuzll61GXyrD5x7bvXzQk/ovJA/4="),
    ((A, B), "DyAOiF/ynpc+JXa2YAGB0bCitSlOMNm+ShmB/7M6C4w="),
    ((BULE, ITZ), "kTeJS4TI7mnWhJrEItmjHe1iDepAuURPmeMVcyQOgr0="),
]


def keys(texts: tuple[str, ...]) -> list[bytes]:
    return [b64decode(text) for text in texts]


@pytest.mark.parametrize(("members", "expected"), LEGACY)
def test_legacy_ids_are_the_published_ones_in_any_order(members: tuple[str, ...], expected: str) -> None:
    assert b64encode(legacy_id(keys(members))).decode() == expected
    assert b64encode(legacy_id(keys(members[::-1]))).decode() == expected


def test_a_member_counts_once() -> None:
    assert legacy_id(keys((A, B, A))) == legacy_id(keys((A, B)))


def test_a_seed_makes_another_group_of_the_same_members() -> None:
    members = keys((A, B))
    assert len({legacy_id(members), created_id(members, bytes(20)), created_id(members, b"1" * 20)}) == 3
    assert lookup_id(members) == created_id(members, bytes.fromhex("5375ba871e5c3d0f1d055b5da0ac02ea035bed38"))


def test_equal_hashes_keep_their_order() -> None:
    # both keys have the same Java hash code: 31*(31+0)+31 == 31*(31+1)+0
    first, second = bytes([0, 31]), bytes([1, 0])
    assert legacy_id([first, second]) == keccak256(rlp.encode([first, second]))
    assert legacy_id([second, first]) == keccak256(rlp.encode([second, first]))
