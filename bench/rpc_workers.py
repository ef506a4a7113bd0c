"""Measure reads with and without workers: python bench/rpc_workers.py [--workers 1] [--seconds 2] [--rounds 3] [--busy]

Two QBFT validators with blocks of one second, one of them with workers, take turns under wrk (16 keep-alive
connections). Prints requests per second and processor microseconds of all server processes for each request, as
medians. `--busy` sends 500 transfers a second to the measured node meanwhile. wrk must be on the PATH.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from ophion.testing.network import CHAIN_ID, member_key, network_genesis
from ophion.testing.node_process import NodeProcess, processor_s
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for

RICH = DEV_KEYS[0]
ADDRESS = "0x" + RICH.address.hex()
BATCH = 50


class Measured:
    """A validator, its workers, and a sender."""

    def __init__(self, path: Path, workers: int) -> None:
        path.mkdir()
        genesis = path / "genesis.json"
        genesis.write_text(json.dumps(network_genesis("qbft", [member_key(0).address])))
        data = path / "data"
        data.mkdir()
        (data / "key").write_text(member_key(0).secret().hex())
        options = (f"--genesis-file={genesis}", "--min-gas-price=0", f"--rpc-workers={workers}")
        self.node = NodeProcess(data, *options).start()
        wait_for(lambda: self.node.output().count("rpc worker started") == workers)
        self.mined = self.node.send(legacy_transaction(RICH, 0, gas_price=0, chain_id=CHAIN_ID))
        self.node.receipt(self.mined)
        self._nonce = 1

    def processes(self) -> list[int]:
        """Return the node process and its children (Linux)."""
        pid = self.node.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    def requests(self) -> dict[str, list[Any]]:
        """Return the measured methods with their parameters. A worker forwards the last one."""
        return {
            "eth_blockNumber": [],
            "eth_getBalance": [ADDRESS, "latest"],
            "eth_call": [{"to": ADDRESS, "data": "0x12345678"}, "latest"],
            "eth_getTransactionReceipt": [self.mined],
            "eth_getBlockByNumber": ["0x1", True],
            "eth_gasPrice": [],
        }

    def run(self, method: str, seconds: int, is_busy: bool) -> tuple[float, float]:
        """Return requests per second and processor microseconds of each."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": self.requests()[method]})
        script = self.node.data_path / "request.lua"
        headers = "wrk.headers['Content-Type'] = 'application/json'\n"
        script.write_text(f"wrk.method = 'POST'\nwrk.body = [==[{body}]==]\n{headers}")
        ended = threading.Event()
        sender = threading.Thread(target=self._send, args=(ended,))
        if is_busy:
            sender.start()
        before = processor_s(*self.processes())
        url = f"http://127.0.0.1:{self.node.ports['json-rpc']}/"
        command = ("wrk", "-t2", "-c16", f"-d{seconds}s", "-s", str(script), url)
        lines = subprocess.check_output(command, text=True).splitlines()
        used_s = processor_s(*self.processes()) - before
        ended.set()
        if is_busy:
            sender.join()
        assert not any("Non-2xx" in line for line in lines), lines
        count = next(int(line.split()[0]) for line in lines if "requests in" in line)
        rate = next(float(line.split()[1]) for line in lines if "Requests/sec" in line)
        return rate, used_s / count * 1e6

    def _send(self, ended: threading.Event) -> None:
        """Send batches of transfers over one connection, 500 transfers a second."""
        connection = http.client.HTTPConnection("127.0.0.1", self.node.ports["json-rpc"], timeout=60)
        due = time.monotonic()
        while not ended.is_set():
            raws = [
                legacy_transaction(RICH, nonce, gas_price=0, chain_id=CHAIN_ID).hex()
                for nonce in range(self._nonce, self._nonce + BATCH)
            ]
            self._nonce += BATCH
            calls = [
                {"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": ["0x" + raw]} for raw in raws
            ]
            connection.request("POST", "/", json.dumps(calls), {"Content-Type": "application/json"})
            connection.getresponse().read()
            due += BATCH / 500
            ended.wait(max(0.0, due - time.monotonic()))
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = {count: Measured(Path(folder) / str(count), count) for count in (0, chosen.workers)}
        try:
            print("load", *(f"{load:.1f}" for load in os.getloadavg()))
            for method in measured[0].requests():
                found: dict[int, list[tuple[float, float]]] = {count: [] for count in measured}
                for number in range(chosen.rounds):
                    for count in sorted(measured, reverse=bool(number % 2)):
                        found[count].append(measured[count].run(method, chosen.seconds, chosen.busy))
                parts = []
                for count, runs in found.items():
                    rate, used_us = (statistics.median(column) for column in zip(*runs, strict=True))
                    parts.append(f"{count} workers: {rate:8.0f}/s {used_us:6.1f} us")
                print(f"{method:26}", *parts, sep="  ", flush=True)
        finally:
            for one in measured.values():
                one.node.stop()


if __name__ == "__main__":
    main()
