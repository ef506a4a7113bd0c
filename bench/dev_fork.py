"""Measure a fork that reads many contracts: requests to the forked node and wall time, compared with Anvil.

    python bench/dev_fork.py [--anvil=PATH] [--contracts=5000] [--shuffle=SEED]

The source is a development node with counters, each with its own storage. The script calls the counters one by one
(`one by one`), then 50 at a time (`together`), and sends a transaction to every tenth counter. A proxy counts requests
and calls. With --shuffle, the script uses the counters in a random order, so the fork cannot predict the next counter
from the order of their creation.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ophion.testing.node_process import NodeProcess

FIRST = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
QUIET = ("--rpc-ws-port=0", "--graphql-http-enabled=false", "--page-http-enabled=false", "--logging=WARN")
RUNTIME = "60015460005401600101806000556000526020" + "6000f3"
"""Code that returns slot 0 + slot 1 + 1 and stores the sum in slot 0."""
ANVIL_PORT = 18547


def creation() -> str:
    size = len(RUNTIME) // 2
    start = f"602a600055600760015560{size:02x}80"
    tail = "6000396000f3"
    offset = len(start + "60ff" + tail) // 2
    return f"0x{start}60{offset:02x}{tail}{RUNTIME}"


class Proxy(ThreadingHTTPServer):
    """Forwards requests to the forked node and counts them."""

    request_queue_size = 128  # Anvil opens a connection for each request of a batch
    target: int
    requests = 0
    calls = 0


class Forwarding(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # write each response at once, so that Nagle's algorithm does not delay a second write
    server: Proxy

    def setup(self) -> None:
        super().setup()
        self._onward = http.client.HTTPConnection("127.0.0.1", self.server.target, timeout=600)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked = json.loads(body)
        self.server.requests += 1
        self.server.calls += len(asked) if isinstance(asked, list) else 1
        self._onward.request("POST", "/", body, {"Content-Type": "application/json"})
        text = self._onward.getresponse().read()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


class Client:
    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def send(self, body: Any) -> Any:
        self._connection.request("POST", "/", json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(self._connection.getresponse().read())

    def ask(self, method: str, *params: Any) -> Any:
        answer = self.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert "error" not in answer, answer
        return answer["result"]


def deploy(client: Client, count: int) -> list[str]:
    """Deploy the counters and return their addresses."""
    addresses: list[str] = []
    client.ask("anvil_setBlockGasLimit", hex(10**9))
    for start in range(0, count, 250):
        share = min(250, count - start)
        sent = {"from": FIRST, "data": creation(), "gas": "0x40000"}
        calls = [
            {"jsonrpc": "2.0", "id": number, "method": "eth_sendTransaction", "params": [sent]}
            for number in range(share)
        ]
        hashes = [one["result"] for one in client.send(calls)]
        addresses += [client.ask("eth_getTransactionReceipt", hash)["contractAddress"] for hash in hashes]
    return addresses


def script(client: Client, addresses: list[str], mode: str) -> list[Any]:
    """Call all counters in one of the modes (one by one or together) and return the results of the calls."""
    found: list[Any] = []
    if mode == "one by one":
        found += [client.ask("eth_call", {"to": address, "data": "0x01"}, "latest") for address in addresses]
    else:
        for start in range(0, len(addresses), 50):
            calls = [
                {"jsonrpc": "2.0", "id": number, "method": "eth_call", "params": [{"to": to, "data": "0x01"}, "latest"]}
                for number, to in enumerate(addresses[start : start + 50])
            ]
            answers = sorted(client.send(calls), key=lambda one: one["id"])
            found += [one["result"] for one in answers]
    for address in addresses[::10]:
        sent = client.ask("eth_sendTransaction", {"from": FIRST, "to": address, "data": "0x01", "gas": "0x40000"})
        while (receipt := client.ask("eth_getTransactionReceipt", sent)) is None:
            pass
        found.append(receipt["status"])
    return found


@contextmanager
def ophion(folder: Path, url: str, number: int, cache: Path) -> Iterator[Client]:
    given = (f"--fork-url={url}", f"--fork-block-number={number}", f"--fork-cache-path={cache}")
    with NodeProcess(folder, *QUIET, *given, command=("dev",)) as node:
        yield Client(node.ports["json-rpc"])


@contextmanager
def anvil(path: str, url: str, number: int) -> Iterator[Client]:
    given = ["--port", str(ANVIL_PORT), "--silent", "--fork-url", url, "--fork-block-number", str(number)]
    process = subprocess.Popen([path, *given, "--no-storage-caching"])
    try:
        time.sleep(3)
        yield Client(ANVIL_PORT)
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anvil", help="Anvil's binary")
    parser.add_argument("--contracts", type=int, default=5000)
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="use the contracts in a random order")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as text,
        NodeProcess(Path(text) / "s", "--preset=anvil", *QUIET, command=("dev",)) as node,
    ):
        folder = Path(text)
        client = Client(node.ports["json-rpc"])
        addresses = deploy(client, options.contracts)
        if options.shuffle is not None:
            random.Random(options.shuffle).shuffle(addresses)
        number = int(client.ask("eth_blockNumber"), 16)
        proxy = Proxy(("127.0.0.1", 0), Forwarding)
        proxy.target = node.ports["json-rpc"]
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{proxy.server_port}"
        expected: dict[str, list[Any]] = {}

        def measure(name: str, mode: str, run: Client) -> None:
            requests, calls, begun = proxy.requests, proxy.calls, time.perf_counter()
            found = script(run, addresses, mode)
            assert expected.setdefault(mode, found) == found, "results differ"
            spent = time.perf_counter() - begun
            sent, asked = proxy.requests - requests, proxy.calls - calls
            print(f"{name:20} {mode:12} {sent:6} requests {asked:6} calls {spent:7.2f} s")
            sys.stdout.flush()

        for place, mode in enumerate(("one by one", "together")):
            cache = folder / f"cache{place}"
            for again, run in enumerate(("first run", "second run")):
                with ophion(folder / f"o{place}{again}", url, number, cache) as fork:
                    measure(f"ophion, {run}", mode, fork)
            if options.anvil:
                with anvil(options.anvil, url, number) as fork:
                    measure("anvil", mode, fork)


if __name__ == "__main__":
    main()
