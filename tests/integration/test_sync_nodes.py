"""Two real nodes over real sockets: synchronisation, gossip of blocks and transactions, and kills."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ophion.testing.bft_chain import bft_genesis_text, sealed_blocks
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion

PEERS = ("--p2p-port=0", "--discovery-enabled=false", "--rpc-http-api=ETH,NET,ADMIN,TXPOOL,MINER")
BLOCKS = 5000


def head(node: NodeProcess) -> str:
    block: dict[str, str] = node.rpc("eth_getBlockByNumber", "latest", False)
    return block["hash"]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a BFT chain into a file."""
    folder: Path = tmp_path_factory.mktemp("chain")
    (folder / "genesis.json").write_text(bft_genesis_text("qbft", 4))
    with (folder / "blocks.rlp").open("wb") as file:
        for _, block in sealed_blocks("qbft", 4, BLOCKS):
            file.write(block)
    return folder


def test_a_chain_comes_over_and_a_kill_in_the_middle_costs_nothing(chain: Path, tmp_path: Path) -> None:
    genesis = f"--genesis-file={chain / 'genesis.json'}"
    ophion("blocks", "import", f"--from={chain / 'blocks.rlp'}", genesis, f"--data-path={tmp_path / 'one'}").succeeded()
    with NodeProcess(tmp_path / "one", genesis, *PEERS) as one:
        static = tmp_path / "static.json"
        static.write_text(json.dumps([one.rpc("net_enode")]))
        follower = NodeProcess(tmp_path / "two", genesis, *PEERS, f"--static-nodes-file={static}")
        with follower:
            wait_for(lambda: follower.height > 200)
            follower.kill()
        with follower:
            assert follower.height > 200
            wait_for(lambda: follower.height == BLOCKS)
            assert head(follower) == head(one)
            assert follower.rpc("eth_syncing") is False
            assert follower.rpc("eth_protocolVersion") == "0x45"
            wait_for(lambda: "synchronised block=" in follower.output())  # the node logs this line after the last block
            follower.stop()
    ophion("storage", "check", f"--data-path={tmp_path / 'two'}").succeeded()


def test_blocks_and_transactions_travel_between_two_nodes(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "one", *MINING, *PEERS) as one:
        first = one.receipt(one.send(legacy_transaction(DEV_KEYS[1], 0)))
        with NodeProcess(tmp_path / "two", "--network=dev", *PEERS) as two:
            assert two.rpc("admin_addPeer", one.rpc("net_enode")) is True
            wait_for(lambda: two.rpc("eth_getTransactionReceipt", first["transactionHash"]))
            sent = two.send(legacy_transaction(DEV_KEYS[1], 1))
            receipt = wait_for(lambda: one.rpc("eth_getTransactionReceipt", sent))
            assert wait_for(lambda: two.rpc("eth_getTransactionReceipt", sent)) == receipt
            assert head(one) == head(two)
            assert two.rpc("txpool_status")["pending"] == "0x0"
