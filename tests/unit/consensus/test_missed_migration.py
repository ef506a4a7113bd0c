"""Proofs that a network has moved to QBFT, for a node whose genesis file lacks the migration."""

from __future__ import annotations

import json

from msgspec.structs import replace

from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.consensus.missed_migration import missed_migration, unknown_rules
from ophion.testing.bft_chain import KnownHeaders, bft_genesis_text, first_header
from tests.unit.consensus.test_clique_to_qbft import ADDRESSES, FIRST, Story, genesis_of


def test_a_quorum_of_signers_under_a_qbft_block_proves_the_migration() -> None:
    story = Story(genesis_of())
    story.grow(FIRST)
    clique = story.engine.clique
    found = missed_migration(story.head.header, clique, story.chain)
    assert found is not None
    assert found.number == FIRST
    assert "moved from clique to QBFT at block 5" in str(found)
    assert missed_migration(story.head.header, story.engine.bft, story.chain) is None


def test_fewer_seals_than_a_quorum_an_unknown_parent_or_other_extra_data_prove_nothing() -> None:
    story = Story(genesis_of())
    story.grow(FIRST)
    clique, bft, header = story.engine.clique, story.engine.bft, story.head.header
    seals = bft.validators.extra(header).seals
    assert missed_migration(bft.attach(header, seals[:2]), clique, story.chain) is None
    assert missed_migration(bft.attach(header, [seals[0]] * 3), clique, story.chain) is None
    assert missed_migration(replace(header, parent_hash=bytes(32)), clique, story.chain) is None
    assert missed_migration(story.chain.in_order[FIRST - 1].header, clique, story.chain) is None


def test_ibft2_headers_are_no_proof_of_a_migration() -> None:
    genesis = parse_genesis(bft_genesis_text("ibft2", 4))
    engine = engine_for(genesis.spec)
    chain = KnownHeaders(first_header(genesis, engine))
    assert json.loads(bft_genesis_text("ibft2", 4))["config"]["ibft2"]
    assert missed_migration(chain.in_order[0].header, engine, chain) is None


def test_more_members_than_may_be_faulty_must_announce_unknown_rules() -> None:
    outsider = b"\x01" * 20
    one = [(ADDRESSES[0], 7), (outsider, 1)]
    two = [*one, (ADDRESSES[1], 0)]
    assert unknown_rules(one, ADDRESSES, 7) is None
    assert unknown_rules(two, ADDRESSES, 6) is None
    error = unknown_rules(two, ADDRESSES, 7)
    assert error is not None
    assert "2 of 4 validators announce new rules from block 7" in str(error)
    past = unknown_rules([(ADDRESSES[0], 0), (ADDRESSES[1], 0)], ADDRESSES, 9)
    assert past is not None
    assert past.number == 9
