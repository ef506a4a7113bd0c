"""Tests the message factory with a real key."""

from __future__ import annotations

from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.consensus.bft.qbft_messages import Qbft
from tests.unit.consensus.bft.golden import K1, message_block


def test_the_profile_can_change_between_heights() -> None:
    factory = KeyMessageFactory(Qbft(), K1)
    classic = factory.round_change(1, 1, None).raw.data
    factory.profile = WireProfile.BAL
    bal = factory.round_change(1, 1, None).raw.data
    assert len(bal) == len(classic) + 1


def test_the_same_statement_has_the_same_bytes() -> None:
    for protocol in (Ibft2(), Qbft()):
        assert KeyMessageFactory(protocol, K1).prepare(1, 0, bytes(32)) == KeyMessageFactory(protocol, K1).prepare(
            1, 0, bytes(32)
        )


def test_a_block_in_another_round_is_the_same_block() -> None:
    for protocol in (Ibft2(), Qbft()):
        block = message_block(protocol)
        assert KeyMessageFactory(protocol, K1).with_round(block, 1) == message_block(protocol, 1)


def test_the_round_of_a_proposed_block_can_be_hidden_where_the_protocol_allows_it() -> None:
    for protocol, hidden in ((Ibft2(), 1), (Qbft(), 0)):
        factory = KeyMessageFactory(protocol, K1)
        assert factory.proposal(1, 1, message_block(protocol, 1), None).block.round == 1
        factory.hides_round = True
        proposal = factory.proposal(1, 1, message_block(protocol, 1), None)
        assert (proposal.round, proposal.block) == (1, message_block(protocol, hidden))
