"""Measure how fast a node sends traces.

    python bench/trace.py [--geth PATH] [--steps 1000000] [--transactions 4000] [--rounds 2]

Starts a development node and mines one transaction of many steps and one block of many transactions. Then it reads
their traces: struct logs with stack and storage and without memory, then callTracer for the block. Prints bytes and
steps per second, processor time of all threads of the node, memory growth of the process, and the latency of other
requests meanwhile. With `--geth`, geth in development mode does the same work afterwards.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, fee_transaction

STEPS_PER_ROUND = 7
NO_MEMORY = {"disableMemory": True, "disableStack": False, "disableStorage": False}


def loop_code(steps: int) -> bytes:
    """Return code that stores a word, pushes some stack items, then counts down."""
    rounds = steps // STEPS_PER_ROUND
    begin = bytes.fromhex("602a600055") + b"\x60\x07" * 8 + b"\x62" + rounds.to_bytes(3, "big")
    target = len(begin)
    return begin + bytes.fromhex("5b6001900380") + b"\x60" + bytes([target]) + b"\x57\x00"


def creation_of(code: bytes) -> bytes:
    """Return init code that deploys this code."""
    size = len(code)
    return bytes.fromhex(f"60{size:02x}600c60003960{size:02x}6000f3") + code


@dataclass
class Measured:
    """Figures of one answer. The client reads and discards the answer."""

    size: int
    seconds: float
    cpu_s: float
    grown_mb: float
    slowest_ms: float


class Client:
    """A client of one node: Ophion or another."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self.pid = pid
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def rpc(self, method: str, *params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self._connection.request("POST", "/", body, {"Content-Type": "application/json"})
        answer = json.loads(self._connection.getresponse().read())
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']}")
        return answer["result"]

    def receipt(self, hash: str) -> Any:
        for _ in range(3000):
            receipt = self.rpc("eth_getTransactionReceipt", hash)
            if receipt is not None:
                return receipt
            time.sleep(0.01)
        raise SystemExit(f"{hash} was not mined")

    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024

    def cpu_s(self) -> float:
        """Return the processor time of all threads so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self, method: str, *params: Any) -> Measured:
        """Send a request and read the answer, while another connection requests the block number all the time."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        watcher = Watcher(self)
        before = self.rss_mb()
        with socket.create_connection(("127.0.0.1", self.port)) as stream:
            watcher.start()
            began, spent_s = time.perf_counter(), self.cpu_s()
            stream.sendall(head % len(body) + body)
            size = read_answer(stream)
            seconds, spent_s = time.perf_counter() - began, self.cpu_s() - spent_s
        watcher.stop()
        return Measured(size, seconds, spent_s, watcher.most_mb - before, watcher.slowest_ms)


def read_answer(stream: socket.socket) -> int:
    """Read an answer, by length or in chunks, and discard it. Returns its number of bytes."""
    buffer = bytearray(1 << 20)
    view = memoryview(buffer)
    received = stream.recv(65536)
    while b"\r\n\r\n" not in received:
        received += stream.recv(65536)
    head, _, rest = received.partition(b"\r\n\r\n")
    size, tail = len(rest), rest[-5:]
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), None)
    while size < length if length is not None else tail != b"0\r\n\r\n":
        count = stream.recv_into(buffer)
        if count == 0:
            raise SystemExit("the answer was cut off")
        size += count
        tail = (tail + bytes(view[max(0, count - 5) : count]))[-5:]
    return size


class Watcher(threading.Thread):
    """Sends small requests all the time and records the memory of the process."""

    def __init__(self, client: Client) -> None:
        super().__init__(daemon=True)
        self._client = client
        self._is_over = threading.Event()
        self.slowest_ms = 0.0
        self.most_mb = client.rss_mb()

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._client.port, timeout=120)
        body = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
        while not self._is_over.is_set():
            began = time.perf_counter()
            connection.request("POST", "/", body, {"Content-Type": "application/json"})
            connection.getresponse().read()
            self.slowest_ms = max(self.slowest_ms, (time.perf_counter() - began) * 1000)
            self.most_mb = max(self.most_mb, self._client.rss_mb())
            time.sleep(0.005)
        connection.close()

    def stop(self) -> None:
        self._is_over.set()
        self.join()


def report(name: str, steps: int, transactions: int, client: Client, hash: str, block: str, rounds: int) -> None:
    for _ in range(rounds):
        show(name, "struct logs", steps, "steps", client.measure("debug_traceTransaction", hash, NO_MEMORY))
    for _ in range(rounds):
        tracer = {"tracer": "callTracer"}
        show(
            name, "callTracer", transactions, "transactions", client.measure("debug_traceBlockByNumber", block, tracer)
        )


