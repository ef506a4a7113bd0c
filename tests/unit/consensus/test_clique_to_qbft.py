"""Tests headers on both sides of a migration from Clique to QBFT, and the choice between branches."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.clique_to_qbft import MigrationEngine, is_final_at
from ophion.consensus.engine import BlockPreferences, Finality, Tip, Vote
from ophion.consensus.engine_factory import engine_for
from ophion.errors import GenesisError, InvalidHeader
from ophion.native.crypto import PrivateKey
from ophion.primitives.header import HashedHeader
from ophion.testing.bft_chain import KnownHeaders, first_header

FIRST = 5
START = 1_600_000_000
KEYS = tuple(sorted((PrivateKey(bytes([number]) * 32) for number in range(31, 35)), key=lambda key: key.address))
OTHERS = tuple(sorted((PrivateKey(bytes([number]) * 32) for number in range(41, 43)), key=lambda key: key.address))
ADDRESSES = tuple(key.address for key in KEYS)


def genesis_of(first: int = FIRST, **config: Any) -> Genesis:
    values = {
        "config": {
            "chainId": 1337,
            "londonBlock": 0,
            "clique": {"blockperiodseconds": 1, "epochlength": 30000},
            "qbft": {"blockperiodseconds": 1, "epochlength": 3, "requesttimeoutseconds": 2, "startBlock": first},
            **config,
        },
        "timestamp": hex(START),
        "difficulty": "0x1",
        "gasLimit": hex(30_000_000),
        "extraData": "0x" + (bytes(32) + b"".join(ADDRESSES) + bytes(65)).hex(),
        "alloc": {},
    }
    return parse_genesis(json.dumps(values))


def engine_of(genesis: Genesis) -> MigrationEngine:
    engine = engine_for(genesis.spec)
    assert isinstance(engine, MigrationEngine)
    return engine


class Story:
    """A chain of valid headers."""

    def __init__(self, genesis: Genesis) -> None:
        self.engine = engine_of(genesis)
        self.chain = KnownHeaders(first_header(genesis, self.engine))
        self.keys = {key.address: key for key in (*KEYS, *OTHERS)}

    @property
    def head(self) -> HashedHeader:
        return self.chain.in_order[-1]

    def draft(self, vote: Vote | None = None) -> HashedHeader:
        """Return the next sealed header without adding it."""
        members = self.engine.members(self.head, self.chain)
        number = self.head.number + 1
        author = members[number % len(members)]
        if number < self.engine.first:
            snapshot = self.engine.clique.snapshot(self.head, self.chain)
            author = next(one for one in (author, *members) if snapshot.may_sign(one, number))
        preferences = BlockPreferences(self.head.timestamp + 1, author, vote=vote)
        header = self.engine.prepare(self.head, preferences, self.chain)
        header = replace(header, state_root=self.head.header.state_root)
        signers = [author] if number < self.engine.first else members
        seals = [self.keys[one].sign(self.engine.signing_hash(header)) for one in signers]
        return self.engine.hashed(self.engine.attach(header, seals))

    def verify(self, header: HashedHeader) -> None:
        self.engine.verify(header, self.head, self.chain, header.timestamp)

    def grow(self, to: int, vote: Vote | None = None) -> None:
        while self.head.number < to:
            header = self.draft(vote)
            self.verify(header)
            self.chain.add(header)


def test_the_genesis_begins_with_clique_and_names_the_first_qbft_block() -> None:
    spec = genesis_of().spec
    assert (spec.engine, spec.migration_block, spec.migrates_from_clique) == (EngineKind.CLIQUE, FIRST, True)
    engine = engine_of(genesis_of())
    assert (engine.name, engine.finality, engine.first) == ("clique+qbft", Finality.HEAVIEST, FIRST)


def test_without_a_start_block_qbft_applies_from_genesis() -> None:
    assert genesis_of(first=0).spec.engine is EngineKind.QBFT
    assert genesis_of(first=0).spec.migration_block is None


def test_a_qbft_transition_before_the_start_block_is_refused() -> None:
    with pytest.raises(GenesisError, match="comes before qbft.startBlock, which is 5"):
        genesis_of(transitions={"qbft": [{"block": 4, "blockperiodseconds": 2}]})


def test_headers_of_both_forms_verify_and_the_signers_become_the_validators() -> None:
    story = Story(genesis_of())
    story.grow(FIRST + 6)
    engine = story.engine
    last, first = story.chain.in_order[FIRST - 1], story.chain.in_order[FIRST]
    assert isinstance(engine.clique, CliqueEngine)
    assert isinstance(engine.bft, BftEngine)
    assert (len(last.header.extra_data), first.header.difficulty) == (97, 1)
    assert engine.bft.validators_of(first, story.chain) == ADDRESSES
    assert engine.bft.validators_of(last, story.chain) == ADDRESSES
    assert engine.author(last) in ADDRESSES
    assert engine.author(first) == first.header.coinbase
    engine.look_ahead(story.chain.in_order)
    assert engine.checkpoint(last, story.chain) != engine.checkpoint(first, story.chain)


def test_a_clique_header_at_the_start_block_is_refused_and_a_qbft_header_before_it() -> None:
    story, late = Story(genesis_of()), Story(genesis_of(first=FIRST + 5))
    early = Story(genesis_of(first=FIRST - 1))
    for one in (story, late):
        one.grow(FIRST - 1)
    with pytest.raises(InvalidHeader):
        story.verify(late.draft())
    early.grow(FIRST - 2)
    story = Story(genesis_of())
    story.grow(FIRST - 2)
    with pytest.raises(InvalidHeader):
        story.verify(early.draft())


def test_a_transition_at_the_start_block_sets_other_validators() -> None:
    members = ["0x" + key.address.hex() for key in (*KEYS[:2], *OTHERS)]
    story = Story(genesis_of(transitions={"qbft": [{"block": FIRST, "validators": members}]}))
    story.grow(FIRST + 4)
    expected = tuple(sorted(key.address for key in (*KEYS[:2], *OTHERS)))
    assert story.engine.members(story.chain.in_order[FIRST - 1], story.chain) == expected
    assert story.engine.bft.validators_of(story.chain.in_order[FIRST], story.chain) == expected


def test_votes_in_clique_count_until_the_migration_and_votes_in_qbft_after_it() -> None:
    story = Story(genesis_of(first=8))
    new = OTHERS[0].address
    story.grow(4, Vote(new, True))
    assert story.engine.members(story.head, story.chain) == tuple(sorted((*ADDRESSES, new)))
    story.grow(9)
    # removing a validator needs three of five votes, and the epoch of three blocks counts from the last Clique block
    story.grow(12, Vote(new, False))
    assert new in story.engine.members(story.chain.in_order[8], story.chain)


def test_a_qbft_block_is_preferred_to_any_clique_block_and_never_replaced() -> None:
    story = Story(genesis_of())
    story.grow(FIRST)
    before, first = story.chain.in_order[FIRST - 1], story.chain.in_order[FIRST]
    engine, chain = story.engine, story.chain
    heavy, light = Tip(before, 100), Tip(first, 6)
    assert engine.prefers(light, heavy, chain)
    assert not engine.prefers(heavy, light, chain)
    assert not engine.prefers(Tip(first, 7), light, chain)
    assert [is_final_at(engine, number) for number in (FIRST - 1, FIRST)] == [False, True]
    assert is_final_at(engine.bft, 1)
    assert not is_final_at(engine.clique, FIRST)
