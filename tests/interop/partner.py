"""Runs another client as a member of a network. Clients derived from geth share a class."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.ports import free_ports
from ophion.testing.wait_for import wait_for

BLOCKS = 200 if os.environ.get("OPHION_FAULTS") == "long" else 16
GAS_LIMIT = 30_000_000
"""Gas limit of mixed networks. Other clients do not accept the gas limit of the default test genesis."""


def mixed_network(network: TestNetwork) -> TestNetwork:
    """Return the same network with a gas limit that every client accepts."""
    genesis = json.loads(network.genesis_file.read_text())
    network.genesis_file.write_text(json.dumps({**genesis, "gasLimit": hex(GAS_LIMIT)}))
    return network


def rpc(port: int, method: str, *params: Any) -> Any:
    """Return the result of a call; None for an error."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    connection.request("POST", "/", body, {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read()).get("result")


class Partner(ABC):
    """A process with one node key of the network."""

    def __init__(self, program: str, network: TestNetwork, index: int, **environment: str) -> None:
        self.path = network.path / f"partner{index}"
        self.path.mkdir()
        self.port = network.ports[index]
        (self.rpc_port,) = free_ports(1)
        self._program = program
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def start(self) -> None:
        """Start or restart the client."""

    @abstractmethod
    def propose(self, candidate: str, adds: bool) -> None:
        """Vote for or against a validator or signer."""

    def command(self, *words: object) -> None:
        """Run another command of the client's program and wait for it."""
        made = [self._program, *map(str, words)]
        subprocess.run(made, env=self._environment, check=True, capture_output=True, timeout=60)

    def launch(self, *words: object) -> None:
        """Start the client; its output goes to `log` in its data path."""
        command = [self._program, *map(str, words)]
        with (self.path / "log").open("ab") as log:
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=subprocess.STDOUT)

    def rpc(self, method: str, *params: Any) -> Any:
        return rpc(self.rpc_port, method, *params)

    @property
    def height(self) -> int:
        return int(self.rpc("eth_blockNumber"), 16)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Stop the client with a signal, so that it closes its database."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(120)

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(15)


class GethPartner(Partner):
    """geth, or a client derived from geth."""

    def __init__(self, program: str, network: TestNetwork, index: int, **environment: str) -> None:
        super().__init__(program, network, index, **environment)
        (self.path / "geth").mkdir()
        (self.path / "geth" / "nodekey").write_text(network.keys[index].secret().hex())

    def command(self, *words: object) -> None:
        super().command("--datadir", self.path, *words)

    def mine(self, options: Mapping[str, object], *switches: str) -> None:
        """Start the client with the common options and these options."""
        options = {
            "--datadir": self.path,
            "--syncmode": "full",
            "--networkid": CHAIN_ID,
            "--port": self.port,
            "--http.port": self.rpc_port,
            "--nat": "none",
            "--miner.gaslimit": GAS_LIMIT,
            **options,
        }
        flags = [word for pair in options.items() for word in pair]
        self.launch(*flags, "--mine", "--http", "--nodiscover", "--ipcdisable", *switches)


def check_agreement(network: TestNetwork, ours: Sequence[int], theirs: Sequence[Partner], number: int) -> None:
    """Wait until all nodes of both clients have the same block at a height."""
    for one in theirs:
        wait_for(lambda one=one: one.height >= number, 60, f"block {number}")  # type: ignore[misc]
    hashes = {network.block_hash(index, number) for index in ours}
    hashes |= {one.rpc("eth_getBlockByNumber", hex(number), False)["hash"] for one in theirs}
    assert len(hashes) == 1


def check_signers(network: TestNetwork, ours: Sequence[int]) -> None:
    """Check that every signer of a Clique network makes some of the next blocks."""
    network.wait(lambda: min(network.heights(ours)) >= 3, 90, "the third block")
    first = network.height(0)
    network.grow(BLOCKS, 90 + 4 * BLOCKS, ours)
    signers = network.nodes[0].rpc("clique_getSignerMetrics", hex(first), hex(first + BLOCKS))
    made = Counter({one["address"]: int(one["proposedBlockCount"], 16) for one in signers})
    print(f"clique: {BLOCKS} blocks, made by {sorted(made.values())}")
    assert all(made["0x" + key.address.hex()] > 0 for key in network.keys), made


def end_all(network: TestNetwork, ours: Sequence[int], theirs: Sequence[Partner]) -> None:
    """Stop all processes."""
    for one in theirs:
        one.kill()
    for index in ours:
        if network.nodes[index].is_running:
            network.nodes[index].kill()
