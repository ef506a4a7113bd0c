"""Measure cost against size: python bench/growth.py --keep DIRECTORY [--blocks 1000 10000] [--accounts 1000 100000]

Builds chains in the given directory, outside the repository, and keeps them for the next run; an interrupted build
continues. One chain has the given number of blocks, with `--calls` calls in each that emit `--logs` logs. Almost all
logs have a frequent topic, and every thousandth block has a log with a rare topic. Another chain has the given number
of accounts and as many storage slots. With `--beside N`, the chains of blocks have N accounts and slots as well. For
each size, the script prints one JSON line. At the end, it writes an SVG plot for each figure into the same directory.

Figures of a chain: seconds from start to the first answer, after a normal stop and after SIGKILL; memory; microseconds
of balances and calls at the head and at random old blocks, of random old receipts and traces; milliseconds of
eth_getLogs over the whole chain for the rare topic; logs a second, and the growth of memory, of eth_getLogs for the
frequent topic; bytes on disk per transaction; seconds of a backup and of `storage check`. Figures of a state: processor
microseconds per transfer and per token transfer in blocks of 4,000, in all, until the state root is known, and of the
write; pages written and page faults per transaction. Each figure is the best of `--rounds` blocks. The first blocks map
pages of the database into the process, which later blocks find mapped.

`--memory MB` runs the measurement of states in a control group (cgroup 1) with this memory limit, which includes the
page cache. This needs root.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from growth_chains import FREQUENT, RARE, SENDERS, Builder, Growth, build, opened_core, words
from http_request import request

from ophion.runtime.thread_pools import ThreadLanes
from ophion.testing.node_core import TestCore
from ophion.testing.node_process import MINING, NodeProcess

MEASURED: Final = 200
FREQUENT_BLOCKS: Final = 100_000
"""Number of blocks in which the frequent topic is searched, so that longer chains compare."""
LOG_KEY: Final = b'"logIndex"'
END_OF_CHUNKS: Final = b"\r\n0\r\n\r\n"


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


def start(node: NodeProcess) -> float:
    """Start a node. Returns the seconds until its first answer."""
    began = time.perf_counter()
    node.start()
    node.rpc("eth_blockNumber")
    return time.perf_counter() - began


def start_and_stop(node: NodeProcess) -> float:
    taken = start(node)
    node.stop()
    return taken


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_chain(place: Path, growth: Growth, notes: dict[str, Any]) -> dict[str, Any]:
    rng = random.Random(1)
    first, last = notes["first_block"], notes["first_block"] + growth.blocks - 1
    emitter = "0x" + notes["emitter"]
    sender = "0x" + SENDERS[0].address.hex()
    found: dict[str, Any] = {"blocks": growth.blocks, "disk_mb": disk_bytes(place) >> 20}
    options = ("--rpc-http-api=ETH,NET,WEB3,TRACE,DEBUG", "--rpc-max-logs=0", "--http-timeout-seconds=3600")
    node = NodeProcess(place, *MINING[:1], *options)
    try:
        start_and_stop(node)
        found["start_s"] = round(min(start_and_stop(node) for _ in range(3)), 3)
        killed = []
        for _ in range(3):
            start(node)
            os.kill(node.pid, signal.SIGKILL)
            node.kill()
            killed.append(start(node))
            found["start_after_kill_cpu_s"] = round(processor_s(node.pid), 3)
            found["anonymous_mb"] = memory_mb(node.pid)
            node.stop()
        found["start_after_kill_s"] = round(min(killed), 3)
        start(node)

        def old() -> str:
            return hex(rng.randrange(first, last))

        def transaction() -> list[str]:
            while not (hashes := node.rpc("eth_getBlockByNumber", old(), False)["transactions"]):
                pass
            return [hashes[-1]]

        hashes = [transaction() for _ in range(MEASURED)]
        call = {"to": emitter, "data": "0x" + words(0, 1, FREQUENT).hex()}
        found |= {
            "balance_us": microseconds(node, "eth_getBalance", lambda: [sender, "latest"]),
            "old_balance_us": microseconds(node, "eth_getBalance", lambda: [sender, old()]),
            "call_us": microseconds(node, "eth_call", lambda: [call, "latest"]),
            "old_call_us": microseconds(node, "eth_call", lambda: [call, old()]),
            "old_receipt_us": microseconds(node, "eth_getTransactionReceipt", lambda: rng.choice(hashes)),
            "old_trace_us": microseconds(node, "trace_transaction", lambda: rng.choice(hashes), 50),
        }
        found["anonymous_after_mb"] = memory_mb(node.pid)
        found |= measure_logs(node, last)
    finally:
        if node.is_running:
            node.kill()
    backup = place.with_name(f"{place.name}-backup")
    found |= measure_command("backup", place, "storage", "backup", f"--to={backup}", "--max-rate=0", "--check=false")
    shutil.rmtree(backup)
    found |= measure_command("check", place, "storage", "check")
    return found


def measure_command(name: str, place: Path, *arguments: str) -> dict[str, float]:
    """Run a command on the stopped node. Returns seconds and processor seconds."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    line = [sys.executable, "-m", "ophion", *arguments, f"--data-path={place}"]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return {f"{name}_s": round(time.perf_counter() - began, 1), f"{name}_cpu_s": round(cpu, 1)}


