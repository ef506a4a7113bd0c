"""Well-known constants have the right values."""

from __future__ import annotations

from hashlib import sha256

from ophion.native.crypto import keccak256
from ophion.primitives import rlp, types


def test_constants_are_the_hashes_their_names_say() -> None:
    assert keccak256(b"") == types.EMPTY_CODE_HASH
    assert keccak256(rlp.EMPTY_STRING) == types.EMPTY_TRIE_ROOT
    assert keccak256(rlp.EMPTY_LIST) == types.EMPTY_OMMERS_HASH
    assert sha256(b"").digest() == types.EMPTY_REQUESTS_HASH
