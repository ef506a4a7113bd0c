"""A real node fetches headers and a state from peers, survives kills on the way, follows, and fetches old blocks."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.testing.busy_chain import PAYER, STORER, make_chain
from ophion.testing.node_process import COMMAND, NodeProcess, RpcFailure, environment
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion

BLOCKS, PIVOT = 300, 292
PEERS = ("--p2p-port=0", "--discovery-enabled=false", "--rpc-http-api=ETH,NET,ADMIN,DEBUG")
KILLS = 20


class Network:
    """Two nodes with the whole chain."""

    def __init__(self, folder: Path) -> None:
        chain = make_chain(folder / "chain", "qbft", BLOCKS, 3000, 2000, 1500)
        self.genesis = f"--genesis-file={chain / 'genesis.json'}"
        self.static = folder / "static.json"
        self.nodes = []
        for name in ("one", "two"):
            data = folder / name
            ophion(
                "blocks", "import", f"--from={chain / 'blocks.rlp'}", self.genesis, f"--data-path={data}"
            ).succeeded()
            self.nodes.append(NodeProcess(data, self.genesis, *PEERS))

    def options(self) -> list[str]:
        return [self.genesis, *PEERS, "--sync-mode=SNAP", f"--static-nodes-file={self.static}"]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    found = Network(tmp_path_factory.mktemp("network"))
    with found.nodes[0] as one, found.nodes[1] as two:
        found.static.write_text(json.dumps([node.rpc("net_enode") for node in (one, two)]))
        yield found


def test_a_new_node_fetches_the_state_and_follows(network: Network, tmp_path: Path) -> None:
    one = network.nodes[0]
    with NodeProcess(tmp_path / "new", *network.options()) as new:
        wait_for(lambda: new.height == BLOCKS)
        assert "state complete number=292" in new.output()
        assert new.rpc("eth_capabilities")["state"]["oldestBlock"] == hex(PIVOT)
        history = new.rpc("eth_capabilities")["receipts"]["oldestBlock"]
        assert int(history, 16) <= PIVOT - 127
        wait_for(lambda: new.rpc("eth_capabilities")["receipts"]["oldestBlock"] == "0x0")
        for block in ("latest", hex(PIVOT), "0x7"):
            assert new.rpc("eth_getBlockByNumber", block, True) == one.rpc("eth_getBlockByNumber", block, True)
            assert new.rpc("eth_getBlockReceipts", block) == one.rpc("eth_getBlockReceipts", block)
        transaction = one.rpc("eth_getBlockByNumber", "0x7", False)["transactions"][0]
        for method in ("eth_getTransactionByHash", "eth_getTransactionReceipt"):
            assert new.rpc(method, transaction) == one.rpc(method, transaction)
        for address in ("0x" + PAYER.hex(), "0x" + STORER.hex()):
            proof = ("eth_getProof", address, ["0x0"], hex(PIVOT))
            assert new.rpc(*proof) == one.rpc(*proof)
            assert new.rpc("eth_getCode", address, "latest") == one.rpc("eth_getCode", address, "latest") != "0x"
        assert new.rpc("eth_getBalance", "0x" + PAYER.hex(), "0x7") is None
        assert new.rpc("eth_getBalance", "0x" + PAYER.hex(), "earliest") == hex(10**24)
        with pytest.raises(RpcFailure, match="World state unavailable") as failed:
            new.rpc("eth_getProof", "0x" + PAYER.hex(), [], "0x7")
        assert failed.value.data is not None
        assert f"The oldest kept state is that of block {PIVOT}." in failed.value.data
        logs = ("eth_getLogs", {"fromBlock": "0x0", "toBlock": hex(PIVOT)})
        assert new.rpc(*logs) == one.rpc(*logs)
    assert not (tmp_path / "new" / "snap").exists()
    ophion("storage", "check", f"--data-path={tmp_path / 'new'}").succeeded()
    # private transactions need the states before the pivot: the node refuses them, and is used as before without them
    options = (network.genesis, *PEERS, "--privacy-enabled", "--min-gas-price=0", f"--data-path={tmp_path / 'new'}")
    refused = ophion(*options)
    refused.failed(f"began with the state of block {PIVOT} (--sync-mode=SNAP or CHECKPOINT)", "--sync-mode=FULL")
    assert not (tmp_path / "new" / "privacy").exists()
    with NodeProcess(tmp_path / "new", *network.options()) as again:
        assert again.height == BLOCKS


def test_a_node_killed_at_any_moment_continues(network: Network, tmp_path: Path) -> None:
    command = [*COMMAND, f"--data-path={tmp_path / 'new'}", *network.options()]
    chosen = random.Random(11)
    for _ in range(KILLS):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()) as one:
            time.sleep(chosen.uniform(0.3, 2.0))
            one.kill()
    with NodeProcess(tmp_path / "new", *network.options()) as new:
        wait_for(lambda: new.height == BLOCKS)
        wait_for(lambda: new.rpc("eth_capabilities")["logs"]["oldestBlock"] == "0x0")
    assert not (tmp_path / "new" / "snap").exists()
    ophion("storage", "check", f"--data-path={tmp_path / 'new'}").succeeded()


def test_a_node_that_is_stopped_leaves_no_database(network: Network, tmp_path: Path) -> None:
    alone = [network.genesis, *PEERS, "--sync-mode=SNAP"]
    command = [*COMMAND, f"--data-path={tmp_path / 'new'}", *alone]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment()) as one:
        assert one.stdout is not None
        output = b""
        # before this line, the signal handler may not be there yet
        while b"P2P service started" not in output:
            line = one.stdout.readline()
            assert line, output.decode()
            output += line
        one.terminate()
        output += one.communicate(timeout=30)[0]
    assert one.returncode == 0, output.decode()
    assert not (tmp_path / "new" / "database" / "data.mdb").exists()


def test_snap_needs_peers_and_no_private_states(network: Network, tmp_path: Path) -> None:
    for options, reason in (
        (("--p2p-enabled=false",), "--sync-mode=SNAP needs peers"),
        (("--privacy-enabled",), "--sync-mode=SNAP fetches only a recent one"),
    ):
        failed = ophion("--sync-mode=SNAP", f"--data-path={tmp_path / 'new'}", network.genesis, *options)
        assert failed.code == 1
        assert reason in failed.err
