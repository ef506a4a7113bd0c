"""Run four validators under a constant load and faults, and measure what grows: python bench/soak.py --keep DIRECTORY

    python bench/soak.py --keep DIRECTORY [--minutes 80] [--rate 900] [--kill-s 120] [--backup-s 900] [--nice 15]

The validators (QBFT, period 1 s) keep the states of 128 blocks. One more process sends `--rate` transactions a second
to the first validator: of eight, six are transfers to 10,000 accounts, one is a transfer to a new account, and one is a
token transfer with a log. About every `--kill-s` seconds, one of the last two validators gets SIGKILL and starts
again some seconds later. Beside that, clients subscribe to heads, logs and pending transactions, ask for traces and
logs, and make backups of a running validator.

Every 30 s, a JSON line goes to DIRECTORY/samples: for each validator memory, open files, threads, bytes on disk, how
late blocks came (from timestamp to newHeads), and processor time per transaction. At the end, the script checks that
all validators have one chain with every transaction that was sent, prints the slopes of the second half
(`soak_report.py`) and draws them into DIRECTORY/soak.svg. Slopes over a few hours are mostly noise,
because the state cache (64 MB) fills and empties, and C heaps keep free memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from statistics import median
from typing import Any, Final

from http_request import post
from soak_report import plot, summary
from sustained import RUNTIME
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from ophion.native.crypto import PrivateKey
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import NodeProcess, RpcFailure, environment, processor_s
from ophion.testing.signing import DEV_KEYS, legacy_transaction

SENDERS: Final = tuple(PrivateKey((0x50AC0000 + index).to_bytes(32, "big")) for index in range(256))
"""Public test keys."""
CONNECTIONS: Final = 16
RECIPIENTS: Final = 10_000
MAX_WAITING_S: Final = 5.0
"""The load waits while the transactions of this many seconds are in no block yet."""
SURVIVORS: Final = 2
"""Number of validators that are never killed."""
SAMPLE_S: Final = 30.0
TRACE_S: Final = 20.0
SETTLED_S: Final = 20.0
"""Seconds after a start in which a validator catches up. The lateness of its blocks does not count."""
OPTIONS: Final = (
    "--tx-pool-max-size=200000",
    "--state-history=128",
    "--rpc-ws-enabled",
    "--rpc-ws-port=0",
    "--rpc-http-api=ETH,NET,WEB3,QBFT,DEBUG,TRACE,TXPOOL",
)


def transaction(index: int, token: bytes) -> bytes:
    """Return the request with the signed transaction of this index."""
    key, nonce = SENDERS[index % len(SENDERS)], index // len(SENDERS)
    kind, known = (nonce + index) % 8, (0xACC000 + index * 7919 % RECIPIENTS).to_bytes(20, "big")
    if kind == 0:
        data = bytes.fromhex("a9059cbb") + known.rjust(32, b"\0") + (1).to_bytes(32, "big")
        raw = legacy_transaction(key, nonce, gas_price=0, gas=100_000, to=token, value=0, data=data, chain_id=CHAIN_ID)
    else:
        to = known if kind > 1 else ((1 << 80) + index).to_bytes(20, "big")
        raw = legacy_transaction(key, nonce, gas_price=0, to=to, value=1, chain_id=CHAIN_ID)
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x%s"]}' % raw.hex().encode()
    return post(body)


class Counting(asyncio.Protocol):
    """A client that counts answers, and keeps the first error."""

    answered = 0
    """Answers of all clients."""
    error = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        Counting.answered += data.count(b"HTTP/1.1 ")
        if b'"error"' in data and not Counting.error:
            Counting.error = data[data.index(b'"error"') :][:200]
        self._rest = data[-8:]


async def send_all(port: int, rate: float, token: bytes, mined: Synchronized[int], pipe: Connection) -> None:
    """Send transactions until the parent says stop. Reports the number that was sent."""
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(Counting, "127.0.0.1", port))[1] for _ in range(CONNECTIONS)]
    began, sent = loop.time(), 0
    while not pipe.poll():
        due = int((loop.time() - began) * rate)
        if due - sent > rate:
            # never send more than a second at once: the rate drops if the network does not keep up
            began = loop.time() - sent / rate
        while sent < due and sent - mined.value < MAX_WAITING_S * rate:
            # a sender always uses the same connection, so that its transactions arrive in order
            clients[sent % CONNECTIONS].transport.write(transaction(sent, token))
            sent += 1
        await asyncio.sleep(0.02)
    await asyncio.sleep(5)
    pipe.send((sent, Counting.answered, Counting.error.decode(errors="replace")))


def run_load(port: int, rate: float, token: bytes, mined: Synchronized[int], pipe: Connection) -> None:
    asyncio.run(send_all(port, rate, token, mined, pipe))


def status_mb(pid: int) -> tuple[float, float]:
    """Return the anonymous and the resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("RssAnon", "VmRSS"))}
    return round(int(found.get("RssAnon", 0)) / 1024, 2), round(int(found.get("VmRSS", 0)) / 1024, 2)


