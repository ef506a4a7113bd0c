"""The scenarios of networking.md 7.8 with Ophion nodes, except those in other files.

| scenario | where |
| --- | --- |
| 1 two nodes meet, by hand, by file, by discovery | test_peers_nodes.py; with geth test_sync_geth.py |
| 2 both dial each other at once | here |
| 3 5,000 blocks are synchronised | test_sync_nodes.py; with geth test_sync_geth.py |
| 4 either side is killed and comes back | test_peers_nodes.py |
| 5 another genesis, another fork schedule | here; another network id in test_peers_nodes.py |
| 6 signers are partitioned and reconnected | test_network_clique.py |
| 7 a peer is removed from the allowlist and added again | test_permissions_nodes.py |
| 8 a slow serving node | here |
| 9 a flood of transactions through a chain of nodes | here |
| 10 many peers and large blocks | here, at full length with OPHION_FAULTS=long |
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.bft_chain import bft_genesis_text, sealed_blocks
from ophion.testing.network import TestNetwork, member_key
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion

IS_LONG = os.environ.get("OPHION_FAULTS") == "long"
PEERS = ("--p2p-interface=127.0.0.1", "--discovery-enabled=false", "--rpc-http-api=ETH,NET,ADMIN,TXPOOL,DEBUG")
BLOCKS = 1500


def endings(node: NodeProcess) -> dict[tuple[str, str], int]:
    """Return the number of ended connections, by the node that ended them and by reason."""
    found = node.rpc("debug_metrics")["peers"].get("disconnected_total", {})
    return {(who, why): count for who, reasons in found.items() for why, count in reasons.items()}


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a BFT chain into a file."""
    file: Path = tmp_path_factory.mktemp("chain") / "blocks.rlp"
    with file.open("wb") as out:
        for _, block in sealed_blocks("qbft", 4, BLOCKS):
            out.write(block)
    return file


@pytest.mark.parametrize("attempt", range(3))
def test_2_both_dial_each_other_at_once_and_one_connection_survives(tmp_path: Path, attempt: int) -> None:
    keys, ports = [member_key(index) for index in range(2)], free_ports(2)
    nodes = []
    for here, there in ((0, 1), (1, 0)):
        path = tmp_path / str(here)
        path.mkdir()
        (path / "key").write_text(keys[here].secret().hex())
        enode = f"enode://{keys[there].public_key.hex()}@127.0.0.1:{ports[there]}"
        (path / "static-nodes.json").write_text(json.dumps([enode]))
        nodes.append(NodeProcess(path, "--network=dev", f"--p2p-port={ports[here]}", *PEERS))
    with nodes[0] as one, nodes[1] as two:
        wait_for(lambda: len(one.rpc("admin_peers")) == len(two.rpc("admin_peers")) == 1)
        time.sleep(2)  # both nodes may have dialled, so wait until a second connection has arrived and was refused
        [seen_by_one], [seen_by_two] = one.rpc("admin_peers"), two.rpc("admin_peers")
        assert seen_by_one["network"]["inbound"] is not seen_by_two["network"]["inbound"]
        assert sum(endings(one).values()) <= 2
        assert all(why in ("already_connected", "timeout", "tcp_error") for _, why in endings(one))


@pytest.mark.parametrize("what", ["genesis", "forks"])
def test_5_a_chain_that_is_not_ours_is_left_cleanly_and_not_stormed(tmp_path: Path, blocks: Path, what: str) -> None:
    ours: dict[str, Any] = json.loads(bft_genesis_text("qbft", 4))
    theirs = json.loads(json.dumps(ours))
    if what == "genesis":
        theirs["gasLimit"] = hex(int(ours["gasLimit"], 16) - 1)
    else:
        # this fork block changes only the fork identifier and no rule of existing blocks
        theirs["config"]["arrowGlacierBlock"] = 100
    nodes = []
    for name, genesis in (("one", ours), ("two", theirs)):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(genesis))
        if what == "forks":
            command = ("blocks", "import", f"--from={blocks}", f"--genesis-file={file}")
            ophion(*command, f"--data-path={tmp_path / name}").succeeded()
        nodes.append(NodeProcess(tmp_path / name, f"--genesis-file={file}", "--p2p-port=0", *PEERS))
    with nodes[0] as one, nodes[1] as two:
        one.rpc("admin_addPeer", two.rpc("net_enode"))
        wait_for(lambda: endings(one))
        time.sleep(3)
        # a redialled peer counts as connected for a moment, so wait
        wait_for(lambda: one.rpc("net_peerCount") == two.rpc("net_peerCount") == "0x0")
        assert {why for _, why in endings(one)} == {"subprotocol"}  # reason 0x10 means a subprotocol error
        assert sum(endings(one).values()) <= 4