def measure_logs(node: NodeProcess, last: int) -> dict[str, Any]:
    """Measure log searches: the rare topic in the whole chain, and the frequent topic in the newest blocks."""
    taken, cpu = [], processor_s(node.pid)
    rare = {"fromBlock": "0x0", "toBlock": "latest", "topics": ["0x" + words(RARE).hex()]}
    for _ in range(5):
        began = time.perf_counter()
        logs = node.rpc("eth_getLogs", rare)
        taken.append(time.perf_counter() - began)
    found = {
        "rare_logs": len(logs),
        "rare_logs_ms": round(1e3 * min(taken), 2),
        "rare_logs_cpu_ms": round((processor_s(node.pid) - cpu) / len(taken) * 1e3, 1),
    }
    first = hex(max(0, last - FREQUENT_BLOCKS))
    frequent = {"fromBlock": first, "toBlock": "latest", "topics": ["0x" + words(FREQUENT).hex()]}
    began, cpu, before = time.perf_counter(), processor_s(node.pid), memory_mb(node.pid)
    count, size, most = read_logs(node, frequent)
    seconds, cpu = time.perf_counter() - began, processor_s(node.pid) - cpu
    return found | {
        "frequent_logs": count,
        "frequent_mb": size >> 20,
        "frequent_logs_per_s": round(count / seconds),
        "frequent_logs_per_cpu_s": round(count / max(cpu, 0.01)),
        "frequent_growth_mb": round(most - before, 1),
    }


def read_logs(node: NodeProcess, query: dict[str, Any]) -> tuple[int, int, float]:
    """Read a large result without keeping it. Returns its logs and bytes, and the most anonymous memory of the node.

    Reads raw bytes from a socket, because an HTTP client takes more time than the node.
    """
    piece = bytearray(1 << 20)
    count, size, reads, most, tail = 0, 0, 0, 0.0, b""
    with socket.create_connection(("127.0.0.1", node.ports["json-rpc"]), timeout=3600) as connection:
        # a short result is not sent in chunks, so the end of the connection is the end of the answer
        connection.sendall(request("eth_getLogs", query, headers=b"Connection: close\r\n"))
        while length := connection.recv_into(piece):
            # a key may be split between two pieces
            seen = tail[-len(LOG_KEY) + 1 :] + piece[:length]
            count += seen.count(LOG_KEY)
            tail, size, reads = bytes(seen[-32:]), size + length, reads + 1
            if reads % 64 == 1:
                most = max(most, memory_mb(node.pid))
    assert tail.removesuffix(END_OF_CHUNKS).endswith(b"}"), tail
    return count, size, most


class Usage:
    """Counters of this process: processor time, pages written to the database, page faults."""

    def __init__(self) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        self.cpu_s = time.process_time()
        written = next(line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("wchar"))
        self.pages = int(written.split()[1]) / resource.getpagesize()
        self.minor, self.major = used.ru_minflt, used.ru_majflt

    def since(self, before: Usage, name: str, count: int) -> dict[str, float]:
        """Return the use since `before` per transaction."""
        return {
            f"{name}_cpu_us": (self.cpu_s - before.cpu_s) / count * 1e6,
            f"{name}_pages": (self.pages - before.pages) / count,
            f"{name}_minor_faults": (self.minor - before.minor) / count,
            f"{name}_major_faults": (self.major - before.major) / count,
        }


