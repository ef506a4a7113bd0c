"""Fuzzes a running node with all kinds of client input: make fuzz

    python -m tests.fuzz.running_node [--seconds=600] [--seed=1] [--only=http_bytes ...]

The script starts nodes with every method and every service, and sends each kind of input for `--seconds`: mutated HTTP,
mutated WebSocket frames, mutated JSON-RPC requests. The node must not answer with an internal error, log a traceback or
an error, need more than 100 ms for one iteration of the event loop, or fail to stop. The duration of an iteration is
the processor time of the loop's thread (loop_turns.py). The script prints the stack of the longest iteration. The
latency of an honest client (tests/abuse/watch.py) shows how busy the machine was.

Seed and number determine each case. After a finding, the script prints the last input.
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

from ophion.testing.node_process import NodeProcess
from tests.abuse.target import Place, Target, allow_many_sockets
from tests.abuse.watch import Watcher
from tests.fuzz import http_bytes, json_bodies, loop_turns, websocket_frames
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
"""Sends input and reads the answer; returns the input. Raises `Finding` for a forbidden answer."""
CASES: dict[str, Case] = {
    "http_bytes": http_bytes.case,
    "websocket_frames": websocket_frames.case,
    "json_bodies": json_bodies.case,
}


@dataclass
class Report:
    """Results of one kind of input."""

    kind: str
    cases: int = 0
    findings: list[str] = field(default_factory=list)
    turn_s: float = 0.0
    """Longest iteration of the event loop, in processor time of its thread."""
    doing: list[str] = field(default_factory=list)
    """Stack of the longest iteration of the event loop, if that iteration was long."""
    wait_s: float = 0.0
    """Longest latency of an honest client."""
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
        ) + "".join(f"\n    in the longest turn: {one}" for one in self.doing)


async def fuzzed(kind: str, node: NodeProcess, seconds: float, seed: int, longest_s: float = LONGEST_TURN_S) -> Report:
    """Send one kind of input for some seconds. No iteration of the event loop may be longer than `longest_s`."""
    target = target_of(node)
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
                pass  # the node may close the connection instead of answering
            else:
                report.recent.append((number, sent))
            report.cases += 1

    async def look(watcher: Watcher) -> None:
        seen_of_log = len(node.output())
        while True:
            await asyncio.sleep(LOOK_S)
            seen = watcher.report()
            report.turn_s, report.doing = loop_turns.longest(turns_of(node))
            report.wait_s = max(report.wait_s, seen.worst_s)
            report.peak_mb = max(report.peak_mb, seen.peak_mb)
            if seen.lost:
                report.find("an honest client had no answer")
            if report.turn_s > longest_s:
                report.find(f"a turn of the loop took {report.turn_s * 1000:.0f} ms: {report.doing}")
            if seen.peak_mb > PEAK_MB:
                report.find(f"{seen.peak_mb:.0f} MB")
            new, seen_of_log = node.output()[seen_of_log:], len(node.output())
            if any(word in new for word in TROUBLE):
                report.find("the log:\n" + new[-3000:])

    with contextlib.closing(Watcher(target.http.url, node.pid)) as watcher:
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
    places = {name: Place(HOST, port) for name, port in node.ports.items()}
    return Target(places["json-rpc"], places["ws-rpc"], places.get("graphql-http"), places.get("metrics"))


def watched_node(folder: Path) -> NodeProcess:
    """Return a node that records the iterations of its event loop."""
    path = folder / "node"
    launcher = (sys.executable, "-m", "tests.fuzz.loop_turns", str(path.with_name("turns")))
    return NodeProcess(path, *NODE, command=("dev",), launcher=launcher)


def turns_of(node: NodeProcess) -> Path:
    return node.data_path.with_name("turns")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="for each kind of input")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", action="append", choices=list(CASES), default=[])
    chosen = parser.parse_args()
    allow_many_sockets()
    reports = []
    print(f"seed {chosen.seed}", flush=True)
    for kind in chosen.only or CASES:
        with tempfile.TemporaryDirectory() as folder, watched_node(Path(folder)) as node:
            report = asyncio.run(fuzzed(kind, node, chosen.seconds, chosen.seed))
            if node.is_running and node.stop():
                report.find("the node did not stop in order:\n" + node.output()[-3000:])
            print(report, flush=True)
            reports.append(report)
    found = [report.kind for report in reports if report.findings]
    print(f"FOUND SOMETHING: {', '.join(found)}" if found else "nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
