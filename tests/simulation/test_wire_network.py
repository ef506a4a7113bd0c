"""Tests four validators with real keys, headers and messages, in both protocols and both wire profiles (I-26, Q-03,
Q-10).
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.messages import BftMessage, Commit, Prepare, Proposal, RoundChange
from tests.simulation.wire_network import Node, WireNetwork
from tests.unit.consensus.bft.ledger import KEYS, genesis_of

both = pytest.mark.parametrize("protocol", ["ibft2", "qbft"])
CLASSIC, BAL = WireProfile.CLASSIC, WireProfile.BAL
ADDRESSES = [key.address for key in KEYS]


def network(protocol: str, profiles: tuple[WireProfile, ...] = (CLASSIC,) * 4) -> WireNetwork:
    options = {"blockperiodseconds": 1, "requesttimeoutseconds": 3}
    found = WireNetwork(genesis_of(protocol, ADDRESSES, options), KEYS, profiles)
    for node in found.nodes:
        found.start(node)
    return found


def heights(found: WireNetwork) -> list[int]:
    return [node.ledger.head.number for node in found.nodes]


@both
@pytest.mark.parametrize("profiles", [(CLASSIC,) * 4, (BAL,) * 4, (CLASSIC, BAL, CLASSIC, BAL)])
def test_i_26_q_10_progress_in_round_0_and_after_a_dead_proposer_in_any_mix_of_profiles(
    protocol: str, profiles: tuple[WireProfile, ...]
) -> None:
    found = network(protocol, profiles)
    found.run(5.5)
    assert heights(found) == [5] * 4
    proposer = found.nodes[1]
    assert proposer.ledger.engine.new_head(proposer.ledger.head, proposer.ledger).head.builder == ADDRESSES[0]
    found.stop(proposer)
    found.run(12.0)
    live = [node for node in found.nodes if node is not proposer]
    assert min(node.ledger.head.number for node in live) >= 7
    assert len({node.ledger.headers[6].hash for node in live}) == 1
    extra = live[0].ledger.engine.validators.extra(live[0].ledger.headers[6].header)
    assert extra.round == 1
    assert any(isinstance(message, RoundChange) for _, message in found.sent)


@both
def test_q_03_a_block_prepared_in_round_1_and_decided_in_round_2_carries_round_2(protocol: str) -> None:
    found = network(protocol)

    def drops(_sender: Node, _receiver: Node, message: BftMessage) -> bool:
        if message.height != 1:
            return False
        if message.round == 0:
            return isinstance(message, Proposal)
        return message.round == 1 and isinstance(message, Commit)

    found.drops = drops
    found.run(25.0)
    assert min(heights(found)) >= 2
    proposals = [message for _, message in found.sent if isinstance(message, Proposal) and message.height == 1]
    first, second = (next(message for message in proposals if message.round == number) for number in (1, 2))
    assert first.block.hash == second.block.hash
    assert (first.block.round, second.block.round) == (1, 2)
    assert first.block.digest != second.block.digest
    claims = [
        message.signed.claim
        for _, message in found.sent
        if isinstance(message, RoundChange) and message.height == 1 and message.round == 2
    ]
    assert {claim.digest for claim in claims if claim is not None} == {first.block.digest}
    node = found.nodes[0]
    sealed = node.ledger.headers[1]
    assert node.ledger.engine.validators.extra(sealed.header).round == 2
    assert sealed.hash == first.block.hash
    assert sealed.header.coinbase == ADDRESSES[1]


@both
def test_i_07_the_proof_on_disk_survives_a_restart_byte_for_byte(protocol: str) -> None:
    found = network(protocol)
    found.drops = lambda _sender, _receiver, message: isinstance(message, Commit) and message.round == 0
    found.run(1.5)
    prepared = found.nodes[1]
    assert prepared.disk is not None
    block = next(message.block for _, message in found.sent if isinstance(message, Proposal))
    for node in found.nodes[1:]:
        found.stop(node)
        found.start(node)
    found.stop(found.nodes[0])
    found.run(4.0)
    assert [node.ledger.head.hash for node in found.nodes[1:]] == [block.hash] * 3
    changes = [message for _, message in found.sent if isinstance(message, RoundChange)]
    assert any(change.block is not None and change.block.encoded == block.encoded for change in changes)


@both
def test_seals_are_in_the_order_of_arrival_and_any_node_accepts_the_others_chain(protocol: str) -> None:
    found = network(protocol)
    found.run(4.5)
    first, second = found.nodes[0].ledger, found.nodes[1].ledger
    assert [header.hash for header in first.headers] == [header.hash for header in second.headers]
    for parent, header in pairwise(second.headers):
        first.engine.verify(header, parent, second, 10)
    kinds = {type(message) for _, message in found.sent}
    assert kinds == {Proposal, Prepare, Commit}
