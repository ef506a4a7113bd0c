"""The connections during a synchronisation: a node at the genesis block, under its permission rules."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.native.crypto import PrivateKey
from ophion.native.store import open_store
from ophion.node.config import NodeConfig
from ophion.node.snap_sync.network import build_snap_network
from ophion.peers.options import PeerConfig
from ophion.permissions.options import PermissionConfig
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.runtime.thread_pools import InlineLanes
from ophion.testing.bft_chain import bft_genesis_text


def test_peers_see_a_node_at_the_genesis_block(tmp_path: Path) -> None:
    async def story() -> None:
        genesis = parse_genesis(bft_genesis_text("qbft", 4))
        (tmp_path / "permissions_config.toml").write_text("nodes-whitelist=[]\n")
        config = replace(
            NodeConfig(),
            peers=PeerConfig(port=0, discovery_enabled=False),
            permissions=PermissionConfig(nodes_file_enabled=True),
        )
        store = open_store(tmp_path, durable=False)
        key = PrivateKey(bytes([5]) * 32)
        network = build_snap_network(
            config,
            genesis,
            engine_for(genesis.spec),
            store,
            key,
            tmp_path,
            InlineLanes(),
            SystemClock(),
            SystemEntropy(),
        )
        status = network.eth.status(network.eth.versions[-1])
        assert (status.latest, status.genesis) == (0, network.eth.chain.genesis.hash)
        assert not network.eth.is_accepting()
        assert [service.name for service in network.services] == ["eth", "P2P service"]
        assert network.usable() == list(network.snap) == []
        store.close()

    asyncio.run(story())
