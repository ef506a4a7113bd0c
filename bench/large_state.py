"""Measure what a large state costs: python bench/large_state.py [--accounts 1000000] [--slots 3000000] [--rate 4000]

The script measures a network of one IBFT 2.0 validator with an empty state. Then contracts create the accounts and
storage slots, and the script measures the network again. Figures: processor time per transfer (half of the transfers go
to new accounts), delay of blocks, latency of balance requests, anonymous memory, and time from a restart to the first
answer. Prints JSON lines. The full size takes some minutes and two gigabytes of disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from lateness import OPTIONS, measure

from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction

ACCOUNTS_A_CALL = 1_000
SLOTS_A_CALL = 2_000
SLOTS_A_CONTRACT = 100_000
CALLS_AHEAD = 64
CALL_GAS = 200_000_000

LOOP = "600035602035810190 5b {body} 600101 818110 6009 57 00"
"""EVM code that runs the body for consecutive numbers. The input has the first number and the count."""
PAY = LOOP.format(body="6000808080 6001 85 6000 f1 50")
"""EVM code that sends one wei to the address of each number."""
STORE = LOOP.format(body="8080 55")
"""EVM code that stores each number in the slot with that number."""


def creation(runtime: str) -> bytes:
    code = bytes.fromhex(runtime.replace(" ", ""))
    return bytes.fromhex(f"60{len(code):02x}80600b6000396000f3") + code


class Owner:
    """The sender of all transactions, with its next nonce."""

    def __init__(self, node: NodeProcess) -> None:
        self.node = node
        self.key = DEV_KEYS[0]
        self.nonce = 0
        self.waiting: list[str] = []

    def send(self, to: bytes | None, data: bytes, value: int = 0) -> str:
        raw = legacy_transaction(
            self.key, self.nonce, to=to, data=data, value=value, gas=CALL_GAS, gas_price=0, chain_id=CHAIN_ID
        )
        self.nonce += 1
        self.waiting.append(self.node.send(raw))
        if len(self.waiting) >= CALLS_AHEAD:
            self.wait()
        return self.waiting[-1] if self.waiting else ""

    def wait(self) -> None:
        if self.waiting:
            receipt = self.node.receipt(self.waiting[-1], 60)
            assert receipt["status"] == "0x1", receipt
            self.waiting.clear()

    def deploy(self, runtime: str) -> bytes:
        self.wait()
        self.send(None, creation(runtime))
        receipt = self.node.receipt(self.waiting.pop(), 60)
        return bytes.fromhex(receipt["contractAddress"][2:])


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


def fill(node: NodeProcess, accounts: int, slots: int) -> float:
    """Make accounts and slots, and return the seconds taken."""
    began, owner = time.perf_counter(), Owner(node)
    payer = owner.deploy(PAY)
    for first in range(0, accounts, ACCOUNTS_A_CALL):
        owner.send(payer, words((1 << 64) + first, ACCOUNTS_A_CALL), ACCOUNTS_A_CALL)
    for _ in range(0, slots, SLOTS_A_CONTRACT):
        keeper = owner.deploy(STORE)
        for first in range(0, SLOTS_A_CONTRACT, SLOTS_A_CALL):
            owner.send(keeper, words(1 + first, SLOTS_A_CALL))
    owner.wait()
    return time.perf_counter() - began


def anonymous_mb(node: NodeProcess) -> int:
    lines = Path(f"/proc/{node.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) // 1024


def restart(node: NodeProcess) -> float:
    """Restart the node, and return the seconds from the start of the process to its first answer."""
    node.stop()
    began = time.perf_counter()
    node.start()
    node.rpc("eth_blockNumber")
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=int, default=1_000_000)
    parser.add_argument("--slots", type=int, default=3_000_000)
    parser.add_argument("--rate", type=float, default=4000)
    parser.add_argument("--seconds", type=float, default=8)
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="ophion-large-") as path,
        TestNetwork(Path(path), "ibft2", 1, options=OPTIONS) as network,
    ):
        (node,) = network.nodes

        def report(what: str) -> None:
            found = asyncio.run(measure(node, "ibft2", chosen.rate, chosen.seconds))
            print(json.dumps({"state": what, "anonymous_mb": anonymous_mb(node), **found}), flush=True)

        report("empty")
        took = fill(node, chosen.accounts, chosen.slots)
        size = sum(one.stat().st_blocks * 512 for one in network.data_path(0).rglob("*") if one.is_file())
        print(json.dumps({"filled_s": round(took), "disk_mb": size >> 20, "anonymous_mb": anonymous_mb(node)}))
        report("large")
        print(json.dumps({"restart_s": [round(restart(node), 3) for _ in range(5)]}), flush=True)
        report("large, after a restart")


if __name__ == "__main__":
    main()
