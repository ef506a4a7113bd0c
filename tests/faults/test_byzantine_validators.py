"""One Byzantine validator of four, as a real process: blocks continue, there is no fork, and no node stops."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ophion.testing.network import TestNetwork
from ophion.testing.node_process import RpcFailure
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.faults.lying_validator import LiveStrategy, lying_command

LIAR, HONEST = 3, (0, 1, 2)
LARGE_BYTES = 100_000
"""Call data per transaction in bytes. A message with a small body arrives before blocks with such transactions."""


@contextmanager
def loaded(network: TestNetwork, block_bytes: int = 10 * LARGE_BYTES) -> Iterator[None]:
    """Send large transactions during the context: `block_bytes` bytes after each block.

    The transactions go to the Byzantine validator, because the test queries the other nodes.
    """
    is_over = threading.Event()

    def send() -> None:
        nonce, height = 0, -1
        while not is_over.wait(0.05):
            try:
                if (head := network.nodes[LIAR].height) == height:
                    continue
                for _ in range(block_bytes // LARGE_BYTES):
                    raw = legacy_transaction(
                        DEV_KEYS[0], nonce, data=bytes(LARGE_BYTES), gas=2_000_000, gas_price=0, chain_id=1337
                    )
                    network.nodes[LIAR].send(raw)
                    nonce += 1
                height = head
            except (RpcFailure, OSError):
                continue

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("engine", ["ibft2", "qbft"])
def test_a_lying_validator_neither_forks_nor_stops_its_network(tmp_path: Path, engine: str) -> None:
    with TestNetwork(tmp_path, engine, 4, timeout_s=1, launchers={LIAR: lying_command()}) as network:
        network.wait(lambda: min(network.heights(HONEST)) >= 1, 60, "the first block")
        with loaded(network):
            network.grow(2 * len(LiveStrategy), 120, HONEST)
        assert network.agrees(HONEST)
        method = "ibft_getStatus" if engine == "ibft2" else "qbft_getStatus"
        for index in HONEST:
            assert network.nodes[index].is_running
            status = network.nodes[index].rpc(method)
            assert not any("same key" in line or "forked" in line for line in status["explanation"])
            output = network.nodes[index].output()
            assert "Traceback" not in output
            assert "same key" not in output


@pytest.mark.parametrize("engine", ["ibft2", "qbft"])
def test_other_bodies_do_not_stop_the_network(tmp_path: Path, engine: str) -> None:
    launchers = {LIAR: lying_command(LiveStrategy.BODY_SWAP.value)}
    with TestNetwork(tmp_path, engine, 4, timeout_s=1, launchers=launchers) as network:
        network.wait(lambda: min(network.heights(HONEST)) >= 1, 60, "the first block")
        with loaded(network):
            outputs = (network.nodes[index].output for index in HONEST)
            for output in outputs:
                network.wait(lambda: "wrong body" in output(), 60, "a proposal with a wrong body")  # noqa: B023
            network.grow(6, 60, HONEST)
        assert network.agrees(HONEST)
