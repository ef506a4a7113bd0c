"""Measure what maintenance costs a node: imports during a backup, and answers during pruning.

    python bench/upkeep.py WORK [--rounds 2] [--turns 3] [--seconds 10]

WORK is the directory of an earlier `bench/state_history.py --work=WORK`. Its blocks are imported with and without
backups of the same database, alternately. Then a node with all states answers `eth_getBalance` while it makes blocks of
new transfers, with and without `--state-history=128` (pruning), alternately. `--rounds 0` skips the imports. Pruning
should last longer than a measurement: the last column shows whether it did.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from ophion.native.crypto import keccak256
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction

OPHION = str(Path(sys.executable).with_name("ophion"))
PAYER = DEV_KEYS[2]


def imported(work: Path, with_backup: bool) -> tuple[float, int]:
    """Import the chain. Returns the seconds, and the number of backups made meanwhile."""
    data, copy = work / "upkeep", work / "upkeep-copy"
    for path in (data, copy):
        shutil.rmtree(path, ignore_errors=True)
    began = time.perf_counter()
    running = subprocess.Popen(
        [OPHION, "blocks", "import", f"--from={work / 'blocks.rlp'}", "--network=dev", f"--data-path={data}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    backups = 0
    time.sleep(1)
    while with_backup and running.poll() is None:
        shutil.rmtree(copy, ignore_errors=True)
        done = subprocess.run(
            [OPHION, "storage", "backup", f"--data-path={data}", f"--to={copy}"], capture_output=True, check=False
        )
        backups += done.returncode == 0
    if running.wait() != 0:
        raise SystemExit("the import failed")
    return time.perf_counter() - began, backups


def answers(work: Path, seconds: float, *options: str) -> tuple[list[float], int, str]:
    """Return the milliseconds of answers, the transfers mined meanwhile, and the node's log of pruned states."""
    data = work / "answers"
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(work / "all", data)
    os.sync()  # write the copied database to disk now, so that the first commit does not wait for that write
    data.with_name("answers.log").unlink(missing_ok=True)
    took: list[float] = []
    with NodeProcess(data, *MINING, "--rpc-http-api=ETH,DEBUG", *options) as node:
        with_writer = NodeProcess(data)
        with_writer.ports = node.ports
        ends = time.perf_counter() + seconds
        sent = 0

        def write() -> None:
            nonlocal sent
            while time.perf_counter() < ends:
                to = keccak256(b"upkeep" + sent.to_bytes(8, "big"))[:20]
                with_writer.receipt(with_writer.send(legacy_transaction(PAYER, sent, to=to, value=1)))
                sent += 1

        writer = threading.Thread(target=write)
        writer.start()
        while (now := time.perf_counter()) < ends:
            node.rpc("eth_getBalance", "0x" + PAYER.address.hex(), "latest")
            took.append((time.perf_counter() - now) * 1000)
            time.sleep(0.002)
        writer.join()
        pruner = node.rpc("debug_metrics").get("pruner")
    if pruner is None:
        return took, sent, "nothing"
    state = "still running" if pruner["running"] else "ended before"
    return took, sent, f"{pruner['states_dropped_total']:.0f} states, {pruner['swept_nodes_total']:.0f} nodes ({state})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    # answers wait for the writer thread at most one switch interval, so make the interval short
    sys.setswitchinterval(0.0005)
    alone, beside, backups = [], [], 0
    for _ in range(options.rounds):
        alone.append(imported(options.work, False)[0])
        seconds, made = imported(options.work, True)
        beside.append(seconds)
        backups += made
    if alone:
        first, second = statistics.median(alone), statistics.median(beside)
        print(f"import alone {first:.1f} s, beside {backups} backups {second:.1f} s: {second / first - 1:+.0%}")
    for _ in range(options.turns):
        for name, flags in (("all states", ()), ("dropping", ("--state-history=128",))):
            took, sent, dropped = answers(options.work, options.seconds, *flags)
            p50, p99 = (statistics.quantiles(took, n=100)[place] for place in (49, 98))
            rate = sent / options.seconds
            print(
                f"{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, worst {max(took):.1f} ms, {rate:.0f} blocks/s;"
                f" dropped {dropped}",
                flush=True,
            )


if __name__ == "__main__":
    main()
