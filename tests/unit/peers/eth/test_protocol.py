"""Tests `EthProtocol`: offered versions, Status and block range updates."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ophion.peers.eth.messages import BlockRange, Code
from ophion.peers.eth.protocol import RANGE_BLOCKS, RANGE_S
from ophion.testing.bft_chain import sealed_blocks
from ophion.testing.eth_node import NETWORK_ID, EthNode
from ophion.testing.links import PeerLink, connect
from tests.unit.peers.eth.scenarios import run_nodes, run_validator_nodes


def ranges(wire: PeerLink) -> list[int]:
    """Return the latest block numbers that one end of the connection has announced with BlockRangeUpdate."""
    return [BlockRange.decode(payload).latest for code, payload in wire.sent if code == Code.BLOCK_RANGE_UPDATE]


def test_the_status_is_that_of_the_head(tmp_path: Path) -> None:
    async def scenario(one: EthNode) -> None:
        head = await one.node.seal()
        status = one.eth.status(one.eth.versions[0])
        assert (status.best_hash, status.latest, status.network_id) == (head.hash, 1, NETWORK_ID)
        assert status.total_difficulty == one.chain.tip.total_difficulty
        assert status.genesis == one.chain.genesis.hash
        assert status.fork_id == one.eth.fork_id == one.eth.fork_ids.at(1, head.timestamp)

    run_nodes(tmp_path, 1, scenario)


def test_clique_and_proof_of_work_do_not_offer_69(tmp_path: Path) -> None:
    async def scenario(one: EthNode) -> None:
        assert [str(one) for one in one.eth.capabilities] == ["eth/66", "eth/68"]

    run_nodes(tmp_path, 1, scenario)


def test_validators_offer_all(tmp_path: Path) -> None:
    async def scenario(one: EthNode) -> None:
        assert [str(one) for one in one.eth.capabilities] == ["eth/66", "eth/68", "eth/69"]

    run_validator_nodes(tmp_path, 1, scenario)


def test_the_block_range_is_announced_periodically(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        blocks = [raw for _, raw in sealed_blocks("ibft2", 4, 50)]
        here, _ = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        await one.take(iter(blocks[: RANGE_BLOCKS - 1]))
        assert ranges(here) == []
        await one.take(iter(blocks[RANGE_BLOCKS - 1 : RANGE_BLOCKS + 3]))
        assert ranges(here) == [RANGE_BLOCKS]
        await asyncio.sleep(2 * RANGE_S)
        assert ranges(here) == [RANGE_BLOCKS, RANGE_BLOCKS + 3], "once, however long nothing happens"

    run_validator_nodes(tmp_path, 2, scenario)


def test_peers_are_found_by_identity_and_by_address(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(0.1)
        (peer,) = one.eth.peers
        assert peer is here.attached
        assert one.eth.peers.by_id(peer.peer.id) is peer
        assert one.eth.peers.by_address(peer.peer.address) is peer
        assert one.eth.peers.best_height == 0
        changes = []
        one.eth.peers.changed.listen(changes.append)
        there.close()
        here.close()
        assert changes == [peer]
        assert one.eth.peers.by_address(peer.peer.address) is None

    run_nodes(tmp_path, 2, scenario)
