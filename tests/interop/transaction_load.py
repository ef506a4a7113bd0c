"""Sends signed transfers at a constant rate to changing nodes, and follows the chain until each one is in a block."""

from __future__ import annotations

import http.client
import json
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ophion.native.crypto import PrivateKey, keccak256
from ophion.testing.network import CHAIN_ID
from ophion.testing.signing import legacy_transaction

SENDERS = tuple(PrivateKey((0x5E4D0000 + index).to_bytes(32, "big")) for index in range(100))
"""Public test keys. GoQuorum accepts only the gas price 0, so they pay nothing."""
FUNDS = 10**24
RECIPIENTS = 1000
RESEND_AFTER_S = 15.0
MAX_RESENT = 500
"""Maximum number of transactions that one pass sends again."""
MAX_UNANSWERED = 20
_REQUEST_TIMEOUT_S = 10.0


class RpcConnection:
    """A reused connection to one node. Not safe for several threads."""

    def __init__(self, port: Callable[[], int]) -> None:
        """Prepare a connection. `port` returns the current port, which changes when an Ophion node restarts."""
        self._port = port
        self._connection: http.client.HTTPConnection | None = None

    def call(self, method: str, *params: object) -> Any:
        """Return the answer with `result` or `error`. Raises ConnectionError if the node does not answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        if self._connection is not None:
            with suppress(ConnectionError):  # the node may have been restarted since the last request
                return self._request(self._connection, body)
        try:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port(), timeout=_REQUEST_TIMEOUT_S)
        except KeyError as error:
            raise ConnectionError("the node has no port yet") from error
        return self._request(self._connection, body)

    def _request(self, connection: http.client.HTTPConnection, body: str) -> Any:
        try:
            connection.request("POST", "/", body, {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            self._connection = None
            raise ConnectionError(str(error)) from error

    def result(self, method: str, *params: object) -> Any:
        answer = self.call(method, *params)
        if "error" in answer:
            raise ConnectionError(f"{method}: {answer['error']}")
        return answer["result"]


@dataclass
class Outstanding:
    """A transaction that is in no block yet."""

    raw: bytes
    first_sent: float
    last_sent: float


class TransactionLoad:
    """Threads that send transactions and follow the chain of one node that is never killed."""

    def __init__(
        self, ports: Sequence[Callable[[], int]], rate: int, is_ready: Callable[[int], bool], chance: random.Random
    ) -> None:
        """Prepare the load. `is_ready` returns whether a node gets transactions."""
        self.errors: list[str] = []
        self.refusals: dict[str, int] = {}
        self.latencies_s: list[float] = []
        self.nonces = [0] * len(SENDERS)
        self.block_of: dict[bytes, int] = {}
        self.height = 0
        self.resent = 0
        self.redirected = 0
        self._rate = rate
        self._is_ready = is_ready
        self._chance = chance
        self._ports = ports
        self._queues: list[queue.SimpleQueue[bytes]] = [queue.SimpleQueue() for _ in ports]
        self._outstanding: dict[bytes, Outstanding] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._quiet = threading.Event()
        self._threads = [threading.Thread(target=self._guarded, args=(self._pace,), daemon=True)]
        self._threads += [threading.Thread(target=self._guarded, args=(self._follow,), daemon=True)]
        self._threads += [
            threading.Thread(target=self._guarded, args=(self._deliver, index), daemon=True)
            for index in range(len(ports))
        ]

    @property
    def sent(self) -> int:
        return sum(self.nonces)

    @property
    def outstanding(self) -> int:
        return len(self._outstanding)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def pause(self) -> None:
        """Make no new transactions. Those that are in no block are still sent again."""
        self._quiet.set()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(2 * _REQUEST_TIMEOUT_S)

    def _guarded(self, work: Callable[..., None], *arguments: object) -> None:
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001  # the test fails with every error of a thread
            self.errors.append(f"{work.__name__}: {type(error).__name__}: {error}")

    def _pace(self) -> None:
        """Make transactions in steps of a tenth of a second. The number never falls behind the clock."""
        began, made = time.monotonic(), 0
        while not self._stopped.is_set() and not self._quiet.is_set():
            due = int((time.monotonic() - began) * self._rate)
            while made < due:
                number = made % len(SENDERS)
                to = (0xACC000 + self._chance.randrange(RECIPIENTS)).to_bytes(20, "big")
                raw = legacy_transaction(
                    SENDERS[number], self.nonces[number], to=to, value=1, gas_price=0, chain_id=CHAIN_ID
                )
                now = time.monotonic()
                with self._lock:
                    self._outstanding[keccak256(raw)] = Outstanding(raw, now, now)
                    self.nonces[number] += 1
                made += 1
                self._queues[self._choose()].put(raw)
            time.sleep(0.1)

    def _choose(self) -> int:
        ready = [index for index in range(len(self._ports)) if self._is_ready(index)]
        return self._chance.choice(ready) if ready else 0

    def _deliver(self, index: int) -> None:
        """Send what is in the queue of a node. If the node does not answer, another node gets it."""
        connection = RpcConnection(self._ports[index])
        while not self._stopped.is_set():
            try:
                raw = self._queues[index].get(timeout=0.5)
            except queue.Empty:
                continue
            try:
                answer = connection.call("eth_sendRawTransaction", "0x" + raw.hex())
            except ConnectionError:
                self.redirected += 1
                time.sleep(0.05)
                self._queues[self._choose()].put(raw)
                continue
            if "error" in answer:
                reason = f"{index}: {answer['error'].get('message')}"
                self.refusals[reason] = self.refusals.get(reason, 0) + 1

    def _follow(self) -> None:
        """Read every block of the first node, note its transactions, and send again what is missing for long."""
        connection = RpcConnection(self._ports[0])
        parent, passed, unanswered = "", time.monotonic(), 0
        while not self._stopped.is_set():
            try:
                block = connection.result("eth_getBlockByNumber", hex(self.height + 1), False)
            except ConnectionError as error:
                unanswered += 1
                if unanswered > MAX_UNANSWERED:
                    self.errors.append(f"the node that is never killed does not answer: {error}")
                time.sleep(1)
                continue
            if block is None:
                if time.monotonic() > passed + 5:
                    self._resend()
                    passed = time.monotonic()
                time.sleep(0.1)
                continue
            if parent and block["parentHash"] != parent:
                self.errors.append(f"block {self.height + 1} does not follow block {self.height}")
            parent = block["hash"]
            self._note(self.height + 1, block["transactions"])
            self.height += 1

    def _note(self, number: int, hashes: Sequence[str]) -> None:
        now = time.monotonic()
        for text in hashes:
            found = bytes.fromhex(text[2:])
            with self._lock:
                known = self._outstanding.pop(found, None)
            if found in self.block_of:
                self.errors.append(f"{text} is in the blocks {self.block_of[found]} and {number}")
            elif known is None:
                self.errors.append(f"{text} in block {number} was not sent")
            else:
                self.latencies_s.append(now - known.first_sent)
            self.block_of[found] = number

    def _resend(self) -> None:
        now = time.monotonic()
        with self._lock:
            late = [one for one in self._outstanding.values() if one.last_sent < now - RESEND_AFTER_S]
        # the transactions of a sender are in the order of their nonces
        target = self._choose()
        for one in late[:MAX_RESENT]:
            one.last_sent = now
            self._queues[target].put(one.raw)
        self.resent += min(len(late), MAX_RESENT)