def measure_state(place: Path, accounts: int, notes: dict[str, Any], count: int = 4_000, rounds: int = 8) -> Any:
    """Measure blocks of transfers on a chain with `accounts` accounts. The blocks stay in the chain."""
    token = bytes.fromhex(notes["token"])
    found: dict[str, Any] = {"accounts": accounts, "disk_mb": disk_bytes(place) >> 20}
    lanes = ThreadLanes()

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
            measured: list[dict[str, float]] = []
            for _ in range(rounds):
                await core.send(*(make(index) for index in range(count)))
                core.clock.advance(1)
                before = Usage()
                built_block = await core.core.assembler.assemble(30.0)
                assert built_block.body.transaction_count == count, built_block.body.transaction_count
                executed = Usage()
                began = time.perf_counter()
                await core.core.assembler.commit(built_block.header, built_block, core.clock.monotonic())
                taken = time.perf_counter() - began
                written = Usage()
                parts = executed.since(before, "execution", count) | written.since(executed, "commit", count)
                measured.append(
                    {**parts, "cpu_us": (written.cpu_s - before.cpu_s) / count * 1e6, "commit_ms": taken * 1e3}
                )
            best = {
                key: min(one[key] for one in measured) for key in measured[0] if not key.endswith("execution_pages")
            }
            found.update({f"{name}_{key}": round(value, 2) for key, value in best.items()})

    with opened_core(place, lanes) as core:
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


def limited(place: Path, accounts: int, notes: dict[str, Any], limit_mb: int, rounds: int) -> Any:
    """Measure a state in a process of its own, with a memory limit if it is not 0."""
    group = Path(f"/sys/fs/cgroup/memory/ophion-growth-{os.getpid()}")
    if limit_mb:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit_mb << 20))
        (group / "cgroup.procs").write_text(str(os.getpid()))
    return measure_state(place, accounts, notes, rounds=rounds) | ({"memory_limit_mb": limit_mb} if limit_mb else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, required=True, help="directory for chains and plots")
    parser.add_argument("--blocks", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--accounts", type=int, nargs="*", default=[1_000, 100_000])
    parser.add_argument("--calls", type=int, default=4, help="calls a block")
    parser.add_argument("--logs", type=int, default=1, help="logs a call")
    parser.add_argument("--busy", type=int, default=64, help="blocks with calls in each 64 blocks")
    parser.add_argument("--beside", type=int, default=0, help="accounts of the chains of blocks")
    parser.add_argument("--rounds", type=int, default=8, help="blocks of transfers, and of token transfers")
    parser.add_argument("--memory", type=int, default=0, metavar="MB", help="memory limit of the states")
    chosen = parser.parse_args()
    chosen.keep.mkdir(parents=True, exist_ok=True)
    tables: list[tuple[str, list[dict[str, Any]]]] = []
    for size, counts in (("blocks", chosen.blocks), ("accounts", chosen.accounts)):
        rows = []
        for count in sorted(counts):
            growth = (
                Growth(chosen.beside, count, chosen.calls, chosen.logs, chosen.busy)
                if size == "blocks"
                else Growth(accounts=count)
            )
            place = chosen.keep / growth.name
            # each step has a process of its own, because its database closes only when the process ends
            with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
                notes = pool.apply(build, (place, growth))
                if size == "blocks":
                    row = measure_chain(place, growth, notes)
                else:
                    row = pool.apply(limited, (place, count, notes, chosen.memory, chosen.rounds))
            rows.append({**row, "build_s": notes["build_s"]})
            print(json.dumps(rows[-1]), flush=True)
        tables.append((size, rows))
    for size, rows in tables:
        for figure in rows[0] if len(rows) > 1 else ():
            if figure != size:
                (chosen.keep / f"{size}-{figure}.svg").write_text(plot(rows, size, figure))


if __name__ == "__main__":
    main()