def disk_bytes(place: Path) -> int:
    """Return the bytes of all files. Files that vanish meanwhile do not count."""
    total = 0
    for one in place.rglob("*"):
        with suppress(OSError):
            total += one.stat().st_blocks * 512
    return total


class Validator:
    """A validator and what is known about it."""

    def __init__(self, index: int, node: NodeProcess) -> None:
        self.name = f"validator {index}"
        self.node = node
        self.is_down = False
        self.started_at = time.monotonic()
        self.late: list[float] = []
        """Lateness of the blocks since the last sample in seconds."""
        self._used = 0.0

    def sample(self, mined: int) -> dict[str, Any]:
        """Return the figures of this process. `mined` is the number of transactions since the last sample."""
        pid, late = self.node.pid, self.late
        self.late = []
        used, self._used = self._used, processor_s(pid)
        anonymous, resident = status_mb(pid)
        return {
            "pid": pid,
            "anonymous_mb": anonymous,
            "resident_mb": resident,
            "files": len(os.listdir(f"/proc/{pid}/fd")),
            "threads": len(os.listdir(f"/proc/{pid}/task")),
            "disk_bytes": disk_bytes(self.node.data_path),
            "late_ms": round(1e3 * median(late)) if late else None,
            "late_most_ms": round(1e3 * max(late)) if late else None,
            "processor_us": round((self._used - used) / mined * 1e6) if mined and self._used > used else None,
        }


