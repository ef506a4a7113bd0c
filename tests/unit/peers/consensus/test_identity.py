"""Nodes prove for which validator they act."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ophion.consensus.bft.signatures import DigestSigner
from ophion.native.crypto import PrivateKey
from ophion.peers.consensus.identity import NAME, IdentityProtocol
from ophion.peers.consensus.validator_nodes import MAX_NODES
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.primitives import rlp
from ophion.testing.memory_connection import Host, MemoryConnection
from tests.unit.peers.consensus.circle import Party, told
from tests.unit.producer.authority import KEYS, running

NODES = [PrivateKey(bytes([n]) * 32) for n in range(101, 105)]
GENESIS = b"\x0c" * 32


def _host(party: Party, node: PrivateKey, validator: DigestSigner | None) -> Host:
    """Return a node of a party with its own node key."""
    identity = IdentityProtocol(party.validators, GENESIS, node.public_key, validator)
    return Host(node, [*party.protocols, identity], party.host.clock)


def test_messages_go_to_all_nodes_of_a_validator(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first, second = parties[:2]
        center = _host(first, KEYS[0], None)
        partners = [_host(second, node, KEYS[1]) for node in NODES[:2]]
        meetings = [MemoryConnection(center, partner) for partner in partners]
        for meeting in meetings:
            await meeting.peers()
        await asyncio.sleep(0.1)
        assert list(first.validators.connected()) == [KEYS[1].address]
        assert len(first.validators._of(KEYS[1].address)) == 2
        assert {one.peer.address for one in first.validators._of(KEYS[1].address)} == {n.address for n in NODES[:2]}
        peer = center.peers.by_address(NODES[0].address)
        assert peer is not None
        assert peer.validator_address == KEYS[1].address
        peer.disconnect(DisconnectReason.REQUESTED, "")
        await asyncio.sleep(3)
        assert list(first.validators.connected()) == [KEYS[1].address], "another node acts for it"
        other = center.peers.by_address(NODES[1].address)
        assert other is not None
        other.disconnect(DisconnectReason.REQUESTED, "")
        await asyncio.sleep(3)
        assert list(first.validators.connected()) == []

    told(tmp_path, "qbft", story, nodes=2)


def test_a_proof_of_another_node_or_chain_names_another_address(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first, second = parties[:2]
        center = _host(first, KEYS[0], None)
        thief = _host(second, NODES[0], None)
        stolen = IdentityProtocol(second.validators, GENESIS, NODES[1].public_key, KEYS[1])
        meeting = MemoryConnection(center, thief)
        _, peer = await meeting.peers()
        assert stolen._proof is not None
        peer.send(NAME, 0, stolen._proof)
        await asyncio.sleep(0.1)
        found = center.peers.by_address(NODES[0].address)
        assert found is not None
        assert found.validator_address not in (KEYS[0].address, KEYS[1].address)

    told(tmp_path, "qbft", story, nodes=2)


def test_a_malformed_proof_ends_the_connection(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first, second = parties[:2]
        for proof in (b"\xc0", rlp.encode([b"\x01" * 64]), rlp.encode([b"\x01" * 32, b""])):
            center, unknown_node = _host(first, KEYS[0], None), _host(second, NODES[0], None)
            _, peer = await MemoryConnection(center, unknown_node).peers()
            peer.send(NAME, 0, proof)
            await asyncio.sleep(3)
            assert not peer.is_open

    told(tmp_path, "qbft", story, nodes=2)


def test_a_second_proof_ends_the_connection(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first, second = parties[:2]
        for signer in (NODES[0], KEYS[1]):
            # the first proof is signed with the node key; it adds nothing, because the node key identifies every node
            center, unknown_node = _host(first, KEYS[0], None), _host(second, NODES[0], None)
            proof = IdentityProtocol(second.validators, GENESIS, NODES[0].public_key, signer)._proof
            assert proof is not None
            _, peer = await MemoryConnection(center, unknown_node).peers()
            peer.send(NAME, 0, proof)
            await asyncio.sleep(0.1)
            assert peer.is_open
            peer.send(NAME, 0, proof)
            await asyncio.sleep(3)
            assert not peer.is_open

    told(tmp_path, "qbft", story, nodes=2)


def test_a_validator_has_a_limited_number_of_nodes(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first, second = parties[:2]
        center = _host(first, KEYS[0], None)
        nodes = [PrivateKey(bytes([n]) * 32) for n in range(110, 110 + MAX_NODES + 2)]
        for node in nodes:
            await MemoryConnection(center, _host(second, node, KEYS[1])).peers()
            await asyncio.sleep(0.1)
        assert len(first.validators._of(KEYS[1].address)) == MAX_NODES
        refused = center.peers.by_address(nodes[-1].address)
        assert refused is not None
        assert refused.validator_address == refused.address
        assert first.validators.nodes.validator_of(nodes[0].address) == KEYS[1].address
        assert first.validators.nodes.validator_of(nodes[-1].address) == nodes[-1].address

    told(tmp_path, "qbft", story, nodes=2)


def test_nodes_of_validators_are_remembered_and_others_are_not(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first, second = parties[:2]
        center = _host(first, KEYS[0], None)
        async with running(first.driver):
            for node, validator, expected in ((NODES[0], KEYS[1], KEYS[1]), (NODES[1], NODES[2], NODES[1])):
                await MemoryConnection(center, _host(second, node, validator)).peers()
                await asyncio.sleep(0.1)
                peer = center.peers.by_address(node.address)
                assert peer is not None
                assert peer.validator_address == validator.address
                peer.disconnect(DisconnectReason.REQUESTED, "")
                await asyncio.sleep(3)
                assert first.validators.nodes.validator_of(node.address) == expected.address

    told(tmp_path, "qbft", story, nodes=2)


def test_senders_are_named_to_peers_that_accept_them(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first, second = parties[:2]
        named: list[tuple[bytes, bytes]] = []
        own = IdentityProtocol(first.validators, GENESIS, NODES[0].public_key, None)
        other = IdentityProtocol(second.validators, GENESIS, NODES[1].public_key, None)
        older = IdentityProtocol(second.validators, GENESIS, NODES[2].public_key, None)
        older.capabilities = older.capabilities[:2]
        for identity in (other, older):
            identity.senders_named = lambda peer, senders: named.append((peer.address, senders))
        center = Host(NODES[0], [*first.protocols, own], first.host.clock)
        for node, identity in ((NODES[1], other), (NODES[2], older)):
            peer, _ = await MemoryConnection(
                center, Host(node, [*second.protocols, identity], second.host.clock)
            ).peers()
            own.name_senders(peer, b"\x01" * 40)
            own.name_senders(peer, b"\x01" * 20 * 5000)
        await asyncio.sleep(0.1)
        assert named == [(NODES[0].address, b"\x01" * 40)]

    told(tmp_path, "qbft", story, nodes=2)
