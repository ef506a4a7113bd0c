"""Tests that messages are comparable values."""

from __future__ import annotations

from ophion.consensus.bft.messages import PreparedRound
from tests.unit.consensus.bft.puppets import IBFT2, QBFT, Stage


def test_messages_show_height_round_and_author_of_their_signed_part() -> None:
    for rules in (IBFT2, QBFT):
        stage = Stage(rules, 0)
        for message in (stage.proposal(), stage.hands[0].round_change(1, 4, None)):
            assert (message.height, message.author) == (1, stage.hands[0].address)
        assert stage.hands[0].round_change(1, 4, None).round == 4


def test_a_proof_of_preparation_is_about_the_block_as_it_was_transmitted() -> None:
    stage = Stage(IBFT2, 0)
    block = stage.block(0)
    assert PreparedRound(0, block, (), None).digest == block.digest
