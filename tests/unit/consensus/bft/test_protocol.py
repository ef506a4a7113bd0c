"""Both protocols and both message factories, real and fake, implement the machine's interfaces."""

from __future__ import annotations

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.consensus.bft.protocol import MessageFactory, ProtocolRules
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.testing.simulation.fake_crypto import FakeMessageFactory
from tests.unit.consensus.bft.golden import COMMITTEE, K1


def test_the_two_protocols_differ_where_they_should() -> None:
    rules: list[ProtocolRules] = [Ibft2(), Qbft()]
    assert [entry.prepares_needed(COMMITTEE) for entry in rules] == [2, 3]
    assert [entry.proposer_prepares for entry in rules] == [False, True]
    assert [entry.starts_on_block_timer for entry in rules] == [False, True]
    assert [entry.certifies_proposal for entry in rules] == [True, False]
    assert (Ibft2.subprotocol, Qbft.subprotocol) == (("IBF", 1, 4), ("istanbul", 100, 22))


def test_keys_and_stand_ins_write_the_same_statements() -> None:
    for rules in (Ibft2(), Qbft()):
        factories: list[MessageFactory] = [KeyMessageFactory(rules, K1), FakeMessageFactory(K1.address, rules)]
        first, second = (factory.prepare(3, 2, bytes(32)) for factory in factories)
        assert (first.height, first.round, first.digest, first.author) == (
            second.height,
            second.round,
            second.digest,
            second.author,
        )
        for factory in factories:
            commit = factory.commit(3, 2, bytes(32), b"\1" * 32)
            assert factory.seal_author(b"\1" * 32, commit.seal) == K1.address
            assert factory.seal_author(bytes(32), commit.seal) != K1.address