class Soak:
    """A run: validators, clients, faults and samples."""

    def __init__(self, network: TestNetwork, chosen: argparse.Namespace, mined: Synchronized[int]) -> None:
        self.validators = [Validator(index, node) for index, node in enumerate(network.nodes)]
        self.first = network.nodes[0]
        self.chosen = chosen
        self._mined = mined
        self.chance = random.Random(37)
        self.counts: Counter[str] = Counter()
        self.height = 0
        self.samples: list[dict[str, Any]] = []
        self._file = chosen.keep / "samples"
        self._asking = NodeProcess(network.data_path(0))
        """A second connection to the first validator, for another thread."""
        self._asking.ports = self.first.ports

    async def subscribe(self, validator: Validator, *params: object) -> None:
        """Receive notifications, and connect again after each restart of the validator."""
        ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": params})
        while True:
            with suppress(OSError, WebSocketException, KeyError):
                async with connect(f"ws://127.0.0.1:{validator.node.ports['ws-rpc']}") as client:
                    await client.send(ask)
                    await client.recv()
                    while True:
                        self._note(validator, json.loads(await client.recv())["params"]["result"])
            await asyncio.sleep(0.5)

    def _note(self, validator: Validator, result: Any) -> None:
        if isinstance(result, str):
            self.counts["pending"] += 1
        elif "logIndex" in result:
            self.counts["logs"] += 1
        else:
            if time.monotonic() > validator.started_at + SETTLED_S:
                validator.late.append(time.time() - int(result["timestamp"], 16))
            if validator.node is self.first:
                self.height = max(self.height, int(result["number"], 16))

    async def count(self) -> None:
        """Count the transactions in the blocks of the first validator."""
        counted = 0
        while True:
            while counted < self.height:
                counted += 1
                size = self.first.rpc("eth_getBlockTransactionCountByNumber", hex(counted))
                self.counts["mined"] += int(size, 16)
                self._mined.value = self.counts["mined"]
            await asyncio.sleep(0.3)

    async def kill(self) -> None:
        """Kill and restart validators."""
        while True:
            await asyncio.sleep(self.chosen.kill_s * self.chance.uniform(0.5, 1.5))
            victim = self.chance.choice(self.validators[SURVIVORS:])
            victim.is_down = True
            await asyncio.to_thread(victim.node.kill)
            self.counts["kills"] += 1
            await asyncio.sleep(self.chance.uniform(1, 10))
            await asyncio.to_thread(victim.node.start)
            victim.started_at, victim.is_down = time.monotonic(), False

    async def ask(self) -> None:
        """Ask for traces of recent transactions and for logs."""

        def ask_once() -> None:
            number = max(1, self.height - self.chance.randrange(100))
            hashes = self._asking.rpc("eth_getBlockByNumber", hex(number), False)["transactions"]
            if hashes:
                self._asking.rpc("debug_traceTransaction", self.chance.choice(hashes))
                self._asking.rpc("trace_block", hex(number))
                self.counts["traces"] += 2
            self._asking.rpc("eth_getLogs", {"fromBlock": hex(max(0, number - 10)), "toBlock": hex(number)})

        while True:
            await asyncio.sleep(TRACE_S)
            try:
                await asyncio.to_thread(ask_once)
            except RpcFailure as failure:
                self.counts[f"failure: {failure}"] += 1

    async def back_up(self) -> None:
        """Make backups of the second validator and delete them."""
        place = self.chosen.keep / "backup"
        while True:
            await asyncio.sleep(self.chosen.backup_s)
            command = [sys.executable, "-m", "ophion", "storage", "backup", f"--to={place}"]
            command.append(f"--data-path={self.validators[1].node.data_path}")
            process = await asyncio.create_subprocess_exec(
                *command, env=environment(), stdout=asyncio.subprocess.DEVNULL
            )
            try:
                self.counts["backups" if await process.wait() == 0 else "failed backups"] += 1
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            await asyncio.to_thread(shutil.rmtree, place, True)

    async def sample(self) -> None:
        """Store the figures every 30 s."""
        began, before, last = time.monotonic(), 0, {}
        while True:
            mined, before = self.counts["mined"] - before, self.counts["mined"]
            for one in self.validators:
                # a validator that is down, or ends meanwhile, keeps its last figures
                with suppress(OSError):
                    if not one.is_down:
                        last[one.name] = one.sample(mined)
            names = ("mined", "kills", "backups", "traces", "logs", "pending")
            self.samples.append(
                {
                    "s": round(time.monotonic() - began, 1),
                    "height": self.height,
                    **{name: self.counts[name] for name in names},
                    "load": os.getloadavg()[0],
                    "nodes": dict(last),
                }
            )
            with self._file.open("a") as file:
                file.write(json.dumps(self.samples[-1]) + "\n")
            await asyncio.sleep(SAMPLE_S)

    async def run(self) -> None:
        """Run all parts until the time is over. An error in one part ends the run."""
        parts: list[Coroutine[Any, Any, None]] = [self.subscribe(one, "newHeads") for one in self.validators]
        parts += [self.subscribe(self.validators[0], "logs", {}) for _ in range(3)]
        parts += [self.subscribe(self.validators[1], "newPendingTransactions")]
        parts += [self.count(), self.kill(), self.ask(), self.back_up(), self.sample()]
        tasks = [asyncio.create_task(one) for one in parts]
        done, _ = await asyncio.wait(tasks, timeout=60 * self.chosen.minutes, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in done:
            task.result()


def settled(network: TestNetwork, sent: int) -> dict[str, Any]:
    """Start all validators, wait for the last transaction, and compare the chains."""
    for node in network.nodes:
        if not node.is_running:
            node.start()
    first, mined, checked, deadline = network.nodes[0], 0, 0, time.monotonic() + 180
    while mined <= sent and time.monotonic() < deadline:
        for number in range(checked + 1, network.height(0) + 1):
            mined += int(first.rpc("eth_getBlockTransactionCountByNumber", hex(number)), 16)
            checked = number
        if mined > sent:
            break
        time.sleep(0.5)
    network.wait(lambda: min(network.heights()) >= checked, 180, f"block {checked} on all validators")
    # the first transaction of the chain creates the token
    return {"sent": sent, "in_blocks": mined - 1, "one_chain": network.agrees(since=max(0, checked - 200))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, required=True, help="directory for databases and samples; must not exist")
    parser.add_argument("--minutes", type=float, default=80)
    parser.add_argument("--rate", type=float, default=900, help="transactions a second")
    parser.add_argument("--kill-s", type=float, default=120, help="seconds between two kills")
    parser.add_argument("--backup-s", type=float, default=900, help="seconds between two backups")
    parser.add_argument("--nice", type=int, default=15)
    chosen = parser.parse_args()
    os.nice(chosen.nice)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen.keep.mkdir(parents=True)
    network = TestNetwork(chosen.keep, "qbft", 4, options=OPTIONS)
    genesis = json.loads(network.genesis_file.read_text())
    genesis["alloc"].update({key.address.hex(): {"balance": str(10**24)} for key in SENDERS})
    network.genesis_file.write_text(json.dumps(genesis))
    with network:
        first = network.nodes[0]
        size = len(RUNTIME) // 2
        code = bytes.fromhex(f"60{size:02x}600c60003960{size:02x}6000f3{RUNTIME}")
        raw = legacy_transaction(DEV_KEYS[0], 0, gas_price=0, gas=500_000, to=None, data=code, chain_id=CHAIN_ID)
        token = bytes.fromhex(first.receipt(first.send(raw))["contractAddress"][2:])
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        mined = context.Value("q", 0)
        arguments = (first.ports["json-rpc"], chosen.rate, token, mined, there)
        load = context.Process(target=run_load, args=arguments, daemon=True)
        load.start()
        soak = Soak(network, chosen, mined)
        asyncio.run(soak.run())
        here.send("stop")
        sent, answered, error = here.recv()
        end = settled(network, sent)
        others = {name: count for name, count in soak.counts.items() if name.startswith("fail")}
        print(json.dumps({**end, "answered": answered, "error": error, **others}), flush=True)
    print(json.dumps(summary(soak.samples)), flush=True)
    (chosen.keep / "soak.svg").write_text(plot(soak.samples))


if __name__ == "__main__":
    main()
