"""Tests which proof of another validator a node may use in a round change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ophion.consensus.bft.messages import PreparedRound, Unjustified
from ophion.consensus.bft.missing_proof import MissingProof, proof_of, unsigned_round_change
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.vote_record import VoteRecord
from tests.unit.consensus.bft.puppets import IBFT2, PROTOCOLS, QBFT, Stage

BOTH = pytest.mark.parametrize("rules", PROTOCOLS, ids=lambda rules: rules.name)


def _proof(round_number: int, nonce: int = 0) -> PreparedRound:
    stage = Stage(QBFT, me=3)
    return stage.prepared(stage.block(round_number, round_number, nonce), (0, 1, 2))


def _named(proof: PreparedRound) -> VoteRecord:
    """Return the record of a key that has committed the block of a proof."""
    return VoteRecord(1, proof.round, proof.digest, proof.round, proof.digest)


@BOTH
def test_a_round_change_carries_a_whole_proof(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    proof = stage.prepared(stage.block(0), (1, 2) if rules is IBFT2 else (0, 1, 2))
    change = stage.hands[1].round_change(1, 2, proof)
    assert proof_of(change) == proof
    assert stage.hands[3].round_change(1, 2, proof_of(change)).signed.claim == change.signed.claim
    assert proof_of(stage.hands[1].round_change(1, 2, None)) is None


@BOTH
def test_a_proof_from_the_store_is_checked_like_that_of_a_round_change(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    proof = stage.prepared(stage.block(0), (1, 2) if rules is IBFT2 else (0, 1, 2))
    rules.check_round_change(unsigned_round_change(proof, 1, stage.addresses[3]), stage.validator_set)
    for wrong in (replace(proof, prepares=proof.prepares[1:]), replace(proof, block=stage.block(1, 0, 1))):
        with pytest.raises(Unjustified):
            rules.check_round_change(unsigned_round_change(wrong, 1, stage.addresses[3]), stage.validator_set)


def test_a_proof_is_used_only_if_the_record_names_one_that_this_node_lacks() -> None:
    missing, proof = MissingProof(), _proof(0)
    missing.add(proof)
    assert missing.found(None, 1) is None
    missing.need(VoteRecord(1, 0, proof.digest))
    assert missing.found(None, 1) is None
    missing.need(_named(proof))
    assert missing.found(None, 1) is proof
    assert missing.found(proof, 1) is None


def test_a_later_proof_replaces_the_missing_one() -> None:
    missing, later = MissingProof(), _proof(2)
    missing.need(_named(_proof(1)))
    missing.add(_proof(0))
    assert missing.found(None, 3) is None, "an earlier proof hides a block that may be committed"
    missing.add(later)
    missing.add(_proof(1))
    missing.add(None)
    assert missing.found(_proof(0), 3) is later
    assert len(missing) == 1


def test_a_round_change_carries_only_proofs_of_earlier_rounds() -> None:
    missing = MissingProof()
    missing.need(_named(_proof(0)))
    missing.add(_proof(2))
    assert missing.found(None, 2) is None
    assert missing.found(None, 3) is not None


def test_a_proof_of_another_block_in_the_named_round_is_not_used() -> None:
    missing = MissingProof()
    missing.need(_named(_proof(0)))
    missing.add(_proof(0, nonce=1))
    assert missing.found(None, 1) is None


def test_the_latest_record_counts() -> None:
    missing, proof = MissingProof(), _proof(0)
    missing.need(_named(_proof(1)))
    missing.need(_named(proof))
    missing.add(proof)
    assert missing.found(None, 2) is None
