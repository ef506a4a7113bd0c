"""Tests gossip of a node without peers."""

from __future__ import annotations

from ophion.consensus.bft.client_profiles import WireProfile, chosen_profile
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.consensus.bft_form_choices import WireProfileChoice
from ophion.producer.validator_gossip import NoPeers, ValidatorGossip
from tests.unit.producer.authority import KEYS


def test_a_lone_node_sends_to_no_peer() -> None:
    gossip: ValidatorGossip = NoPeers()
    message = KeyMessageFactory(Ibft2(), KEYS[0]).prepare(1, 0, bytes(32))
    gossip.multicast(message, [key.address for key in KEYS])
    gossip.relay(message, ())
    gossip.catch_up(None, 7)
    assert list(gossip.connected()) == []
    assert chosen_profile(WireProfileChoice.AUTO, gossip.clients()) is WireProfile.CLASSIC