def show(name: str, what: str, count: int, unit: str, seen: Measured) -> None:
    speed = seen.size / seen.seconds / 1e6
    print(
        f"{name:7} {what:12} {seen.size / 1e6:7.1f} MB in {seen.seconds:5.2f} s {speed:7.1f} MB/s"
        f" {count / seen.seconds:11,.0f} {unit}/s  cpu {seen.cpu_s:.2f} s"
        f"  grown {seen.grown_mb:.1f} MB  others waited {seen.slowest_ms:.1f} ms"
    )


def ours(steps: int, transactions: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # the pool must hold all transactions, because the node never mines a transaction that the pool evicts
        pool = f"--tx-pool-max-size={max(4096, transactions + 1)}"
        options = [pool, "--rpc-http-api=ETH,NET,WEB3,DEBUG,MINER", "--target-gas-limit=200000000"]
        options += ["--rpc-ws-enabled=false", "--graphql-http-enabled=false"]
        with NodeProcess(Path(folder) / "data", *options, command=("dev",)) as node:
            client = Client(node.ports["json-rpc"], node.pid)
            key, other = DEV_KEYS[0], DEV_KEYS[1]
            price: dict[str, Any] = {"max_fee": 10**10, "tip": 10**9}

            def send(nonce: int, **fields: Any) -> str:
                return str(
                    client.rpc("eth_sendRawTransaction", "0x" + fee_transaction(key, nonce, **fields, **price).hex())
                )

            deployed = client.receipt(send(0, to=None, gas=1_000_000, data=creation_of(loop_code(steps))))
            contract = bytes.fromhex(deployed["contractAddress"][2:])
            traced = client.receipt(send(1, to=contract, gas=8_000_000))
            client.rpc("miner_stop")
            raws = [
                fee_transaction(other, nonce, to=(0x1000 + nonce).to_bytes(20, "big"), value=1, **price)
                for nonce in range(transactions)
            ]
            hashes = [client.rpc("eth_sendRawTransaction", "0x" + raw.hex()) for raw in raws]
            client.rpc("miner_start")
            client.receipt(hashes[-1])
            # a block holds at most one second of work, so the transactions may be in several blocks
            blocks = (client.receipt(hash)["blockNumber"] for hash in hashes[:: max(1, transactions // 20)])
            counts = {block: int(client.rpc("eth_getBlockTransactionCountByNumber", block), 16) for block in blocks}
            block = max(counts, key=lambda one: counts[one])
            report("ophion", steps, counts[block], client, traced["transactionHash"], block, rounds)


def geth(path: str, steps: int, transactions: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        found.close()
        command = [
            path,
            "--dev",
            "--datadir",
            folder,
            "--http",
            "--http.port",
            str(port),
            "--http.api",
            "eth,debug,miner,net",
        ]
        command += ["--dev.gaslimit", "200000000", "--dev.period", "4", "--txpool.accountqueue", "8192"]
        command += [
            "--txpool.accountslots",
            "8192",
            "--nodiscover",
            "--maxpeers",
            "0",
            "--port",
            "0",
            "--authrpc.port",
            "0",
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            client = Client(port, process.pid)
            for _ in range(200):
                try:
                    sender = client.rpc("eth_accounts")[0]
                    break
                except (OSError, IndexError):
                    time.sleep(0.1)
            deploy = {"from": sender, "gas": "0xf4240", "data": "0x" + creation_of(loop_code(steps)).hex()}
            contract = client.receipt(client.rpc("eth_sendTransaction", deploy))["contractAddress"]
            call = {"from": sender, "to": contract, "gas": hex(8_000_000)}
            traced = client.receipt(client.rpc("eth_sendTransaction", call))
            hashes = []
            nonce = int(client.rpc("eth_getTransactionCount", sender, "pending"), 16)
            for number in range(transactions):
                transfer = {"from": sender, "to": "0x" + (0x1000 + number).to_bytes(20, "big").hex(), "value": "0x1"}
                order = {"gas": "0x5208", "nonce": hex(nonce + number)}
                hashes.append(client.rpc("eth_sendTransaction", {**transfer, **order}))
            blocks: dict[str, int] = {}
            for hash in hashes[:: max(1, transactions // 200)]:
                number = client.receipt(hash)["blockNumber"]
                blocks[number] = int(client.rpc("eth_getBlockTransactionCountByNumber", number), 16)
            block = max(blocks, key=lambda one: blocks[one])
            report("geth", steps, blocks[block], client, traced["transactionHash"], block, rounds)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--geth", help="path of a geth to compare with")
    arguments.add_argument("--steps", type=int, default=1_000_000)
    arguments.add_argument("--transactions", type=int, default=4000)
    arguments.add_argument("--rounds", type=int, default=2)
    chosen = arguments.parse_args()
    ours(chosen.steps, chosen.transactions, chosen.rounds)
    if chosen.geth:
        geth(chosen.geth, chosen.steps, chosen.transactions, chosen.rounds)
