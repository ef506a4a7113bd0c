"""Tests blocks on a simulated chain."""

from __future__ import annotations

from dataclasses import replace

from ophion.consensus.engine import Vote
from ophion.consensus.validator_votes import Tally
from ophion.testing.simulation.fake_crypto import Content, stand_in_address, stand_in_block, stand_in_seal
from ophion.testing.simulation.simulated_node import FinalBlock, SimulatedMember

ADDRESSES = tuple(stand_in_address(index) for index in range(4))
TALLY = Tally.of(ADDRESSES)


def final(sealers: tuple[int, ...], vote: Vote | None = None, height: int = 1) -> FinalBlock:
    block = stand_in_block(height, ADDRESSES[0], Content(bytes(32), 1, 0, vote=vote))
    seals = tuple(stand_in_seal(ADDRESSES[index], block.digest) for index in sealers)
    return FinalBlock.of(block, 0, seals, TALLY, 10)


def test_a_block_is_sealed_by_a_quorum_of_different_validators() -> None:
    assert final((0, 1, 2)).is_sealed_by(ADDRESSES)
    assert final((3, 1, 2, 0)).is_sealed_by(ADDRESSES)
    assert not final((0, 1)).is_sealed_by(ADDRESSES)
    assert not final((0, 1, 1)).is_sealed_by(ADDRESSES)
    assert not final((0, 1, 2)).is_sealed_by(ADDRESSES[:2])
    forged = replace(final((0, 1, 2)), seals=(b"", *final((0, 1, 2)).seals))
    assert not forged.is_sealed_by(ADDRESSES)


def test_votes_in_blocks_move_the_tally_and_an_epoch_clears_it() -> None:
    vote = Vote(stand_in_address(9), True)
    assert final((), vote).tally.adds == {vote.target: frozenset((ADDRESSES[0],))}
    assert final((), vote, height=10).tally == TALLY


def test_a_member_begins_with_genesis_and_is_down() -> None:
    member = SimulatedMember(2, ADDRESSES[2], final((), height=0))
    assert (member.height, member.name, member.machine) == (0, "V2", None)
