"""QBFT with GoQuorum: two validators of each client on one chain. Needs GOQUORUM=path/to/its/geth.

They take turns, one of each side is killed and comes back, and votes of both sides count. `OPHION_FAULTS=long` lets
the network make 200 blocks.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.network import CHAIN_ID, TestNetwork, free_ports

GOQUORUM = os.environ.get("GOQUORUM", "")
BLOCKS = 200 if os.environ.get("OPHION_FAULTS") == "long" else 16
GAS_LIMIT = 30_000_000

pytestmark = pytest.mark.skipif(not shutil.which(GOQUORUM), reason="GOQUORUM does not name a GoQuorum binary")


class GoQuorum:
    """One GoQuorum validator as a process."""

    def __init__(self, network: TestNetwork, index: int) -> None:
        self.index = index
        self._port = network.ports[index]
        self._rpc = free_ports(1)[0]
        self._path = network.path / f"goquorum{index}"
        self._environment = {**os.environ, "PRIVATE_CONFIG": "ignore"}
        self._process: subprocess.Popen[bytes] | None = None
        (self._path / "geth").mkdir(parents=True)
        (self._path / "geth" / "nodekey").write_text(network.keys[index].secret().hex())
        for folder in (self._path, self._path / "geth"):
            (folder / "static-nodes.json").write_text(json.dumps(network.neighbours(index)))
        genesis = json.loads(network.genesis_file.read_text())
        options = genesis["config"].pop("qbft")
        options.pop("epochlength")
        dialect = {"policy": 0, "epoch": 30000, "ceil2Nby3Block": 0, "testQBFTBlock": 0, "emptyblockperiodseconds": 1}
        genesis["config"].update({"isQuorum": True, "txnSizeLimit": 64, "qbft": {**options, **dialect}})
        file = network.path / f"goquorum{index}.json"
        file.write_text(json.dumps(genesis))
        made = [GOQUORUM, "--datadir", str(self._path), "init", str(file)]
        subprocess.run(made, env=self._environment, check=True, capture_output=True, timeout=60)

    def start(self) -> None:
        options = {
            "--datadir": self._path,
            "--syncmode": "full",
            "--miner.gasprice": 0,
            "--miner.gaslimit": GAS_LIMIT,
            "--miner.gastarget": GAS_LIMIT,
            "--networkid": CHAIN_ID,
            "--port": self._port,
            "--http.port": self._rpc,
            "--http.api": "eth,net,istanbul",
            "--nat": "none",
        }
        flags = [word for pair in options.items() for word in map(str, pair)]
        command = [GOQUORUM, *flags, "--mine", "--http", "--nodiscover", "--ipcdisable"]
        with (self._path / "log").open("ab") as log:
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=subprocess.STDOUT)

    def rpc(self, method: str, *params: Any) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._rpc, timeout=10)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())["result"]

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(15)


def test_two_of_each_make_one_chain(tmp_path: Path) -> None:
    network = TestNetwork(tmp_path, "qbft", 4, followers=1)
    genesis = json.loads(network.genesis_file.read_text())
    network.genesis_file.write_text(json.dumps({**genesis, "gasLimit": hex(GAS_LIMIT)}))
    ours, theirs = (0, 1, 4), [GoQuorum(network, 2), GoQuorum(network, 3)]
    nodes = network.nodes
    try:
        for one in theirs:
            one.start()
        for index in ours:
            nodes[index].start()
        network.wait(lambda: min(network.heights(ours)) >= 2, 60, "the second block")
        first = network.height(0)
        network.grow(BLOCKS, 60 + 3 * BLOCKS, ours)
        made = Counter(
            nodes[0].rpc("eth_getBlockByNumber", hex(n), False)["miner"] for n in range(first, first + BLOCKS)
        )
        assert len(made) == 4
        assert max(made.values()) - min(made.values()) <= max(2, BLOCKS // 20), made
        # one of each side is killed and comes back
        network.kill(1)
        network.grow(5, 60, (0,))
        nodes[1].start()
        network.grow(3, 60, ours)
        theirs[0].kill()
        network.grow(5, 60, ours)
        theirs[0].start()
        network.grow(4, 60, ours)
        # votes of both sides count: they add the node that has followed so far, and remove it again
        fifth = "0x" + network.keys[4].address.hex()
        listed = lambda: nodes[0].rpc("qbft_getValidatorsByBlockNumber", "latest")  # noqa: E731
        for adds in (True, False):
            for index in (0, 1):
                nodes[index].rpc("qbft_proposeValidatorVote", fifth, adds)
            for one in theirs:
                one.rpc("istanbul_propose", fifth, adds)
            network.wait(lambda: (fifth in listed()) is adds, 120, f"the vote ({adds})")  # noqa: B023
        height = min(network.heights(ours)) - 1
        deadline = time.monotonic() + 30
        while int(theirs[1].rpc("eth_blockNumber"), 16) < height:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        hashes = {network.block_hash(index, height) for index in ours}
        hashes |= {one.rpc("eth_getBlockByNumber", hex(height), False)["hash"] for one in theirs[1:]}
        assert len(hashes) == 1
    finally:
        for one in theirs:
            one.kill()
        for index in ours:
            if nodes[index].is_running:
                nodes[index].kill()
