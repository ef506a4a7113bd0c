"""Clique with geth: two signers of each client on one chain. Needs GETH=path/to/geth (1.13, the last with Clique).

They make blocks together and votes of both sides count. `OPHION_FAULTS=long` lets the network make 200 blocks.
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

from ophion.testing.network import CHAIN_ID, TestNetwork, free_ports, member_key

GETH = os.environ.get("GETH", "")
BLOCKS = 200 if os.environ.get("OPHION_FAULTS") == "long" else 16
GAS_LIMIT = 30_000_000

pytestmark = pytest.mark.skipif(not shutil.which(GETH), reason="GETH does not name a geth binary")


class GethSigner:
    """One geth signer as a process; its account is the key of its place in the network."""

    def __init__(self, network: TestNetwork, index: int) -> None:
        key = network.keys[index]
        self._address = "0x" + key.address.hex()
        self._port = network.ports[index]
        self._rpc, self._auth = free_ports(2)
        self._path = network.path / f"geth{index}"
        self._process: subprocess.Popen[bytes] | None = None
        (self._path / "geth").mkdir(parents=True)
        (self._path / "geth" / "nodekey").write_text(key.secret().hex())
        (self._path / "config.toml").write_text(f"[Node.P2P]\nStaticNodes = {json.dumps(network.neighbours(index))}\n")
        secret, self._password = self._path / "secret", self._path / "password"
        secret.write_text(key.secret().hex())
        self._password.write_text("test")
        data = ["--datadir", str(self._path)]
        for words in (
            ["init", str(network.genesis_file)],
            ["account", "import", "--lightkdf", "--password", str(self._password), str(secret)],
        ):
            subprocess.run([GETH, *data, *words], check=True, capture_output=True, timeout=60)

    def start(self) -> None:
        options = {
            "--config": self._path / "config.toml",
            "--datadir": self._path,
            "--syncmode": "full",
            "--networkid": CHAIN_ID,
            "--port": self._port,
            "--http.port": self._rpc,
            "--authrpc.port": self._auth,
            "--http.api": "eth,net,clique",
            "--nat": "none",
            "--unlock": self._address,
            "--password": self._password,
            "--miner.etherbase": self._address,
            "--miner.gaslimit": GAS_LIMIT,
        }
        flags = [word for pair in options.items() for word in map(str, pair)]
        switches = ["--mine", "--http", "--nodiscover", "--ipcdisable", "--allow-insecure-unlock"]
        with (self._path / "log").open("ab") as log:
            self._process = subprocess.Popen([GETH, *flags, *switches], stdout=log, stderr=subprocess.STDOUT)

    def rpc(self, method: str, *params: Any) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._rpc, timeout=10)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read()).get("result")

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(15)


def test_two_of_each_make_one_chain(tmp_path: Path) -> None:
    network = TestNetwork(tmp_path, "clique", 4)
    genesis = json.loads(network.genesis_file.read_text())
    network.genesis_file.write_text(json.dumps({**genesis, "gasLimit": hex(GAS_LIMIT)}))
    ours, theirs = (0, 1), [GethSigner(network, 2), GethSigner(network, 3)]
    nodes = network.nodes
    try:
        for one in theirs:
            one.start()
        for index in ours:
            nodes[index].start()
        network.wait(lambda: min(network.heights(ours)) >= 3, 90, "the third block")
        first = network.height(0)
        network.grow(BLOCKS, 90 + 4 * BLOCKS, ours)
        signers = nodes[0].rpc("clique_getSignerMetrics", hex(first), hex(first + BLOCKS))
        made = Counter({one["address"]: int(one["proposedBlockCount"], 16) for one in signers})
        assert all(made["0x" + key.address.hex()] > 0 for key in network.keys), made
        # votes of both sides count: three of four add a fifth, three of five remove it again
        fifth = "0x" + member_key(77).address.hex()
        for adds in (True, False):
            for index in ours:
                nodes[index].rpc("clique_propose", fifth, adds)
            for one in theirs:
                one.rpc("clique_propose", fifth, adds)
            network.wait(lambda: (fifth in nodes[0].rpc("clique_getSigners")) is adds, 120, f"the vote ({adds})")  # noqa: B023
        network.grow(6, 60, ours)
        settled = min(network.heights(ours)) - 4
        deadline = time.monotonic() + 60
        while any(int(one.rpc("eth_blockNumber"), 16) < settled for one in theirs):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        hashes = {network.block_hash(index, settled) for index in ours}
        hashes |= {one.rpc("eth_getBlockByNumber", hex(settled), False)["hash"] for one in theirs}
        assert len(hashes) == 1
    finally:
        for one in theirs:
            one.kill()
        for index in ours:
            if nodes[index].is_running:
                nodes[index].kill()
