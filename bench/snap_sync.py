"""Compare full synchronisation with snap synchronisation: python bench/snap_sync.py [CHAIN] [--blocks N] …

CHAIN is a folder with genesis.json and blocks.rlp. Without it, a QBFT chain of four validators is made, whose blocks
create accounts, contracts with a storage of their own, and slots of one large storage. Full: a new node fetches and
executes every block from a peer. Snap: a new node fetches headers and a state from the same peer. Both times are from
the start of the process until RPC answers with the state of the head. Both nodes must have the same head, and so the
same state root, and pass `storage check`. Then the snap node is started again, until it has all bodies and receipts.
With --kills, a third node is killed on the way that many times, and must pass the same checks.

SERVER is a data path with the chain, from an earlier run: --server=SERVER keeps it, or uses it if it exists.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from checkpoint_sync import Measured, ophion, processor_s, time_to_head

from ophion.testing.busy_chain import make_chain
from ophion.testing.node_process import COMMAND, NodeProcess, environment

_PEERS = ("--p2p-port=0", "--discovery-enabled=false")
_STEPS = ("downloading headers peer", "downloading state number", "receipts of the last blocks", "state complete")


def compare(chain: Path, work: Path, kills: int, served: Path) -> None:
    genesis = f"--genesis-file={chain / 'genesis.json'}"
    if not served.exists():
        ophion("blocks", "import", f"--from={chain / 'blocks.rlp'}", genesis, f"--data-path={served}")
    with NodeProcess(served, genesis, *_PEERS) as server:
        height = server.height
        (work / "static.json").write_text(json.dumps([server.rpc("net_enode")]))
        static = f"--static-nodes-file={work / 'static.json'}"
        snap = time_to_head(work / "snap", height, genesis, static, "--sync-mode=SNAP")
        full = time_to_head(work / "full", height, genesis, static)
        if full.head != snap.head:
            sys.exit(f"the heads differ: {full.head} and {snap.head}")
        print(f"{height:,} blocks, load {os.getloadavg()[0]:.0f}")
        for name, one in (("full", full), ("snap", snap)):
            print(f"{name:<10} {one.seconds:7.1f} s to the head, {one.processor_s:7.1f} s of processor time")
        print(f"ratio      {full.seconds / snap.seconds:7.1f}   {full.processor_s / snap.processor_s:23.1f}")
        for line in snap.output.splitlines():
            if any(step in line for step in _STEPS):
                print(line)
        seconds, used = _history(work / "snap", genesis, static)
        print(f"history    {seconds:7.1f} s after a restart, {used:7.1f} s of processor time")
        if kills:
            killed = _killed(work / "killed", height, kills, snap.seconds + seconds / 2, genesis, static)
            if killed.head != full.head:
                sys.exit(f"the heads differ: {full.head} and {killed.head}")
            _history(work / "killed", genesis, static)


def _history(data: Path, *options: str) -> tuple[float, float]:
    """Start a node, wait until all blocks have bodies and receipts, and check its database. Returns the seconds and the
    processor time.
    """
    began, used = time.monotonic(), processor_s()
    with NodeProcess(data, *options, *_PEERS) as node:
        while node.rpc("eth_capabilities")["receipts"]["oldestBlock"] != "0x0":
            time.sleep(0.1)
        seconds = time.monotonic() - began
    used = processor_s() - used
    ophion("storage", "check", f"--data-path={data}")
    return seconds, used


def _killed(data: Path, height: int, kills: int, seconds: float, *options: str) -> Measured:
    """Kill a node at random moments of its synchronisation, then let it finish."""
    chosen = random.Random(5)
    command = [*COMMAND, f"--data-path={data}", *options, *_PEERS, "--sync-mode=SNAP"]
    stages = []
    for _ in range(kills):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()) as one:
            # each start continues the killed run, so run for about one share of a whole synchronisation
            time.sleep(1 + chosen.uniform(0, max(1.0, 2 * seconds / kills)))
            one.kill()
        stages.append("database" if (data / "database").exists() else "snap")
    found = time_to_head(data, height, *options, "--sync-mode=SNAP")
    print(f"killed {kills} times ({stages.count('snap')} before the end), then {found.seconds:.1f} s to the head")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chain", nargs="?", type=Path)
    parser.add_argument("--blocks", type=int, default=20_000)
    parser.add_argument("--accounts", type=int, default=200_000)
    parser.add_argument("--slots", type=int, default=100_000)
    parser.add_argument("--contracts", type=int, default=0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--server", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        chain = options.chain
        if chain is None:
            sizes = (options.blocks, options.accounts, options.slots, options.contracts)
            chain = make_chain(Path(work) / "chain", "qbft", *sizes)
        compare(chain, Path(work), options.kills, options.server or Path(work) / "server")


if __name__ == "__main__":
    main()
