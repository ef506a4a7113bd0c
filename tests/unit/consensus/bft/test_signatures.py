"""Tests the recovery of signers (scenario I-27)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ophion.consensus.bft.signatures import message_author, seal_author
from tests.unit.consensus.bft.golden import K1

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
DIGEST = bytes(range(32))
GOOD = K1.sign(DIGEST)


def with_high_s(signature: bytes) -> bytes:
    """Return the second valid signature of the same author, with a high s."""
    s = ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + s.to_bytes(32, "big") + bytes((1 - signature[64],))


def test_a_signature_names_its_author() -> None:
    assert message_author(DIGEST, GOOD) == K1.address
    assert seal_author(DIGEST, GOOD) == K1.address


def test_i_27_high_s_other_v_and_other_lengths_are_refused() -> None:
    assert message_author(DIGEST, with_high_s(GOOD)) is None
    assert message_author(DIGEST, GOOD[:64] + bytes((GOOD[64] + 27,))) is None
    assert message_author(DIGEST, GOOD[:64]) is None
    assert message_author(DIGEST, GOOD + b"\0") is None
    assert message_author(DIGEST, bytes(65)) is None


def test_seals_of_finished_headers_may_have_a_high_s() -> None:
    assert seal_author(DIGEST, with_high_s(GOOD)) == K1.address
    assert seal_author(DIGEST, bytes(65)) is None
    assert seal_author(DIGEST, GOOD[:64] + b"\x1b") is None


@given(st.binary(min_size=60, max_size=70))
def test_any_bytes_give_a_node_or_none(signature: bytes) -> None:
    author = message_author(DIGEST, signature)
    assert author is None or len(author) == 20
