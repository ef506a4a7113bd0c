"""QBFT with GoQuorum: two validators of each client on one chain. Needs GOQUORUM=path/to/its/geth.

They take turns, one of each side is killed and comes back, votes of both sides count, and a validator that was voted in
and never comes costs little. `OPHION_FAULTS=long` lets the network make 200 blocks.
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


class Mixed:
    """Two validators of each client, and a node of ours that follows."""

    OURS = (0, 1, 4)

    def __init__(self, path: Path) -> None:
        self.network = TestNetwork(path, "qbft", 4, followers=1)
        genesis = json.loads(self.network.genesis_file.read_text())
        self.network.genesis_file.write_text(json.dumps({**genesis, "gasLimit": hex(GAS_LIMIT)}))
        self.theirs = [GoQuorum(self.network, 2), GoQuorum(self.network, 3)]

    def __enter__(self) -> Mixed:
        for one in self.theirs:
            one.start()
        for index in self.OURS:
            self.network.nodes[index].start()
        self.network.wait(lambda: min(self.network.heights(self.OURS)) >= 2, 60, "the second block")
        return self

    def __exit__(self, *reason: object) -> None:
        for one in self.theirs:
            one.kill()
        for index in self.OURS:
            if self.network.nodes[index].is_running:
                self.network.nodes[index].kill()

    def vote(self, candidate: str, adds: bool) -> None:
        """Let all four vote, and wait until that has its effect."""
        for index in (0, 1):
            self.network.nodes[index].rpc("qbft_proposeValidatorVote", candidate, adds)
        for one in self.theirs:
            one.rpc("istanbul_propose", candidate, adds)
        self.network.wait(lambda: (candidate in self.validators()) is adds, 120, f"the vote ({adds})")

    def validators(self) -> list[str]:
        listed: list[str] = self.network.nodes[0].rpc("qbft_getValidatorsByBlockNumber", "latest")
        return listed

    def makers(self, first: int, count: int) -> Counter[str]:
        """Who made these blocks."""
        blocks = (self.network.nodes[0].rpc("eth_getBlockByNumber", hex(first + n), False) for n in range(count))
        return Counter(block["miner"] for block in blocks)

    def check_agreement(self) -> None:
        """All six have the same block, a moment ago."""
        height = min(self.network.heights(self.OURS)) - 1
        deadline = time.monotonic() + 30
        while any(int(one.rpc("eth_blockNumber"), 16) < height for one in self.theirs):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        hashes = {self.network.block_hash(index, height) for index in self.OURS}
        hashes |= {one.rpc("eth_getBlockByNumber", hex(height), False)["hash"] for one in self.theirs}
        assert len(hashes) == 1


def address_between(low: bytes, high: bytes) -> bytes:
    """The address of somebody nobody has seen, whose turn comes between two others."""
    return next(key.address for key in map(member_key, range(2000, 9999)) if low < key.address < high)


def test_two_of_each_make_one_chain(tmp_path: Path) -> None:
    with Mixed(tmp_path) as mixed:
        network, ours, theirs = mixed.network, mixed.OURS, mixed.theirs
        first = network.height(0)
        network.grow(BLOCKS, 60 + 3 * BLOCKS, ours)
        made = mixed.makers(first, BLOCKS)
        assert len(made) == 4
        assert max(made.values()) - min(made.values()) <= max(2, BLOCKS // 20), made
        # one of each side is killed and comes back
        network.kill(1)
        network.grow(5, 60, (0,))
        network.nodes[1].start()
        network.grow(3, 60, ours)
        theirs[0].kill()
        network.grow(5, 60, ours)
        theirs[0].start()
        network.grow(4, 60, ours)
        # votes of both sides count: they add the node that has followed so far, and remove it again
        fifth = "0x" + network.keys[4].address.hex()
        mixed.vote(fifth, True)
        mixed.vote(fifth, False)
        mixed.check_agreement()


@pytest.mark.parametrize(("successor", "whose"), [(1, "ours"), (2, "theirs")])
def test_a_validator_that_is_voted_in_and_never_comes(tmp_path: Path, successor: int, whose: str) -> None:
    """All four that are there are needed from then on, and every fifth turn falls to whoever comes next."""
    with Mixed(tmp_path) as mixed:
        network = mixed.network
        absent = "0x" + address_between(network.keys[successor - 1].address, network.keys[successor].address).hex()
        mixed.vote(absent, True)
        first, began = network.height(0), time.monotonic()
        network.grow(BLOCKS, 60 + 5 * BLOCKS, mixed.OURS)
        took = time.monotonic() - began
        made = mixed.makers(first + 1, BLOCKS)
        print(f"{BLOCKS} blocks with an absent validator in {took:.1f} s, made by {sorted(made.values())}")
        assert len(made) == 4
        mixed.vote(absent, False)
        network.grow(4, 60, mixed.OURS)
        mixed.check_agreement()
