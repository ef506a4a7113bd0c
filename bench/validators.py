"""Measure what a block costs in networks of many validators: python bench/validators.py [4 7 13 25 50] [--blocks 8]

Starts each network in turn as processes on this machine, with static peers, a period of 5 s and no transactions. After
a few blocks it measures the next blocks and prints one JSON line per network: blocks of a later round, processor time
per block and node, consensus messages and bytes per block of the whole network, and resident memory per node. Messages
and bytes come from the metrics of the nodes. The last line compares the growth between the first and the last network.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.testing.network import TestNetwork
from ophion.testing.node_process import NodeProcess

CONSENSUS = ("IBF", "istanbul")
"""Names of the sub-protocols of consensus."""
START_LIMIT_S = 300
STARTS_AT_ONCE = 8
WARM_UP_BLOCKS = 3


def traffic(node: NodeProcess) -> dict[str, float]:
    """Return the messages and bytes that a node has sent, in total and for consensus."""
    url = f"http://127.0.0.1:{node.ports['metrics']}/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    found = {"consensus_messages": 0.0, "messages": 0.0, "consensus_bytes": 0.0, "socket_bytes": 0.0}
    for line in lines:
        name, _, value = line.rpartition(" ")
        is_consensus = any(f'protocol="{protocol}"' in name for protocol in CONSENSUS)
        if name.startswith("ophion_network_p2p_messages_outbound_total{"):
            found["messages"] += float(value)
            found["consensus_messages"] += float(value) if is_consensus else 0
        elif name.startswith("ophion_network_p2p_bytes_outbound_total{") and is_consensus:
            found["consensus_bytes"] += float(value)
        elif name.startswith("ophion_network_p2p_socket_bytes_total{") and 'direction="outbound"' in name:
            found["socket_bytes"] += float(value)
    return found


def total_traffic(network: TestNetwork) -> dict[str, float]:
    """Return the traffic of all nodes together."""
    each = [traffic(node) for node in network.nodes]
    return {name: sum(one[name] for one in each) for name in each[0]}


def memory_mb(network: TestNetwork) -> int:
    """Return the mean resident memory of a node in megabytes."""
    total = 0
    for node in network.nodes:
        text = Path(f"/proc/{node.pid}/status").read_text()
        total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS"))
    return total // 1024 // len(network.nodes)


def rounds(network: TestNetwork, first: int, last: int) -> list[int]:
    """Return the consensus round in which each block was decided."""
    protocol = Qbft() if network.engine == "qbft" else Ibft2()
    blocks = (network.nodes[0].rpc("eth_getBlockByNumber", hex(number), False) for number in range(first, last + 1))
    return [protocol.decode_extra(bytes.fromhex(block["extraData"][2:])).round for block in blocks]


def is_connected(network: TestNetwork) -> bool:
    """Whether every node is connected to all others."""
    wanted = len(network.nodes) - 1
    return all(int(node.rpc("net_peerCount"), 16) >= wanted for node in network.nodes)


def measure(network: TestNetwork, blocks: int, period_s: int) -> dict[str, object]:
    """Let the network produce blocks; return their processor time, traffic and memory per node."""
    count = len(network.nodes)
    network.wait(lambda: is_connected(network), START_LIMIT_S, "a connection between all validators")
    network.grow(WARM_UP_BLOCKS, START_LIMIT_S)
    # measure from the middle of a period, so that each block counts as a whole
    time.sleep(period_s / 2)
    before, cpu, first = total_traffic(network), network.processor_s(), network.height(0)
    time.sleep(blocks * period_s)
    after, used, last = total_traffic(network), network.processor_s() - cpu, network.height(0)
    made = last - first
    per_block = {name: round((after[name] - before[name]) / max(1, made)) for name in before}
    found = rounds(network, first + 1, last)
    return {
        "validators": count,
        "blocks": made,
        "blocks_expected": blocks,
        "later_rounds": sum(1 for one in found if one > 0),
        "cpu_ms_per_block_and_node": round(used / max(1, made) / count * 1000, 1),
        **per_block,
        "memory_mb": memory_mb(network),
        "same_chain": network.agrees(since=first),
    }


def growth(first: dict[str, float], last: dict[str, float], name: str) -> float:
    """Return the exponent e for which a figure grows like n^e, where n is the number of validators."""
    ratio = max(last[name], 1e-9) / max(first[name], 1e-9)
    return round(math.log(ratio) / math.log(last["validators"] / first["validators"]), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[4, 7, 13, 25, 50])
    parser.add_argument("--engine", default="qbft", choices=["ibft2", "qbft"])
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--period", type=int, default=5)
    chosen = parser.parse_args()
    found = []
    for size in chosen.sizes:
        with tempfile.TemporaryDirectory(prefix="ophion-validators-") as path:
            network = TestNetwork(
                Path(path),
                chosen.engine,
                size,
                period_s=chosen.period,
                timeout_s=2 * chosen.period,
                options=("--metrics-enabled", "--metrics-port=0"),
            )
            try:
                with ThreadPoolExecutor(STARTS_AT_ONCE) as starts:
                    list(starts.map(lambda node: node.start(), network.nodes))
                figures = measure(network, chosen.blocks, chosen.period)
            finally:
                network.close()
            found.append(figures)
            print(json.dumps({"engine": chosen.engine, "period_s": chosen.period, **figures}), flush=True)
    if len(found) > 1:
        names = ("consensus_messages", "consensus_bytes", "messages", "socket_bytes", "cpu_ms_per_block_and_node")
        print(json.dumps({f"{name}_exponent": growth(found[0], found[-1], name) for name in names}))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
