"""Fake blocks, keys and seals behave like real blocks, keys and seals."""

from __future__ import annotations

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.engine import Vote
from ophion.testing.simulation.fake_crypto import (
    Content,
    FakeMessageFactory,
    stand_in_address,
    stand_in_block,
    stand_in_seal,
    stand_in_seal_author,
)

ALICE, BOB = stand_in_address(0), stand_in_address(1)


def test_members_are_in_the_order_of_their_addresses() -> None:
    assert ALICE < BOB < stand_in_address(300)


def test_content_survives_encoding() -> None:
    for content in (
        Content(b"\1" * 32, 7, 9),
        Content(b"\1" * 32, 7, 9, is_valid=False),
        Content(b"\1" * 32, 7, 9, vote=Vote(BOB, True)),
        Content(b"\1" * 32, 7, 9, vote=Vote(BOB, False)),
    ):
        assert Content.decode(content.encode()) == content


def test_a_block_keeps_its_hash_in_every_round_and_changes_its_digest() -> None:
    block = stand_in_block(3, ALICE, Content(bytes(32), 1, 1))
    later = FakeMessageFactory(ALICE, Ibft2()).with_round(block, 2)
    assert later == stand_in_block(3, ALICE, Content(bytes(32), 1, 1), 2)
    assert (later.hash, later.round) == (block.hash, 2)
    assert later.digest != block.digest
    assert stand_in_block(3, BOB, Content(bytes(32), 1, 1)).hash != block.hash
    assert stand_in_block(4, ALICE, Content(bytes(32), 1, 1)).hash != block.hash


def test_a_seal_names_its_author_for_one_digest_only() -> None:
    seal = stand_in_seal(ALICE, b"\1" * 32)
    assert stand_in_seal_author(b"\1" * 32, seal) == ALICE
    assert stand_in_seal_author(b"\2" * 32, seal) is None
    assert stand_in_seal_author(b"\1" * 32, b"") is None


def test_the_same_statement_has_the_same_fingerprint() -> None:
    first, second = FakeMessageFactory(ALICE, Ibft2()), FakeMessageFactory(ALICE, Ibft2())
    assert first.prepare(1, 0, bytes(32)).fingerprint == second.prepare(1, 0, bytes(32)).fingerprint
    kinds = {
        first.prepare(1, 0, bytes(32)).fingerprint,
        first.prepare(1, 1, bytes(32)).fingerprint,
        first.prepare(11, 0, bytes(32)).fingerprint,
        first.commit(1, 0, bytes(32), bytes(32)).fingerprint,
        first.round_change(1, 1, None).fingerprint,
        FakeMessageFactory(BOB, Ibft2()).prepare(1, 0, bytes(32)).fingerprint,
    }
    assert len(kinds) == 6