def test_8_a_slow_server_is_waited_for_or_left_but_never_accused(tmp_path: Path, blocks: Path) -> None:
    genesis_file = tmp_path / "genesis.json"
    genesis_file.write_text(bft_genesis_text("qbft", 4))
    genesis = f"--genesis-file={genesis_file}"
    ophion("blocks", "import", f"--from={blocks}", genesis, f"--data-path={tmp_path / 'one'}").succeeded()
    with NodeProcess(tmp_path / "one", genesis, "--p2p-port=0", *PEERS) as one:
        (tmp_path / "two").mkdir()
        (tmp_path / "two" / "static-nodes.json").write_text(json.dumps([one.rpc("net_enode")]))
        with NodeProcess(tmp_path / "two", genesis, "--p2p-port=0", *PEERS) as two:
            wait_for(lambda: two.rpc("net_peerCount") == "0x1" or two.height)
            os.kill(one.pid, signal.SIGSTOP)
            time.sleep(6)
            os.kill(one.pid, signal.SIGCONT)
            wait_for(lambda: two.height == BLOCKS)
            for node in (one, two):
                assert not any(why == "breach" for _, why in endings(node)), endings(node)


def test_9_a_storm_of_transactions_passes_a_line_of_nodes(tmp_path: Path) -> None:
    count, each = 5000, 1000
    free = "--tx-pool-max-size=8192"
    options = ("--p2p-port=0", free, *PEERS)
    with (
        NodeProcess(tmp_path / "miner", *MINING, *options) as miner,
        NodeProcess(tmp_path / "middle", "--network=dev", *options) as middle,
        NodeProcess(tmp_path / "first", "--network=dev", *options) as first,
    ):
        middle.rpc("admin_addPeer", miner.rpc("net_enode"))
        first.rpc("admin_addPeer", middle.rpc("net_enode"))
        wait_for(lambda: first.rpc("net_peerCount") == "0x1" and middle.rpc("net_peerCount") == "0x2")
        hashes = []
        for start in range(0, count, each):
            batch = [legacy_transaction(DEV_KEYS[1], start + index) for index in range(each)]
            hashes += [first.send(raw) for raw in batch]
        assert len(set(hashes)) == count
        sender = "0x" + DEV_KEYS[1].address.hex()
        for node in (miner, middle, first):
            wait_for(lambda node=node: int(node.rpc("eth_getTransactionCount", sender, "latest"), 16) == count)
        assert all(first.rpc("eth_getTransactionReceipt", hash)["status"] == "0x1" for hash in hashes[::250])
        # the first node got no gossip, because no node sends a transaction back to its sender
        came = first.rpc("debug_metrics")["network"]["p2p_messages_inbound_total"]["eth"]
        assert not any("Transactions" in name and "Get" not in name for name in came), came


def test_10_many_peers_get_large_blocks_on_time(tmp_path: Path) -> None:
    """One validator makes blocks of a megabyte, and every follower is its peer."""
    followers, seconds = (25, 600) if IS_LONG else (5, 6)
    # all followers dial the validator, and by default only three fifths of its peers may be inbound
    options = ("--remote-connections-limit-enabled=false",)
    with TestNetwork(tmp_path, "qbft", validators=1, options=options) as network, ExitStack() as stack:
        (maker,) = network.nodes
        enode = f"enode://{network.keys[0].public_key.hex()}@127.0.0.1:{network.ports[0]}"
        nodes = []
        for index in range(followers):
            path = tmp_path / f"follower{index}"
            path.mkdir()
            (path / "static-nodes.json").write_text(json.dumps([enode]))
            genesis = f"--genesis-file={network.genesis_file}"
            node = NodeProcess(path, genesis, "--min-gas-price=0", "--p2p-port=0", *PEERS)
            nodes.append(stack.enter_context(node))
        wait_for(lambda: int(maker.rpc("net_peerCount"), 16) == followers)
        nonce, end, waits = 0, time.monotonic() + seconds, []
        while time.monotonic() < end:
            for _ in range(8):
                large = legacy_transaction(
                    DEV_KEYS[0], nonce, gas=3_000_000, gas_price=0, data=bytes(120_000), chain_id=1337
                )
                maker.send(large)
                nonce += 1
            began = time.monotonic()
            maker.rpc("eth_blockNumber")
            waits.append(time.monotonic() - began)
            time.sleep(max(0.0, 1 - (time.monotonic() - began)))
        sender = "0x" + DEV_KEYS[0].address.hex()
        wait_for(lambda: int(maker.rpc("eth_getTransactionCount", sender, "latest"), 16) == nonce)
        for node in nodes:
            wait_for(lambda node=node: node.height >= maker.height - 1)
            assert int(node.rpc("net_peerCount"), 16) == 1
        print(f"{followers} peers, {nonce} transactions of 120 kB, longest wait {max(waits) * 1000:.0f} ms")
        assert int(maker.rpc("net_peerCount"), 16) == followers
