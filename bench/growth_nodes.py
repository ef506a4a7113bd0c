"""Measure a transfer in a whole node against the size of its state: python bench/growth_nodes.py --keep DIRECTORY

Starts a node on each chain of accounts that growth.py has built in the directory. The nodes take turns: each gets
transfers to random accounts over JSON-RPC, then token transfers, half of them to new slots. The figure is the processor
time of all threads of the node per transaction, from the first request until the last transaction is mined, in the best
round. The first round is not counted. Prints one JSON line per size, and a line with the ratio of each to the smallest.
Transactions stay in the chains.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from growth_chains import GAS_PRICE, SENDERS, Growth, Notes, words
from http_request import request

from ophion.testing.node_process import MINING, NodeProcess, processor_s
from ophion.testing.signing import legacy_transaction

CONNECTIONS: Final = 4
KINDS: Final = ("transfer", "token_transfer")
LIMIT_S: Final = 300.0


class Target:
    """A node on one chain, and the next nonces of the senders."""

    def __init__(self, node: NodeProcess, accounts: int, notes: dict[str, Any]) -> None:
        self.node = node
        self.accounts = accounts
        self._token = bytes.fromhex(notes["token"])
        self._rng = random.Random(node.height)
        self._nonces = [
            int(node.rpc("eth_getTransactionCount", "0x" + key.address.hex(), "pending"), 16) for key in SENDERS
        ]
        self.taken: dict[str, list[float]] = {kind: [] for kind in KINDS}

    def _signed(self, kind: str, sender: int) -> bytes:
        key, nonce = SENDERS[sender], self._nonces[sender]
        self._nonces[sender] += 1
        price = 10 * GAS_PRICE
        if kind == "transfer":
            target = ((1 << 64) + self._rng.randrange(self.accounts)).to_bytes(20, "big")
            return legacy_transaction(key, nonce, to=target, value=1, gas=21_000, gas_price=price)
        data = words(self._rng.randrange(1, 2 * self.accounts), 1)
        return legacy_transaction(key, nonce, to=self._token, data=data, gas=100_000, gas_price=price)

    def round(self, kind: str, count: int) -> None:
        """Send transactions, wait until they are mined, and note the processor time per transaction."""
        # the transactions of a sender stay in order, because one connection sends them
        requests: list[list[bytes]] = [[] for _ in range(CONNECTIONS)]
        for index in range(count):
            sender = index % len(SENDERS)
            requests[sender % CONNECTIONS].append(
                request("eth_sendRawTransaction", "0x" + self._signed(kind, sender).hex())
            )
        before = processor_s(self.node.pid)
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(self._send, requests))
        deadline = time.monotonic() + LIMIT_S
        while any(
            int(self.node.rpc("eth_getTransactionCount", "0x" + key.address.hex()), 16) < nonce
            for key, nonce in zip(SENDERS, self._nonces, strict=True)
        ):
            assert time.monotonic() < deadline, "transactions were not mined"
            time.sleep(0.1)
        self.taken[kind].append((processor_s(self.node.pid) - before) / count * 1e6)

    def _send(self, requests: list[bytes]) -> None:
        with socket.create_connection(("127.0.0.1", self.node.ports["json-rpc"]), timeout=LIMIT_S) as connection:
            for one in requests:
                connection.sendall(one)
                answer = connection.recv(4096)
                assert b'"result"' in answer, answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, required=True, help="directory with the chains of growth.py")
    parser.add_argument("--accounts", type=int, nargs="*", default=[10_000, 10_000_000])
    parser.add_argument("--transactions", type=int, default=8_000, help="transactions of each round")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        targets = []
        for accounts in sorted(chosen.accounts):
            place = chosen.keep / Growth(accounts=accounts).name
            for journal in (place / "database").glob("local-transactions.journal*"):
                journal.unlink()
            node = stack.enter_context(NodeProcess(place, *MINING, "--tx-pool-max-size=100000"))
            targets.append(Target(node, accounts, Notes(place).values))
        for number in range(chosen.rounds + 1):
            for target in targets:
                for kind in KINDS:
                    target.round(kind, chosen.transactions)
                    if number == 0:
                        target.taken[kind].clear()
        found = [{kind: min(target.taken[kind]) for kind in KINDS} for target in targets]
        for target, one in zip(targets, found, strict=True):
            figures: dict[str, Any] = {f"{kind}_cpu_us": round(value, 1) for kind, value in one.items()}
            every = {f"{kind}_rounds": [round(value) for value in target.taken[kind]] for kind in KINDS}
            print(json.dumps({"accounts": target.accounts, **figures, **every}), flush=True)
        for target, one in zip(targets[1:], found[1:], strict=True):
            ratios = {f"{kind}_ratio": round(one[kind] / found[0][kind], 3) for kind in KINDS}
            print(json.dumps({"accounts": target.accounts, **ratios}), flush=True)


if __name__ == "__main__":
    main()
