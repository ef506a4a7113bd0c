"""Whatever bytes a client can send to a running node: make fuzz

    python -m tests.fuzz.running_node [--seconds=600] [--seed=1] [--only=http_bytes ...]

Starts a node with every method and every service, and sends it for so long each: bytes that are almost HTTP, frames
that are almost WebSocket, bodies that are almost requests of methods there are. Nothing of it may end in an internal
error, in a traceback or an error line of the log, in a turn of the event loop above 100 ms, or in a node that does not
stop in order. What a turn takes is seen from outside: an honest client asks all the time (tests/abuse/watch.py), and
for how long the loop was at work until it was answered is noted.

Each case follows from a seed and its number. What was sent last is printed when something is found.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ophion.testing.process import NodeProcess
from tests.abuse.target import Target, allow_many_sockets
from tests.abuse.watch import Watcher, memory_mb
from tests.fuzz import http_bytes, json_bodies, websocket_frames
from tests.fuzz.finding import Finding

CLIENTS = 6
LONGEST_TURN_S = 0.1
PEAK_MB = 512
LOOK_S = 1.0
HOST = "127.0.0.1"
NODE = (
    "--rpc-ws-port=0",
    "--graphql-http-port=0",
    "--metrics-enabled",
    "--metrics-port=0",
    "--durable-commits=false",
)
TROUBLE = ("Traceback", " | ERROR", "never retrieved", "panicked")

Case = Callable[[Target, Random], Awaitable[bytes]]
"""Sends something and reads what comes back; what was sent. `Finding` when the answer is not one that may be."""
CASES: dict[str, Case] = {
    "http_bytes": http_bytes.case,
    "websocket_frames": websocket_frames.case,
    "json_bodies": json_bodies.case,
}


@dataclass
class Report:
    """What one kind of input has shown."""

    kind: str
    cases: int = 0
    findings: list[str] = field(default_factory=list)
    turn_s: float = 0.0
    """The longest time the loop was at work before an honest client had its answer."""
    wait_s: float = 0.0
    """The longest time it had to wait, by the clock."""
    peak_mb: float = 0.0
    recent: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=24))

    def find(self, what: str) -> None:
        if what not in self.findings:
            self.findings.append(what)
            print(f"{self.kind}: {what}", flush=True)
            for number, sent in tuple(self.recent):
                print(f"    case {number}: {sent[:400]!r}{'...' if len(sent) > 400 else ''}", flush=True)

    def __str__(self) -> str:
        return (
            f"{self.kind:18} {self.cases:9,} cases   longest turn {self.turn_s * 1000:4.0f} ms"
            f"   longest wait {self.wait_s * 1000:5.0f} ms   memory peak {self.peak_mb:4.0f} MB"
            f"   {'; '.join(self.findings) or 'nothing found'}"
        )


async def fuzzed(kind: str, target: Target, node: NodeProcess, seconds: float, seed: int, times: bool) -> Report:
    """One kind of input for so long; `times`: whether the length of turns is judged."""
    report, end = Report(kind), time.monotonic() + seconds
    numbers = iter(range(sys.maxsize))

    async def client() -> None:
        while time.monotonic() < end and node.is_running:
            number = next(numbers)
            try:
                sent = await CASES[kind](target, Random(f"{kind} {seed} {number}"))
            except Finding as finding:
                report.recent.append((number, finding.sent))
                report.find(str(finding))
            except OSError:
                pass  # cut off, which is an answer too
            else:
                report.recent.append((number, sent))
            report.cases += 1

    async def look(watcher: Watcher) -> None:
        seen_of_log = len(node.output())
        while True:
            await asyncio.sleep(LOOK_S)
            seen = watcher.report()
            report.turn_s, report.wait_s = max(report.turn_s, seen.busy_worst_s), max(report.wait_s, seen.worst_s)
            report.peak_mb = max(report.peak_mb, seen.peak_mb)
            if seen.lost:
                report.find("an honest client had no answer")
            if times and seen.busy_worst_s > LONGEST_TURN_S:
                report.find(f"the loop was at work for {seen.busy_worst_s * 1000:.0f} ms")
            if seen.peak_mb > PEAK_MB:
                report.find(f"{seen.peak_mb:.0f} MB")
            new, seen_of_log = node.output()[seen_of_log:], len(node.output())
            if any(word in new for word in TROUBLE):
                report.find("the log:\n" + new[-3000:])

    with contextlib.closing(Watcher(target.http, node.pid)) as watcher:
        looking = asyncio.create_task(look(watcher))
        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        await asyncio.sleep(2 * LOOK_S)
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
    if not node.is_running:
        report.find("the node has ended:\n" + node.output()[-3000:])
    return report


def target_of(node: NodeProcess) -> Target:
    places = {name: (HOST, port) for name, port in node.ports.items()}
    return Target(places["json-rpc"], places["ws-rpc"], places.get("graphql-http"), places.get("metrics"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="for each kind of input")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", action="append", choices=list(CASES), default=[])
    chosen = parser.parse_args()
    allow_many_sockets()
    reports = []
    print(f"seed {chosen.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder, NodeProcess(Path(folder) / "node", *NODE, command=("dev",)) as node:
        idle = memory_mb(node.pid)
        for kind in chosen.only or CASES:
            report = asyncio.run(fuzzed(kind, target_of(node), node, chosen.seconds, chosen.seed, True))
            print(report, flush=True)
            reports.append(report)
        if node.is_running:
            time.sleep(10)
            print(f"memory {memory_mb(node.pid):.0f} MB after ten seconds, {idle:.0f} MB before it all")
            if node.stop():
                reports[-1].find("the node did not stop in order:\n" + node.output()[-3000:])
    return 1 if any(report.findings for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
