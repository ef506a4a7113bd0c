"""Tests the search for the common ancestor."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.messages import Code
from ophion.peers.eth.peer import EthPeer
from ophion.peers.sync.common_ancestor import common_ancestor
from ophion.testing.bft_chain import START, sealed_blocks
from ophion.testing.eth_node import EthNode
from ophion.testing.links import PeerLink, connect
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until
from tests.unit.peers.eth.scenarios import run_nodes, run_validator_nodes


def eth(wire: PeerLink) -> EthPeer:
    assert isinstance(wire.attached, EthPeer)
    return wire.attached


@pytest.mark.parametrize(("shared", "own", "others"), [(0, 0, 5), (5, 0, 5), (5, 3, 9), (3, 40, 41), (7, 230, 300)])
def test_it_is_found_near_and_far(tmp_path: Path, shared: int, own: int, others: int) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        for _ in range(shared):
            header = await one.node.seal(0.0)
            raw = one.chain.store.block(header.hash)
            assert raw is not None
            await other.take(iter([raw]))
        for _ in range(own):
            await one.node.seal(1.0)
        await other.node.send(legacy_transaction(DEV_KEYS[1], 0))
        for _ in range(others):
            await other.node.seal(2.0)
        here, _ = connect(one.eth, other.eth)
        await until(lambda: eth(here).is_usable)
        before = len(here.sent)
        ancestor = await common_ancestor(eth(here), one.chain)
        assert ancestor.number == shared
        asked = [code for code in here.codes()[before:] if code == Code.GET_BLOCK_HEADERS]
        assert len(asked) <= 12

    run_nodes(tmp_path, 2, scenario, synchronises=False)


def test_where_blocks_are_final_the_head_is_the_ancestor(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        await one.take(raw for _, raw in sealed_blocks("ibft2", 4, 5))
        await other.take(raw for _, raw in sealed_blocks("ibft2", 4, 8))
        here, _ = connect(one.eth, other.eth)
        await until(lambda: eth(here).is_usable)
        before = len(here.sent)
        assert (await common_ancestor(eth(here), one.chain)).number == 5
        assert here.codes()[before:] == [Code.GET_BLOCK_HEADERS]

    run_validator_nodes(tmp_path, 2, scenario, synchronises=False)


def test_a_different_final_block_is_named_in_the_error(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        await one.take(raw for _, raw in sealed_blocks("ibft2", 4, 5))
        await other.take(raw for _, raw in sealed_blocks("ibft2", 4, 8, start=START + 3))
        here, _ = connect(one.eth, other.eth)
        await until(lambda: eth(here).is_usable)
        with pytest.raises(PeerMisbehaved, match="another chain") as caught:
            await common_ancestor(eth(here), one.chain)
        assert caught.value.reason is DisconnectReason.BREACH

    run_validator_nodes(tmp_path, 2, scenario, synchronises=False)
