"""Measure processor time and memory of the web interface in a browser while a chain is flooded, for each view.

    python bench/web_interface.py [--rate 5000] [--seconds 60]
    python bench/web_interface.py --page http://127.0.0.1:8080/ --rpc http://127.0.0.1:8080/jsonrpc --rate 2000

Without addresses, it starts a node (`ophion dev --block-period=1`). With addresses, it uses a running network, such as
a quickstart, in which the development accounts have funds. Each view is open for an equal part of the time. Meanwhile
some senders send transfers in batches at the given rate, or as many as the machine can process. Needs Chromium.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from multiprocessing import Pool
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.browser.chromium import Browser, chromium

BATCH: Final = 250
OPTIONS = (
    "--block-period=1", "--rpc-ws-port=0", "--page-http-port=0", "--graphql-http-port=0", "--tx-pool-max-size=200000",
)  # fmt: skip


def call(connection: http.client.HTTPConnection, path: str, body: Any) -> Any:
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())


def signed(of: tuple[int, int, int, int]) -> list[str]:
    """Return signed transfers of one sender, in order."""
    sender, first, count, chain_id = of
    key = DEV_KEYS[sender]
    make = legacy_transaction
    to = [bytes([sender]) * 19 + bytes([number % 251]) for number in range(251)]
    return [
        "0x" + make(key, first + number, to=to[number % 251], value=1, chain_id=chain_id).hex()
        for number in range(count)
    ]


class Flood(threading.Thread):
    """Sends transactions of one sender at a given rate. Waits for each answer, so a slow node lowers the rate."""

    def __init__(self, rpc: str, raw: list[str], rate: float, seconds: float) -> None:
        super().__init__(daemon=True)
        self._address, self._raw, self._rate, self._seconds = urlsplit(rpc), raw, rate, seconds
        self.sent = self.refused = 0

    def run(self) -> None:
        connection = http.client.HTTPConnection(self._address.hostname or "", self._address.port, timeout=60)
        begun = time.monotonic()
        while self.sent < len(self._raw) and time.monotonic() - begun < self._seconds:
            time.sleep(max(0.0, begun + self.sent / self._rate - time.monotonic()))
            part = self._raw[self.sent : self.sent + BATCH]
            body = [
                {"jsonrpc": "2.0", "id": number, "method": "eth_sendRawTransaction", "params": [raw]}
                for number, raw in enumerate(part)
            ]
            answers = call(connection, self._address.path or "/", body)
            self.sent += len(part)
            self.refused += sum("error" in answer for answer in answers)
        connection.close()


def views(rpc: str) -> list[str]:
    """Return the address of one view of each kind. The shown blocks and accounts have many transactions."""
    account = "0x" + DEV_KEYS[0].address.hex()
    address = urlsplit(rpc)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    ask = {"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": ["latest", False]}
    latest = call(connection, address.path or "/", ask)["result"]
    found = ["#/", "#/blocks", "#/block/latest", f"#/address/{account}", "#/consensus", "#/playground/eth_call"]
    return found + [f"#/tx/{hash}" for hash in latest["transactions"][:1]]


def measure(page: Browser, rpc: str, seconds: float) -> None:
    """Open one view after the other, and print a line with the figures of each view."""
    time.sleep(3)
    every = views(rpc)
    for view in every:
        page.go(view)
        (cpu, _), begun, most = page.cost(), time.monotonic(), 0
        while time.monotonic() - begun < (seconds - 3) / len(every):
            time.sleep(1)
            most = max(most, page.cost()[1])
        passed, spent = time.monotonic() - begun, page.cost()[0] - cpu
        elements = page.value("document.querySelectorAll('*').length")
        print(f"{view[:24]:24} {100 * spent / passed:5.1f} % of a core  {most / 1e6:4.0f} MB  {elements} elements")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=5_000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--page")
    parser.add_argument("--rpc")
    options = parser.parse_args()
    with ExitStack() as stack:
        rpc, address = options.rpc, options.page
        if not rpc or not address:
            data = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "data"
            node = stack.enter_context(NodeProcess(data, *OPTIONS, command=("dev",)))
            rpc, address = f"http://127.0.0.1:{node.ports['json-rpc']}/", f"http://127.0.0.1:{node.ports['page-http']}/"
        split = urlsplit(rpc)
        connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=60)

        def ask(method: str, *params: Any) -> Any:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return call(connection, split.path or "/", body)["result"]

        chain_id = int(ask("eth_chainId"), 16)
        keys = DEV_KEYS
        first = [int(ask("eth_getTransactionCount", "0x" + key.address.hex(), "latest"), 16) for key in keys]
        each = options.rate * (options.seconds + 5) // len(keys)
        with Pool(2) as pool:
            raw = pool.map(signed, [(at, first[at], each, chain_id) for at in range(len(keys))])
        page = stack.enter_context(chromium())
        page.look()
        page.open(address, "document.getElementById('live')?.dataset.state === 'live'")
        before, begun = int(ask("eth_blockNumber"), 16), time.monotonic()
        floods = [Flood(rpc, one, options.rate / len(keys), options.seconds + 4) for one in raw]
        for flood in floods:
            flood.start()
        measure(page, rpc, options.seconds)
        passed, sent = time.monotonic() - begun, sum(flood.sent for flood in floods)
        for flood in floods:
            flood.join()
        after = int(ask("eth_blockNumber"), 16)
        counts = [int(ask("eth_getBlockTransactionCountByNumber", hex(at)), 16) for at in range(before + 1, after + 1)]
        refused = sum(flood.refused for flood in floods)
        print(
            f"{sent} sent in {passed:.0f} s ({sent / passed:.0f} a second), {refused} refused; "
            f"{sum(counts)} mined in {len(counts)} blocks; complaints of the page: {page.complaints}"
        )


if __name__ == "__main__":
    main()
