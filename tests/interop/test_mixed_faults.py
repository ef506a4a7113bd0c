"""A mixed QBFT network under load and faults: Ophion, GoQuorum and Besu validators.

A load sends 100 transactions a second to changing nodes. Every minute, one node is killed (SIGKILL) and started again.
The first Ophion node is never killed, so that the growth of its memory is known. The test checks that the chain is one,
that every transaction is in exactly one block, and that all clients have the same nonces and receipts in the end.

MIXED_SECONDS sets the duration (default 150), and MIXED_MEMBERS the number of Ophion, GoQuorum and Besu nodes (default
4,2,1). Every ten seconds, a JSON line goes to `samples` in the path of the test,
and every minute a line to standard output. Needs BESU and GOQUORUM.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from ophion.testing.network import TestNetwork
from ophion.testing.node_process import NodeProcess
from tests.interop.besu import Besu, needs_besu
from tests.interop.goquorum import GoQuorum, keys_in_one_order, needs_goquorum
from tests.interop.partner import Partner, mixed_network
from tests.interop.transaction_load import FUNDS, SENDERS, RpcConnection, TransactionLoad

SECONDS = int(os.environ.get("MIXED_SECONDS", "150"))
PERIOD_S = int(os.environ.get("MIXED_PERIOD", "2"))
RATE = 100
COUNTS = [int(count) for count in os.environ.get("MIXED_MEMBERS", "4,2,1").split(",")]
"""Number of Ophion, GoQuorum and Besu nodes."""
BESU_OPTIONS = ("--data-storage-format=FOREST",)
"""With the default storage, Besu 24.5 imports and verifies a block at once on one state, and then refuses the block."""
KILL_EVERY_S = 60
WARM_UP_S = 600
MAX_DOWN = (sum(COUNTS) - 1) // 3
"""Faults that the network tolerates."""
SAMPLE_EVERY_S = 10
MAX_BEHIND = 10
MAX_SILENCE_S = 180
"""Seconds without a block after which the test fails."""
MAX_SLOPE_MB = 40
"""Growth of the memory per hour above which a run of two hours fails."""


class Member:
    """A validator of any client."""

    def __init__(self, index: int, name: str, node: NodeProcess | Partner) -> None:
        self.index = index
        self.name = f"{name}{index}"
        self.node = node
        self.restart_at = 0.0
        self.last_height = -1
        """Height at the last sample; -1 if the node was down."""
        self.connection = RpcConnection(self.port)

    def port(self) -> int:
        return self.node.ports["json-rpc"] if isinstance(self.node, NodeProcess) else self.node.rpc_port

    def height(self) -> int:
        """Return the height of the node; -1 if it does not answer."""
        try:
            return int(self.connection.result("eth_blockNumber"), 16)
        except ConnectionError:
            return -1

    def block_hash(self, number: int) -> str | None:
        try:
            block = self.connection.result("eth_getBlockByNumber", hex(number), False)
        except ConnectionError:
            return None
        return None if block is None else str(block["hash"])

    def memory_mb(self) -> float:
        """Return the anonymous resident memory in megabytes."""
        try:
            lines = Path(f"/proc/{self.node.pid}/status").read_text().splitlines()
        except OSError:
            return 0.0
        return round(next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0) / 1024, 1)


class MixedFaults:
    """A run: members, load, faults and samples."""

    def __init__(self, path: Path, network: TestNetwork) -> None:
        self.chance = random.Random(36)
        own, quorum, besu = COUNTS
        self.own = [Member(index, "ophion", network.nodes[index]) for index in range(own)]
        self.members = self.own.copy()
        self.members += [Member(index, "goquorum", GoQuorum(network, index)) for index in range(own, own + quorum)]
        first = own + quorum
        self.members += [Member(i, "besu", Besu(network, i, BESU_OPTIONS)) for i in range(first, first + besu)]
        self.load = TransactionLoad([one.port for one in self.members], RATE, self.is_ready, random.Random(100))
        self.kills: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        """Processes that ended although this test has not killed them."""
        self.samples: list[dict[str, Any]] = []
        self._samples_file = path / "samples"
        self._last_block = (0, time.monotonic())
        self._began = time.monotonic()

    def is_ready(self, index: int) -> bool:
        """Return whether a node runs and was near the head at the last sample. Besu ignores transactions until then."""
        one = self.members[index]
        return one.node.is_running and one.last_height >= self.load.height - MAX_BEHIND

    def run(self) -> None:
        for one in reversed(self.members):
            one.node.start()
        self.wait(lambda: min(one.height() for one in self.members) >= 2, 180, "the second block on all nodes")
        self.load.start()
        self._began = time.monotonic()
        next_kill, next_sample, next_check = self._began + KILL_EVERY_S, self._began, self._began + 30
        while time.monotonic() < self._began + SECONDS:
            now = time.monotonic()
            for one in self.members:
                if not one.node.is_running and not one.restart_at:
                    self.ended[one.name] = self.ended.get(one.name, 0) + 1
                    one.restart_at = now
                if one.restart_at and now >= one.restart_at:
                    one.restart_at = 0.0
                    one.node.start()
            if now >= next_kill:
                next_kill += KILL_EVERY_S
                self._kill(now)
            if now >= next_sample:
                next_sample += SAMPLE_EVERY_S
                self._sample(now)
            if now >= next_check:
                next_check += 60
                self._check(now)
            assert not self.load.errors, self.load.errors[:5]
            time.sleep(0.2)

    def _kill(self, now: float) -> None:
        down = [one for one in self.members if not one.node.is_running or one.height() < 0]
        victims = [one for one in self.members[1:] if one not in down]
        if len(down) >= MAX_DOWN or not victims:
            print(f"{now - self._began:.0f} s: no kill, because {[one.name for one in down]} are down", flush=True)
            return
        victim = self.chance.choice(victims)
        victim.node.kill()
        victim.restart_at = now + self.chance.uniform(2, 10)
        self.kills[victim.name] = self.kills.get(victim.name, 0) + 1

    def _sample(self, now: float) -> None:
        memory = {one.name: (one.node.pid, one.memory_mb()) for one in self.members}
        sample = {"s": round(now - self._began, 1), "sent": self.load.sent, "block": self.load.height, "mb": memory}
        self.samples.append(sample)
        for one in self.members:
            one.last_height = one.height() if one.node.is_running else -1
        with self._samples_file.open("a") as file:
            file.write(json.dumps(sample) + "\n")
        if self.load.height > self._last_block[0]:
            self._last_block = (self.load.height, now)
        assert now < self._last_block[1] + MAX_SILENCE_S, f"no block after {self._last_block[0]}"

    def _check(self, now: float) -> None:
        """Compare the chains of all nodes at the lowest head, and print a line."""
        heights = {one.name: one.height() for one in self.members}
        if max(heights.values()) < 0:
            return
        low = min(height for height in heights.values() if height >= 0)
        hashes = {one.name: one.block_hash(low) for one in self.members if heights[one.name] >= 0}
        assert len({found for found in hashes.values() if found is not None}) == 1, f"a fork at {low}: {hashes}"
        line = {
            "s": round(now - self._began),
            "heights": heights,
            "sent": self.load.sent,
            "in blocks": len(self.load.block_of),
            "outstanding": self.load.outstanding,
            "resent": self.load.resent,
            "kills": sum(self.kills.values()),
            "load": os.getloadavg()[0],
            "mb": self.samples[-1]["mb"][self.members[0].name][1],
            "slope_mb_per_h": self.slope(),
        }
        print(json.dumps(line), flush=True)

    def wait(self, condition: Callable[[], bool], limit_s: float, what: str) -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not come: {[one.height() for one in self.members]}"
            time.sleep(0.5)

    def settle(self) -> None:
        """Wait until all transactions are in blocks, and all nodes have all blocks."""
        self.load.pause()
        for one in self.members:
            if not one.node.is_running:
                one.node.start()
        self.wait(lambda: self.load.outstanding == 0, 300, "the last transaction")
        goal = self.load.height
        self.wait(lambda: min(one.height() for one in self.members) >= goal, 1200, f"block {goal} on all nodes")
        hashes = {one.name: one.block_hash(goal) for one in self.members}
        assert len(set(hashes.values())) == 1, hashes
        self._check(time.monotonic())

    def check_transactions(self) -> None:
        """Check on every node that nothing is missing."""
        load = self.load
        assert len(load.block_of) == load.sent
        for one in self.members:
            for key, nonce in zip(SENDERS, load.nonces, strict=True):
                found = one.connection.result("eth_getTransactionCount", "0x" + key.address.hex(), "latest")
                assert int(found, 16) == nonce, f"{one.name}: {found} instead of {nonce}"
        receipts = 0
        for number in range(1, load.height + 1):
            for receipt in self.members[0].connection.result("eth_getBlockReceipts", hex(number)):
                assert receipt["status"] == "0x1", receipt
                assert load.block_of[bytes.fromhex(receipt["transactionHash"][2:])] == number
                receipts += 1
        assert receipts == load.sent
        some = self.chance.sample(sorted(load.block_of), min(1000, load.sent))
        for one in self.members[1:]:
            for found in some:
                receipt = one.connection.result("eth_getTransactionReceipt", "0x" + found.hex())
                assert int(receipt["blockNumber"], 16) == load.block_of[found], one.name

    def slope(self) -> float | None:
        """Return the growth of the memory of the node that was never killed after the warm-up, in MB per hour."""
        name = self.members[0].name
        points = [(one["s"], one["mb"][name][1]) for one in self.samples if one["s"] >= WARM_UP_S]
        return least_squares(points) if len(points) > 12 else None

    def lives(self) -> dict[str, list[float]]:
        """Return the slope of each life of an Ophion process that lasted 15 minutes or longer."""
        found: dict[str, list[float]] = {}
        for one in self.own:
            by_pid: dict[int, list[tuple[float, float]]] = {}
            for sample in self.samples:
                pid, memory = sample["mb"][one.name]
                by_pid.setdefault(pid, []).append((sample["s"], memory))
            for points in by_pid.values():
                late = [point for point in points if point[0] >= points[0][0] + WARM_UP_S]
                if late and late[-1][0] - late[0][0] >= 300:
                    found.setdefault(one.name, []).append(least_squares(late))
        return found

    def report(self) -> dict[str, object]:
        latencies = sorted(self.load.latencies_s)
        return {
            "seconds": self.samples[-1]["s"],
            "blocks": self.load.height,
            "transactions": self.load.sent,
            "median_latency_s": round(median(latencies), 2),
            "p99_s": round(quantiles(latencies, n=100)[98], 2),
            "longest_latency_s": round(latencies[-1], 1),
            "resent": self.load.resent,
            "kills": self.kills,
            "ended": self.ended,
            "redirected": self.load.redirected,
            "refusals": self.load.refusals,
            "slope_mb_per_h": self.slope(),
            "slopes_of_lives": self.lives(),
        }

    def close(self) -> None:
        self.load.stop()
        for one in self.members:
            if one.node.is_running:
                one.node.kill()


def least_squares(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of a line through points of seconds and megabytes, in megabytes per hour."""
    mean_x, mean_y = sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return round(3600 * sum((x - mean_x) * (y - mean_y) for x, y in points) / spread, 2) if spread else 0.0


def mixed_fault_network(path: Path) -> TestNetwork:
    """Return a network of validators whose genesis funds the senders of the load."""
    keys = keys_in_one_order(sum(COUNTS))
    network = mixed_network(
        TestNetwork(path, "qbft", sum(COUNTS), period_s=PERIOD_S, timeout_s=3 * PERIOD_S, validator_keys=keys)
    )
    genesis = json.loads(network.genesis_file.read_text())
    genesis["alloc"].update({key.address.hex(): {"balance": str(FUNDS)} for key in SENDERS})
    network.genesis_file.write_text(json.dumps(genesis))
    return network


@needs_besu
@needs_goquorum
def test_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    faults = MixedFaults(tmp_path, mixed_fault_network(tmp_path))
    try:
        faults.run()
        faults.settle()
        faults.check_transactions()
    finally:
        print(json.dumps(faults.report()), flush=True)
        faults.close()
    assert not faults.ended, faults.ended
    slope = faults.slope()
    assert slope is None or slope <= MAX_SLOPE_MB, f"the memory grows by {slope} MB per hour"
