"""Measure cheat codes of a development node: snapshots, mining, and one client that waits for each receipt.

    python bench/dev_node.py [--anvil=PATH]

Prints how long a snapshot and a revert take in a chain of 10,000 blocks, and how memory grows over 100,000 such pairs.
Also prints how long 57,600 blocks take, and how many transfers a second one client sends if it waits for each receipt.
With --anvil, the last figure is measured for Anvil too.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from ophion.testing.process import NodeProcess

FIRST = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
OTHER = "0x00000000000000000000000000000000000000d0"
ANVIL_PORT = 18545


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def batch(self, method: str, params: list[Any], count: int) -> list[Any]:
        """Send many requests in one batch; return their results."""
        calls = [{"jsonrpc": "2.0", "id": number, "method": method, "params": params} for number in range(count)]
        return [one["result"] for one in self._send(calls)]

    def ask(self, method: str, *params: Any) -> Any:
        answer = self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert "error" not in answer, answer
        return answer["result"]

    def _send(self, body: Any) -> Any:
        self._connection.request("POST", "/", json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(self._connection.getresponse().read())


def resident_mib(pid: int) -> float:
    """Return the memory of a process (Linux)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def pairs(client: Client, count: int) -> tuple[float, float]:
    """Return the average milliseconds of a snapshot and of a revert. The client waits for each answer."""
    taken = reverted = 0.0
    for _ in range(count):
        begun = time.perf_counter()
        number = client.ask("evm_snapshot")
        middle = time.perf_counter()
        assert client.ask("evm_revert", number)
        taken += middle - begun
        reverted += time.perf_counter() - middle
    return 1000 * taken / count, 1000 * reverted / count


def transfers(client: Client, count: int) -> float:
    """Return transfers per second of one client that waits for each receipt."""
    begun = time.perf_counter()
    for _ in range(count):
        hash = client.ask("eth_sendTransaction", {"from": FIRST, "to": OTHER, "value": "0x1", "gas": "0x5208"})
        while client.ask("eth_getTransactionReceipt", hash) is None:
            pass
    return count / (time.perf_counter() - begun)


def measure_anvil(path: str, count: int) -> float:
    process = subprocess.Popen([path, "--port", str(ANVIL_PORT), "--silent"])
    try:
        time.sleep(2)
        return transfers(Client(ANVIL_PORT), count)
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anvil", help="Anvil's binary")
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--transfers", type=int, default=1000)
    options = parser.parse_args()
    given = ("--preset=anvil", "--rpc-ws-port=0", "--graphql-http-enabled=false", "--page-http-enabled=false")
    with (
        tempfile.TemporaryDirectory() as folder,
        NodeProcess(Path(folder), *given, "--logging=WARN", command=("dev",)) as node,
    ):
        client = Client(node.ports["json-rpc"])
        print(f"transfers, one at a time: {transfers(client, options.transfers):.0f} a second")
        begun = time.perf_counter()
        client.ask("anvil_mine", hex(10_000))
        print(f"10,000 blocks: {time.perf_counter() - begun:.2f} s")
        print("snapshot {:.3f} ms, revert {:.3f} ms after 10,000 blocks".format(*pairs(client, 2000)))
        number = client.ask("evm_snapshot")
        client.ask("anvil_mine", hex(10_000))
        begun = time.perf_counter()
        client.ask("evm_revert", number)
        print(f"revert over 10,000 blocks: {1000 * (time.perf_counter() - begun):.3f} ms")
        before = resident_mib(node.pid)
        pairs(client, options.pairs)
        print(f"memory over {options.pairs} pairs: {before:.1f} MiB, then {resident_mib(node.pid):.1f} MiB")
        begun = time.perf_counter()
        client.ask("anvil_mine", hex(57_600))
        print(f"57,600 blocks: {time.perf_counter() - begun:.2f} s")
    if options.anvil:
        print(f"Anvil: {measure_anvil(options.anvil, options.transfers):.0f} transfers a second, one at a time")


if __name__ == "__main__":
    main()
