"""Measure cheat codes of a development node: snapshots, mining and one client that waits for each receipt.

    python bench/dev_node.py [--anvil=PATH]

Prints four figures: the time of a snapshot and of a revert in a chain of 10,000 blocks; the growth of memory over
100,000 pairs of snapshot and revert; the time of 57,600 blocks; token transfers per second of one client. The client
waits for each receipt. It is a plain keep-alive client, and web3.py where it is installed. With --anvil, both nodes are
measured alternately. The best round counts, with the node's processor time per transfer.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ophion.testing.node_process import NodeProcess

FIRST = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
OTHER = "0x00000000000000000000000000000000000000d0"
ANVIL_PORT = 18549


class Client:
    """One keep-alive HTTP connection to a node."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def batch(self, method: str, params: list[Any], count: int) -> list[Any]:
        """Send many requests in one body and return their results."""
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
    """Return the resident memory of a process in MiB (Linux)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def pairs(client: Client, count: int) -> tuple[float, float]:
    """Return the milliseconds of a snapshot and of a revert, for one client that waits for each answer."""
    taken = reverted = 0.0
    for _ in range(count):
        begun = time.perf_counter()
        number = client.ask("evm_snapshot")
        middle = time.perf_counter()
        assert client.ask("evm_revert", number)
        taken += middle - begun
        reverted += time.perf_counter() - middle
    return 1000 * taken / count, 1000 * reverted / count


TOKEN = (
    "0x6fffffffffffffffffffffffffffffffff3355"  # the code sets the creator's token balance to 2^128 - 1
    "604580601e6000396000f3"
    "602435803354033355600435805482019055600052"  # the code moves an amount from the caller to another account
    "7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60206000a1"
    "600160005260206000f3"
)
ABI = [
    {
        "type": "function",
        "name": "transfer",
        "stateMutability": "nonpayable",
        "inputs": [{"name": "to", "type": "address"}, {"name": "amount", "type": "uint256"}],
        "outputs": [{"name": "", "type": "bool"}],
    }
]
KEY = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
"""Private key of the test mnemonic's first account: public, for tests only."""


def deploy_token(client: Client) -> str:
    hash = client.ask("eth_sendTransaction", {"from": FIRST, "data": TOKEN, "gas": "0x100000"})
    while (receipt := client.ask("eth_getTransactionReceipt", hash)) is None:
        pass
    address: str = receipt["contractAddress"]
    return address


def token_transfers(client: Client, token: str, count: int) -> float:
    """Return the transfers per second of a plain client that signs, sends and requests the receipt."""
    from eth_account import Account

    nonce = int(client.ask("eth_getTransactionCount", FIRST, "latest"), 16)
    chain_id = int(client.ask("eth_chainId"), 16)
    data = "0xa9059cbb" + OTHER[2:].rjust(64, "0") + f"{1:064x}"
    raws = [
        Account.sign_transaction(
            {
                "to": token[:2] + _checksum(token)[2:],
                "data": data,
                "gas": 100_000,
                "maxFeePerGas": 10**10,
                "maxPriorityFeePerGas": 10**9,
                "nonce": nonce + number,
                "chainId": chain_id,
            },
            KEY,
        ).raw_transaction.hex()
        for number in range(count)
    ]
    begun = time.perf_counter()
    for raw in raws:
        hash = client.ask("eth_sendRawTransaction", "0x" + raw.removeprefix("0x"))
        while client.ask("eth_getTransactionReceipt", hash) is None:
            pass
    return count / (time.perf_counter() - begun)


def web3_transfers(port: int, token: str, count: int) -> float:
    """Return the transfers per second of web3.py with its own defaults. The node signs."""
    from web3 import Web3

    web3 = Web3(Web3.HTTPProvider(f"http://127.0.0.1:{port}"))
    contract = web3.eth.contract(address=_checksum(token), abi=ABI)
    sender, other = _checksum(FIRST), _checksum(OTHER)
    begun = time.perf_counter()
    for _ in range(count):
        hash = contract.functions.transfer(other, 1).transact({"from": sender})
        assert web3.eth.wait_for_transaction_receipt(hash)["status"] == 1
    return count / (time.perf_counter() - begun)


def _checksum(address: str) -> Any:
    from eth_utils import to_checksum_address

    return to_checksum_address(address)


def processor_s(pid: int) -> float:
    """Return the processor time of a process and its threads (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Node(NamedTuple):
    """A running node."""

    name: str
    port: int
    pid: int


def measure_in_turns(nodes: list[Node], count: int, rounds: int) -> None:
    """Print the best round of each node and client."""
    clients: list[tuple[str, Callable[[Node, str], float]]] = [
        ("plain client", lambda node, token: token_transfers(Client(node.port), token, count))
    ]
    if find_spec("web3") is not None:
        clients.append(("web3.py", lambda node, token: web3_transfers(node.port, token, count)))
    tokens = {node: deploy_token(Client(node.port)) for node in nodes}
    for name, run in clients:
        best: dict[Node, tuple[float, float]] = {}
        for _ in range(rounds):
            for node in nodes:
                before = processor_s(node.pid)
                rate = run(node, tokens[node])
                cost_ms = 1000 * (processor_s(node.pid) - before) / count
                best[node] = max(best.get(node, (0.0, 0.0)), (rate, cost_ms))
        for node, (rate, cost_ms) in best.items():
            print(f"{node.name}: token transfers, {name}: {rate:.0f} a second, {cost_ms:.2f} ms of processor time each")
        if len(nodes) > 1:
            print(f"{name}: {best[nodes[0]][0] / best[nodes[1]][0]:.2f} times {nodes[1].name}")


@contextmanager
def anvil(path: str) -> Iterator[Node]:
    process = subprocess.Popen([path, "--port", str(ANVIL_PORT), "--silent"])
    try:
        time.sleep(2)
        yield Node("Anvil", ANVIL_PORT, process.pid)
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anvil", help="Anvil's binary")
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--transfers", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--transfers-only", action="store_true")
    options = parser.parse_args()
    given = ("--preset=anvil", "--rpc-ws-port=0", "--graphql-http-enabled=false", "--page-http-enabled=false")
    with (
        tempfile.TemporaryDirectory() as folder,
        NodeProcess(Path(folder), *given, "--logging=WARN", command=("dev",)) as node,
    ):
        client = Client(node.ports["json-rpc"])
        own = Node("Ophion", node.ports["json-rpc"], node.pid)
        with ExitStack() as others:
            nodes = [own, *([others.enter_context(anvil(options.anvil))] if options.anvil else [])]
            measure_in_turns(nodes, options.transfers, options.rounds)
        if options.transfers_only:
            return
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


if __name__ == "__main__":
    main()
