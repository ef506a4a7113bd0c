"""Measure cost against size: python bench/growth.py --keep DIRECTORY [--blocks 1000 10000] [--accounts 1000 100000]

Builds chains in the given directory, outside the repository, and keeps them for the next run. One chain has the given
number of blocks, with a few calls in each that emit logs. Every call has a frequent topic, and every thousandth block
has a rare topic. Another chain has the given number of accounts and as many storage slots. For each size, the script
prints one JSON line. At the end, it writes an SVG plot for each figure into the same directory.

Figures of a chain: seconds from start to the first answer, after a normal stop and after SIGKILL; memory; microseconds
of balances and calls at the head and at random old blocks, of random old receipts and traces; milliseconds of
eth_getLogs over the whole chain for both topics; bytes on disk per transaction. Figures of a state: processor
microseconds per transfer and per token transfer in blocks of 4,000, in all and until the state root is known;
milliseconds until such a block is written. Each figure is the best of eight blocks.
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
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ophion.native.crypto import PrivateKey
from ophion.node.datadir import DataDirectory
from ophion.runtime.thread_pools import ThreadLanes
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction

GAS_PRICE: Final = 10**10
CALLS_A_BLOCK: Final = 4
RARE_EVERY: Final = 1000
NEW_A_CALL: Final = 250
"""Number of accounts or slots that one call creates."""
MAX_NEW_A_BLOCK: Final = 500_000
CALL_GAS: Final = 16_000_000
FREQUENT, RARE = 0xF1, 0xA7
SENDERS: Final = [PrivateKey((0xACC0 + number).to_bytes(32, "big")) for number in range(16)]
MEASURED: Final = 200

EMIT: Final = "60003560206000a1 00"
"""EVM code that emits a log whose topic is the first word of the input."""
LOOP: Final = "600035602035810190 5b {body} 600101 818110 6009 57 00"
"""EVM code that runs the body for consecutive numbers. The input has the first number and the count."""
PAY: Final = LOOP.format(body="6000808080 6001 85 6000 f1 50")
TOKEN: Final = (
    "36 6060 14 6020 57"
    "600035 80 54 602035 01 90 55 33 80 54 600101 90 55 60206000a0 00"
    "5b 600035602035810190 5b 8080 55 600101 818110 602a 57 00"
)
"""EVM code that adds an amount to the slot of a recipient, counts the sender's calls and emits a log.

