"""Tests small tries through the Python facade of the extension."""

from __future__ import annotations

import pytest

from ophion.native.exceptions import DecodeError
from ophion.native.tries import ordered_root, trie_root, verify_proof

EMPTY = "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"


def test_nothing_has_the_empty_root() -> None:
    assert ordered_root([]).hex() == EMPTY
    assert trie_root([], False).hex() == EMPTY
    assert trie_root([(b"key", b"value"), (b"key", None)], True).hex() == EMPTY


def test_known_pairs_have_the_published_root() -> None:
    pairs = [(b"do", b"verb"), (b"horse", b"stallion"), (b"doge", b"coin"), (b"dog", b"puppy")]
    published = "5991bb8c6514148a29db676a14ac506cd2cd5775ace63c30a4fe457715e9ac84"
    assert trie_root(pairs, False).hex() == published
    assert trie_root(pairs[::-1], False).hex() == published


def test_a_wrong_proof_is_refused() -> None:
    with pytest.raises(DecodeError):
        verify_proof(b"\x01" * 32, b"key", [b"\xc0"])
