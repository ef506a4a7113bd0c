"""A real node starts from a checkpoint of another node, survives kills during the start, and follows the chain."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.testing.busy_chain import make_chain
from ophion.testing.node_process import COMMAND, NodeProcess, environment
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion
from tests.unit.node.checkpoint.file_server import FileServer, serving

BLOCKS, CHECKPOINT = 150, 100
PEERS = ("--p2p-port=0", "--discovery-enabled=false", "--rpc-http-api=ETH,NET,ADMIN")
KILLS = 5


class Network:
    """A node with the whole chain, and an archive of its first blocks."""

    def __init__(self, folder: Path) -> None:
        chain = make_chain(folder / "chain", "qbft", BLOCKS, 1500, 900)
        self.genesis = f"--genesis-file={chain / 'genesis.json'}"
        self.data = folder / "one"
        self.archive = folder / "chain.tar.gz"
        blocks = (f"--from={chain / 'blocks.rlp'}", self.genesis, f"--data-path={self.data}")
        ophion("blocks", "import", *blocks, f"--end-block={CHECKPOINT + 1}").succeeded()
        ophion("storage", "backup", f"--data-path={self.data}", f"--to={self.archive}", "--max-rate=0").succeeded()
        self.small = folder / "small.tar"
        smaller = (f"--to={self.small}", "--max-rate=0", "--latest-state-only")
        ophion("storage", "backup", f"--data-path={self.data}", *smaller).succeeded()
        assert sorted(path.name for path in folder.iterdir()) == ["chain", "chain.tar.gz", "one", "small.tar"]
        assert self.small.stat().st_size < (self.data / "database" / "data.mdb").stat().st_size / 2
        ophion("blocks", "import", *blocks).succeeded()


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    return Network(tmp_path_factory.mktemp("network"))


@pytest.fixture
def server(network: Network) -> Iterator[FileServer]:
    with serving(network.archive.read_bytes()) as found:
        yield found


def test_a_new_node_starts_at_the_checkpoint_and_follows(network: Network, server: FileServer, tmp_path: Path) -> None:
    server.cuts = [20_000]
    options = (network.genesis, *PEERS, "--sync-mode=checkpoint", f"--sync-checkpoint={server.url}")
    with NodeProcess(network.data, network.genesis, *PEERS) as one, NodeProcess(tmp_path / "two", *options) as two:
        assert two.height == CHECKPOINT
        assert two.rpc("eth_capabilities")["state"]["oldestBlock"] == hex(CHECKPOINT)
        two.rpc("admin_addPeer", one.rpc("net_enode"))
        wait_for(lambda: two.height == BLOCKS)
        for block in ("latest", hex(CHECKPOINT), "0x7"):
            assert two.rpc("eth_getBlockByNumber", block, True) == one.rpc("eth_getBlockByNumber", block, True)
            assert two.rpc("eth_getBlockReceipts", block) == one.rpc("eth_getBlockReceipts", block)
        assert two.rpc("eth_getBalance", "0x" + "aa" * 20, hex(CHECKPOINT)) is not None
        assert two.rpc("eth_getBalance", "0x" + "aa" * 20, "0x7") is None
    ophion("storage", "check", f"--data-path={tmp_path / 'two'}").succeeded()


def test_a_node_killed_at_any_moment_starts_again(network: Network, tmp_path: Path) -> None:
    options = [network.genesis, *PEERS, "--sync-mode=checkpoint", f"--sync-checkpoint={network.small}"]
    command = [*COMMAND, f"--data-path={tmp_path / 'two'}", *options]
    chosen = random.Random(11)
    for _ in range(KILLS):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()) as one:
            time.sleep(chosen.uniform(0.2, 2.5))
            one.kill()
    with NodeProcess(tmp_path / "two", *options) as two:
        assert two.height == CHECKPOINT
    assert not (tmp_path / "two" / "checkpoint").exists()
    ophion("storage", "check", f"--data-path={tmp_path / 'two'}").succeeded()


def test_a_bad_checkpoint_is_one_error(network: Network, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    genesis = json.loads(Path(network.genesis.partition("=")[2]).read_text())
    other.write_text(json.dumps(genesis | {"timestamp": "0x5"}))
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(network.archive.read_bytes()[:-1000])
    data = f"--data-path={tmp_path / 'two'}"
    for options, reason in (
        ((f"--genesis-file={other}", f"--sync-checkpoint={network.archive}"), "does not match stored chain data"),
        ((network.genesis, f"--sync-checkpoint={cut}"), "damaged or incomplete"),
        ((network.genesis, "--sync-checkpoint=https://"), "neither a path nor an address"),
        ((network.genesis, "--sync-checkpoint=x", "--privacy-enabled"), "--privacy-enabled needs every state"),
    ):
        failed = ophion("--sync-mode=CHECKPOINT", data, "--p2p-enabled=false", *options)
        assert failed.code == 1
        assert reason in failed.err
        assert not (tmp_path / "two" / "database").exists()
        assert not (tmp_path / "two" / "checkpoint").exists()
