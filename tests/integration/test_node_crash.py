"""After kill -9 at any moment, the head is valid, no mined transaction is lost, and the node restores local pending
transactions.

`OPHION_CRASH_ROUNDS` sets the number of kills.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from pathlib import Path

from ophion.testing.node_process import COMMAND, MINING, NodeProcess, environment
from ophion.testing.signing import DEV_KEYS, legacy_transaction

ROUNDS = int(os.environ.get("OPHION_CRASH_ROUNDS", "3"))
SENDERS = DEV_KEYS[1:]


class Load:
    """Clients that send as fast as they can and record the answers."""

    def __init__(self, port: int, nonces: dict[int, int]) -> None:
        self.port = port
        self.nonces = nonces
        self.accepted: list[str] = []
        self.mined: dict[str, str] = {}
        self._threads = [threading.Thread(target=self._run, args=(index,)) for index in range(len(SENDERS))]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _run(self, index: int) -> None:
        client = NodeProcess(Path("unused"))
        client.ports = {"json-rpc": self.port}
        waiting: list[str] = []
        try:
            while True:
                raw = legacy_transaction(SENDERS[index], self.nonces[index], value=1, to=bytes([index + 1]) * 20)
                hash = client.send(raw)
                self.nonces[index] += 1
                self.accepted.append(hash)
                waiting.append(hash)
                if len(waiting) >= 4:
                    receipt = client.rpc("eth_getTransactionReceipt", waiting[0])
                    if receipt is not None:
                        self.mined[waiting.pop(0)] = receipt["blockHash"]
        except (OSError, ValueError, ConnectionError):
            return  # the node was killed while it answered
        finally:
            client._forget_connection()


def test_killing_the_node_under_load_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(20_26)
    accepted: set[str] = set()
    mined: dict[str, str] = {}
    nonces = dict.fromkeys(range(len(SENDERS)), 0)
    node = NodeProcess(tmp_path / "data", *MINING, "--tx-pool-max-size=50000")
    for _ in range(ROUNDS):
        with node:
            for hash, block in mined.items():
                receipt = node.rpc("eth_getTransactionReceipt", hash)
                assert receipt is not None, f"{hash} was mined and is gone"
                assert receipt["blockHash"] == block
            for hash in accepted:
                mined[hash] = node.receipt(hash)["blockHash"]
            for index, key in enumerate(SENDERS):
                count = int(node.rpc("eth_getTransactionCount", "0x" + key.address.hex(), "latest"), 16)
                # the node may have accepted a transaction without answering, because it was killed
                assert count >= nonces[index]
                nonces[index] = count
            load = Load(node.ports["json-rpc"], nonces)
            load.start()
            time.sleep(chance.uniform(0.05, 0.5))
            node.kill()
            load.join()
            accepted = set(load.accepted)
            mined.update(load.mined)
    with node:
        for hash in accepted:
            node.receipt(hash)
        assert node.stop() == 0
    checked = subprocess.run(
        [*COMMAND, "storage", "check", f"--data-path={tmp_path / 'data'}"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_local_pending_transactions_return_after_a_kill(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data", "--network=dev", "--rpc-http-api=ETH,TXPOOL,MINER")
    with node:
        hashes = [node.send(legacy_transaction(DEV_KEYS[1], nonce)) for nonce in (0, 1, 2, 5)]
        node.kill()
    with node:
        assert node.rpc("txpool_clientStatistics")["localCount"] == 4
        assert {entry["hash"] for entry in node.rpc("txpool_clientTransactions")} == set(hashes)
        assert node.rpc("txpool_status") == {"pending": "0x3", "queued": "0x1"}
        node.rpc("miner_setCoinbase", "0x" + DEV_KEYS[0].address.hex())
        assert node.rpc("miner_start") is True
        for hash in hashes[:3]:
            node.receipt(hash)
        assert node.rpc("txpool_status") == {"pending": "0x0", "queued": "0x1"}
