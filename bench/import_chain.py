"""Measure the import of a chain into an empty database: time, size, peak anonymous memory. Compares with geth if
available.

    python bench/import_chain.py [--rounds N] [CHAIN]

CHAIN is a folder with genesis.json and blocks.rlp (default: ../shared/bench/clique-30k). Set GETH to a geth binary for
a comparison (1.13.15 is the last version with Clique). Compare only ratios between rows of one run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHAIN = ROOT.parent / "shared" / "bench" / "clique-30k"


@dataclass(frozen=True, slots=True)
class Measured:
    """Result of one measured import."""

    seconds: float
    disk_bytes: int
    anonymous_bytes: int


def ophion(chain: Path, work: Path) -> Measured:
    """Import with the command of this checkout."""
    data = work / "ophion"
    command = [Path(sys.executable).with_name("ophion"), "blocks", "import", f"--from={chain / 'blocks.rlp'}"]
    return _measure([*map(str, command), f"--genesis-file={chain / 'genesis.json'}", f"--data-path={data}"], data)


def geth(chain: Path, work: Path) -> Measured:
    """Import with geth in archive mode. Like Ophion, geth then stores every state."""
    data = work / "geth"
    base = [os.environ["GETH"], "--datadir", str(data)]
    subprocess.run([*base, "init", str(chain / "genesis.json")], check=True, capture_output=True)
    return _measure([*base, "import", "--gcmode", "archive", str(chain / "blocks.rlp")], data)


def _measure(command: Sequence[str], data: Path) -> Measured:
    started = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        peak = 0
        while process.poll() is None:
            peak = max(peak, _anonymous_bytes(process.pid))
            time.sleep(0.005)
        seconds = time.perf_counter() - started
        if process.returncode != 0:
            output.seek(0)
            sys.exit(f"{command[0]} failed:\n{output.read().decode(errors='replace')}")
    disk = sum(path.stat().st_blocks * 512 for path in data.rglob("*") if path.is_file())
    return Measured(seconds, disk, peak)


def _anonymous_bytes(pid: int) -> int:
    """Return the memory of a process in bytes, without memory that files back. The mapped database does not count."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = (line.split() for line in status.splitlines() if line.startswith("RssAnon:"))
    return next((int(line[1]) * 1024 for line in lines), 0)


def main() -> None:
    """Import alternately with Ophion and geth, so that other load affects both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chain", nargs="?", type=Path, default=CHAIN)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if not (arguments.chain / "blocks.rlp").exists():
        sys.exit(f"There is no chain to import in {arguments.chain}: name a folder with genesis.json and blocks.rlp.")
    peers = {"ophion": ophion} | ({"geth": geth} if os.environ.get("GETH") else {})
    results: dict[str, list[Measured]] = {name: [] for name in peers}
    for _ in range(arguments.rounds):
        for name, run in peers.items():
            work = Path(tempfile.mkdtemp(prefix="ophion-bench-"))
            try:
                results[name].append(run(arguments.chain, work))
            finally:
                shutil.rmtree(work)
    print(f"Import of {arguments.chain.name}, {arguments.rounds} rounds")
    print(f"{'':8} {'median s':>9} {'best s':>8} {'disk MB':>8} {'peak anonymous MB':>18}")
    for name, runs in results.items():
        times = [run.seconds for run in runs]
        disk, memory = max(run.disk_bytes for run in runs), max(run.anonymous_bytes for run in runs)
        median, best = statistics.median(times), min(times)
        print(f"{name:8} {median:9.2f} {best:8.2f} {disk / 1e6:8.0f} {memory / 1e6:18.0f}")
    if "geth" in results:
        ratio = statistics.median(run.seconds for run in results["geth"]) / statistics.median(
            run.seconds for run in results["ophion"]
        )
        print(f"Ophion is {ratio:.1f} times as fast")


if __name__ == "__main__":
    main()
