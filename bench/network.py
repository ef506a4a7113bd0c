"""Measure networks of this checkout under load and faults: python bench/network.py [ibft2 qbft] [--seconds 20] [--kill]

Starts validators as processes on this machine (period 1 s, request timeout 2 s). wrk floods the first one with signed
zero-value transfers at gas price 0, one per request, from 64 senders. Prints one JSON line per network: memory of each
node before and after, transactions per second between the second and the last block of the flood, gaps between blocks,
processor time per transaction over all nodes, and whether all nodes have the same chain.

--kill instead kills the next proposer right after a block (SIGKILL) and prints the gaps between the next twelve blocks.
Then it restarts that validator and prints the gaps after that.

--vote-store=etcd://HOST:PORT/NAME stores the votes in a running etcd and also prints what a vote costs there. --idle
measures only this.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ophion.native.crypto import PrivateKey
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.signing import legacy_transaction

SENDERS = 64
IDLE_S = 20
"""Seconds without transactions for the cost of a vote."""
LUA = """local lines = {}
for line in io.lines("%s") do lines[#lines + 1] = line end
local next = 0
request = function()
  next = next %% #lines + 1
  local body = '{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x' .. lines[next] .. '"]}'
  return wrk.format("POST", "/", {["Content-Type"] = "application/json"}, body)
end
"""


def memory_mb(network: TestNetwork) -> list[int]:
    """Return the resident memory of each node in megabytes."""
    found = []
    for node in network.nodes:
        text = Path(f"/proc/{node.pid}/status").read_text()
        found.append(next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) // 1024)
    return found


def watch(
    network: TestNetwork, until: Callable[[list[tuple[float, int]]], bool], index: int = 0
) -> list[tuple[float, int]]:
    """Return the time at which each new block of the node appeared."""
    seen: list[tuple[float, int]] = []
    height = network.height(index)
    while not until(seen):
        now = network.height(index)
        if now > height:
            seen.append((time.perf_counter(), now))
            height = now
        time.sleep(0.005)
    return seen


def gaps_of(seen: list[tuple[float, int]]) -> list[float]:
    return [round(later[0] - before[0], 2) for before, later in pairwise(seen)]


def flood(network: TestNetwork, seconds: int, connections: int, most: int) -> dict[str, object]:
    """Flood the network with transfers and return the measured figures."""
    idle = memory_mb(network)
    seed = time.time_ns() % 2**60
    keys = [PrivateKey((seed * 1000 + number + 1).to_bytes(32, "big")) for number in range(SENDERS)]
    lines = network.path / "transactions"
    with lines.open("w") as file:
        for nonce in range(most // SENDERS):
            for key in keys:
                raw = legacy_transaction(
                    key, nonce, gas_price=0, value=0, to=b"\0" * 18 + b"\xde\xad", chain_id=CHAIN_ID
                )
                file.write(raw.hex() + "\n")
    script = network.path / "load.lua"
    script.write_text(LUA % lines)
    before = network.processor_s()
    url = f"http://127.0.0.1:{network.nodes[0].ports['json-rpc']}/"
    load = subprocess.Popen(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script), url], stdout=subprocess.PIPE, text=True
    )
    # the rate needs two blocks after the first one, and a short flood on a busy machine has fewer
    seen = watch(network, lambda seen: load.poll() is not None and len(seen) >= 3)
    used = network.processor_s() - before
    assert load.stdout is not None
    sent = next((line.split()[1] for line in load.stdout.read().splitlines() if "Requests/sec" in line), "0")
    count = lambda number: int(network.nodes[0].rpc("eth_getBlockTransactionCountByNumber", hex(number)), 16)  # noqa: E731
    (began, first), (ended, last) = seen[1], seen[-1]
    made = [count(number) for number in range(first + 1, last + 1)]
    time.sleep(3)
    return {
        "idle_mb": idle,
        "tps": round(sum(made) / (ended - began)),
        "cpu_us_per_tx": round(used / max(1, sum(made) + count(first) + count(seen[0][1])) * 1e6),
        "largest": max(made),
        "gaps_s": gaps_of(seen),
        "longest_gap_s": max(gaps_of(seen)),
        "submitted_rps": round(float(sent)),
        "after_mb": memory_mb(network),
        "same_chain": network.agrees(since=max(0, last - 30)),
    }


class VoteTimes(NamedTuple):
    """Stored votes of all nodes since their start."""

    buckets: Counter[float]
    """Number of votes by the upper bound of their duration in seconds."""
    total_s: float


def vote_times(network: TestNetwork) -> VoteTimes:
    """Read the histogram of all nodes."""
    name = "ophion_blockchain_vote_store_seconds"
    buckets: Counter[float] = Counter()
    total_s = 0.0
    for node in network.nodes:
        url = f"http://127.0.0.1:{node.ports['metrics']}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                if found := re.match(rf'{name}_bucket{{.*le="([^"]+)".*}} (\S+)', line):
                    buckets[float(found[1])] += int(float(found[2]))
                elif found := re.match(rf"{name}_sum\S* (\S+)", line):
                    total_s += float(found[1])
    return VoteTimes(buckets, total_s)


def vote_cost(before: VoteTimes, after: VoteTimes) -> dict[str, object]:
    """Return the number of stored votes between two moments, their mean time, and their median, interpolated within its
    bucket of the histogram.
    """
    buckets = after.buckets - before.buckets
    votes = max(buckets.values(), default=0)
    mean_s = (after.total_s - before.total_s) / max(1, votes)
    median_s = below_s = below = 0.0
    for bound_s, count in sorted(buckets.items()):
        if 2 * count >= votes > 0:
            median_s = below_s + (bound_s - below_s) * (votes / 2 - below) / (count - below)
            break
        below_s, below = bound_s, count
    return {"votes": votes, "mean_ms": round(1000 * mean_s, 2), "median_ms": round(1000 * median_s, 2)}


def kill(network: TestNetwork) -> dict[str, object]:
    """Kill the next proposer. Returns the gaps between blocks after the kill, and the gaps after the restart of that
    validator.
    """
    miner = lambda number: network.nodes[0].rpc("eth_getBlockByNumber", hex(number), False)["miner"]  # noqa: E731
    places = {"0x" + key.address.hex(): index for index, key in enumerate(network.keys)}
    network.grow(6, 30)
    victim = 0
    while victim == 0:
        height = network.height(0)
        while network.height(0) == height:
            time.sleep(0.002)
        victim = (places[miner(height + 1)] + 1) % len(network.keys)
    died_at, height = time.perf_counter(), network.height(0)
    os.kill(network.nodes[victim].pid, 9)
    seen = [(died_at, height), *watch(network, lambda seen: len(seen) >= 12)]
    network.nodes[victim].kill()
    network.nodes[victim].start()
    time.sleep(6)
    back = watch(network, lambda seen: len(seen) >= 9)
    return {"killed": victim, "gaps_s": gaps_of(seen), "gaps_after_return_s": gaps_of(back), "same": network.agrees()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", default=["ibft2", "qbft"])
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--conns", type=int, default=32)
    parser.add_argument("--most", type=int, default=120_000)
    parser.add_argument("--validators", type=int, default=4)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--vote-store", help="an etcd cluster that is running, as for the option of a node")
    parser.add_argument("--idle", action="store_true", help="only the cost of a vote without transactions")
    chosen = parser.parse_args()
    if chosen.idle and not chosen.vote_store:
        parser.error("--idle needs --vote-store")
    options = ["--tx-pool-max-size=200000"]
    if chosen.vote_store:
        options += [f"--vote-store={chosen.vote_store}", "--metrics-enabled", "--metrics-port=0"]
    for engine in chosen.engines:
        with (
            tempfile.TemporaryDirectory(prefix="ophion-network-") as path,
            TestNetwork(Path(path), engine, chosen.validators, options=options) as network,
        ):
            network.wait(lambda: min(network.heights()) >= 3, 30, "the third block")
            time.sleep(3)
            if chosen.vote_store:
                first = vote_times(network)
                time.sleep(IDLE_S)
                idle = vote_times(network)
                print(json.dumps({"engine": engine, "idle": True, "vote_store": vote_cost(first, idle)}), flush=True)
                if chosen.idle:
                    continue
            found = kill(network) if chosen.kill else flood(network, chosen.seconds, chosen.conns, chosen.most)
            if chosen.vote_store:
                found["vote_store"] = vote_cost(idle, vote_times(network))
            print(json.dumps({"engine": engine, "validators": chosen.validators, **found}), flush=True)


if __name__ == "__main__":
    main()