With a third word of input, it fills consecutive slots instead. The input then has the first number and the count.
"""


def creation(runtime: str) -> bytes:
    code = bytes.fromhex(runtime.replace(" ", ""))
    return bytes.fromhex(f"60{len(code):02x}80600b6000396000f3") + code


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


class Builder:
    """Makes blocks of one chain in this process."""

    def __init__(self, core: TestCore) -> None:
        self.core = core
        self._nonces: dict[PrivateKey, int] = {}

    def sign(self, key: PrivateKey, to: bytes | None, data: bytes = b"", value: int = 0, gas: int = 100_000) -> bytes:
        nonce = self._nonces.get(key)
        if nonce is None:
            nonce = self.core.queries.head_state.nonce(key.address)
        self._nonces[key] = nonce + 1
        return legacy_transaction(key, nonce, to=to, data=data, value=value, gas=gas, gas_price=GAS_PRICE)

    async def deploy(self, runtime: str) -> bytes:
        _, (tx_hash,) = await self.core.mine(self.sign(DEV_KEYS[0], None, creation(runtime), gas=1_000_000))
        position = self.core.queries.transaction_position(tx_hash)
        assert position is not None
        receipt = json.loads(self.core.chain.store.receipt_at_json(position[0], position[2], False) or b"")
        return bytes.fromhex(receipt["contractAddress"][2:])

    async def fund(self) -> None:
        """Give every sender enough ether for its gas."""
        await self.core.mine(*(self.sign(DEV_KEYS[1], key.address, value=4 * 10**21) for key in SENDERS))


async def build_blocks(core: TestCore, count: int, notes: dict[str, Any]) -> None:
    builder = Builder(core)
    await builder.fund()
    emitter = await builder.deploy(EMIT)
    notes["emitter"] = emitter.hex()
    began = time.perf_counter()
    while core.queries.head_number < count:
        number = core.queries.head_number + 1
        topics = [FREQUENT] * CALLS_A_BLOCK
        if number % RARE_EVERY == 0:
            topics[0] = RARE
        raws = [builder.sign(SENDERS[index], emitter, words(topic)) for index, topic in enumerate(topics)]
        await core.mine(*raws)
    notes["build_s"] = round(time.perf_counter() - began, 1)


async def build_accounts(core: TestCore, count: int, notes: dict[str, Any]) -> None:
    builder = Builder(core)
    await builder.fund()
    payer, token = await builder.deploy(PAY), await builder.deploy(TOKEN)
    notes["token"] = token.hex()
    began = time.perf_counter()
    new_a_block = min(MAX_NEW_A_BLOCK, max(10_000, count // 20))
    for first in range(0, count, new_a_block):
        raws = []
        for start in range(first, min(first + new_a_block, count), NEW_A_CALL):
            raws.append(builder.sign(SENDERS[0], payer, words((1 << 64) + start, NEW_A_CALL), NEW_A_CALL, CALL_GAS))
            raws.append(builder.sign(SENDERS[1], token, words(1 + start, NEW_A_CALL, 1), 0, CALL_GAS))
        await core.send(*raws)
        core.clock.advance(1)
        built_block = await core.core.assembler.assemble(600.0)
        await core.core.assembler.commit(built_block.header, built_block, core.clock.monotonic())
    assert core.queries.head_state.storage(token, words(count)) == words(count)
    notes["build_s"] = round(time.perf_counter() - began, 1)


def built(place: Path, build: Callable[[TestCore, int, dict[str, Any]], Any], size: int) -> dict[str, Any]:
    """Build a chain unless it exists, and return the stored notes about the chain."""
    file = place / "notes.json"
    if not file.exists():
        shutil.rmtree(place, ignore_errors=True)
        with DataDirectory.open(place) as opened:
            opened.store()
        notes: dict[str, Any] = {}
        with open_core(place / "database") as core:
            asyncio.run(build(core, size, notes))
        file.write_text(json.dumps(notes))
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def disk_bytes(place: Path) -> int:
    return sum(one.stat().st_blocks * 512 for one in place.rglob("*") if one.is_file())


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    # the status of a process that has just ended has no line with RssAnon
    return round(next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0) / 1024, 1)


def microseconds(node: NodeProcess, method: str, params: Callable[[], list[Any]], count: int = MEASURED) -> float:
    """Return the median time of a request in microseconds."""
    taken = []
    for _ in range(count):
        arguments = params()
        began = time.perf_counter()
        assert node.rpc(method, *arguments) is not None
        taken.append(time.perf_counter() - began)
    return round(sorted(taken)[len(taken) // 2] * 1e6, 1)


def measure_chain(place: Path, blocks: int, notes: dict[str, Any]) -> dict[str, Any]:
    rng = random.Random(1)
    emitter = "0x" + notes["emitter"]
    sender = "0x" + SENDERS[0].address.hex()
    options = (*MINING[:1], "--rpc-http-api=ETH,NET,WEB3,TRACE,DEBUG")
    found: dict[str, Any] = {"blocks": blocks, "disk_bytes_per_tx": disk_bytes(place) // (blocks * CALLS_A_BLOCK)}

    def start(node: NodeProcess) -> float:
        began = time.perf_counter()
        node.start()
        node.rpc("eth_blockNumber")
        return time.perf_counter() - began

    node = NodeProcess(place, *options)
    try:
        start(node)
        node.stop()
        found["start_s"] = round(min(_stopped(node, start(node)) for _ in range(3)), 3)
        start(node)
        os.kill(node.pid, signal.SIGKILL)
        node.kill()
        found["start_after_kill_s"] = round(start(node), 3)
        found["anonymous_mb"] = memory_mb(node.pid)

        def old() -> str:
            return hex(rng.randrange(5, blocks))

        def transaction() -> list[str]:
            return [node.rpc("eth_getBlockByNumber", old(), False)["transactions"][-1]]

        hashes = [transaction() for _ in range(MEASURED)]
        call = {"to": emitter, "data": "0x" + words(1).hex()}
        found |= {
            "balance_us": microseconds(node, "eth_getBalance", lambda: [sender, "latest"]),
            "old_balance_us": microseconds(node, "eth_getBalance", lambda: [sender, old()]),
            "call_us": microseconds(node, "eth_call", lambda: [call, "latest"]),
            "old_call_us": microseconds(node, "eth_call", lambda: [call, old()]),
            "old_receipt_us": microseconds(node, "eth_getTransactionReceipt", lambda: rng.choice(hashes)),
            "old_trace_us": microseconds(node, "trace_transaction", lambda: rng.choice(hashes), 50),
        }
        for name, topic in (("rare", RARE), ("frequent", FREQUENT)):
            # read the frequent topic only in the last 5,000 blocks, so that chains of any length compare
            first = 0 if name == "rare" else max(0, blocks - 5_000)
            query = {"fromBlock": hex(first), "toBlock": "latest", "topics": ["0x" + words(topic).hex()]}
            taken = []
            for _ in range(5):
                began = time.perf_counter()
                logs = node.rpc("eth_getLogs", query)
                taken.append(time.perf_counter() - began)
            found[f"{name}_logs"] = len(logs)
            found[f"{name}_logs_ms"] = round(1e3 * min(taken), 2)
        found["anonymous_after_mb"] = memory_mb(node.pid)
    finally:
        if node.is_running:
            node.kill()
    return found


def _stopped(node: NodeProcess, taken: float) -> float:
    node.stop()
    return taken


def measure_state(place: Path, accounts: int, notes: dict[str, Any], count: int = 4_000, rounds: int = 8) -> Any:
    """Measure blocks of transfers on a chain with `accounts` accounts. The blocks stay in the chain."""
    token = bytes.fromhex(notes["token"])
    found: dict[str, Any] = {"accounts": accounts, "disk_mb": disk_bytes(place) >> 20}
    lanes = ThreadLanes()
    for journal in (place / "database").glob("local-transactions.journal*"):
        journal.unlink()  # delete the pool journal, because an interrupted run leaves transactions in it

    async def run(core: TestCore) -> None:
        builder = Builder(core)
        rng = random.Random(core.queries.head_number)

        def transfer(index: int) -> bytes:
            target = ((1 << 64) + rng.randrange(accounts)).to_bytes(20, "big")
            return builder.sign(SENDERS[index % len(SENDERS)], target, value=1, gas=21_000)

        def token_transfer(index: int) -> bytes:
            recipient = rng.randrange(1, 2 * accounts)
            return builder.sign(SENDERS[index % len(SENDERS)], token, words(recipient, 1))

        for name, make in (("transfer", transfer), ("token_transfer", token_transfer)):
            cpu, executed, written = [], [], []
            for _ in range(rounds):
                await core.send(*(make(index) for index in range(count)))
                core.clock.advance(1)
                used = time.process_time()
                built_block = await core.core.assembler.assemble(30.0)
                assert built_block.body.transaction_count == count, built_block.body.transaction_count
                executed.append(time.process_time() - used)
                began = time.perf_counter()
                await core.core.assembler.commit(built_block.header, built_block, core.clock.monotonic())
                written.append(time.perf_counter() - began)
                cpu.append(time.process_time() - used)
            found[f"{name}_cpu_us"] = round(min(cpu) / count * 1e6, 1)
            found[f"{name}_execution_cpu_us"] = round(min(executed) / count * 1e6, 1)
            found[f"{name}_commit_ms"] = round(min(written) * 1e3, 1)

    with open_core(place / "database", lanes=lanes) as core:
        asyncio.run(run(core))
    lanes.close()
    return found


def plot(rows: list[dict[str, Any]], size: str, figure: str) -> str:
    """Return an SVG with one figure against the size, on a logarithmic horizontal axis."""
    points = [(row[size], float(row[figure])) for row in rows]
    top = max(value for _, value in points) * 1.1 or 1.0
    width, height, left, bottom = 420, 220, 60, 40
    step = (width - left - 20) / max(1, len(points) - 1)
    placed = [
        (left + index * step, height - bottom - value / top * (height - bottom - 30))
        for index, (_, value) in enumerate(points)
    ]
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y in placed)
    marks = "".join(
        f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3"/>'
        f'<text x="{x:.0f}" y="{y - 8:.0f}" text-anchor="middle">{value:g}</text>'
        f'<text x="{x:.0f}" y="{height - 22}" text-anchor="middle">{count:g}</text>'
        for (x, y), (count, value) in zip(placed, points, strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' font-family="sans-serif" font-size="11">'
        f'<text x="{left}" y="16" font-weight="bold">{figure}</text>'
        f'<path d="M{left} 24V{height - bottom}H{width - 10}" fill="none" stroke="#888"/>'
        f'<polyline points="{line}" fill="none" stroke="#2563eb" stroke-width="2"/>{marks}'
        f'<text x="{width // 2}" y="{height - 6}" text-anchor="middle">{size}</text></svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, required=True, help="directory for chains and plots")
    parser.add_argument("--blocks", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--accounts", type=int, nargs="*", default=[1_000, 100_000])
    chosen = parser.parse_args()
    tables: list[tuple[str, list[dict[str, Any]]]] = []
    for size, counts in (("blocks", chosen.blocks), ("accounts", chosen.accounts)):
        rows = []
        for count in sorted(counts):
            place = chosen.keep / f"{size}-{count}"
            place.parent.mkdir(parents=True, exist_ok=True)
            # build in a separate process, because its database closes only when the process ends
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                notes = pool.apply(built, (place, build_blocks if size == "blocks" else build_accounts, count))
            if size == "blocks":
                row = measure_chain(place, count, notes)
            else:
                row = measure_state(place, count, notes)
            rows.append({**row, "build_s": notes["build_s"]})
            print(json.dumps(rows[-1]), flush=True)
        tables.append((size, rows))
    for size, rows in tables:
        for figure in rows[0] if len(rows) > 1 else ():
            if figure != size:
                (chosen.keep / f"{size}-{figure}.svg").write_text(plot(rows, size, figure))


if __name__ == "__main__":
    main()
