"""Compare the speed of `ophion migrate` and `ophion blocks import` on one chain, and kill a migration several times.

    python bench/migrate.py [--rounds N] [--kills N] [CHAIN]

CHAIN is a folder with genesis.json and blocks.rlp (default: ../shared/bench/clique-30k). The chain is written as Besu
stores it, with the package rocksdict of the extra `ophion[migrate]`. Set GETH to a geth binary to migrate from geth's
LevelDB and Pebble databases too (1.13.15 is the last version with Clique).

The measured commands alternate. Each row is a whole process, so only the ratio between rows of one run means anything.
The target is at least half the speed of `blocks import`.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ophion.testing.besu_database import write_besu_database

ROOT = Path(__file__).resolve().parent.parent
CHAIN = ROOT.parent / "shared" / "bench" / "clique-30k"
OPHION = str(Path(sys.executable).with_name("ophion"))
MAX_WAIT_S = 1.0
"""Maximum seconds from the first line of a run to its kill. The run prints this line before it imports a block."""
EQUAL = " equals "


def write_sources(chain: Path, work: Path) -> dict[str, list[str]]:
    """Write the databases to migrate from. Returns the command-line arguments of each measured command, by name."""
    write_besu_database(work / "besu", chain)
    candidates = {"blocks import": ["blocks", "import", f"--from={chain / 'blocks.rlp'}"]}
    candidates["migrate --from-besu"] = ["migrate", f"--from-besu={work / 'besu'}"]
    if os.environ.get("GETH"):
        for engine in ("leveldb", "pebble"):
            base = [os.environ["GETH"], "--datadir", str(work / engine), "--db.engine", engine]
            subprocess.run([*base, "init", str(chain / "genesis.json")], check=True, capture_output=True)
            subprocess.run([*base, "import", str(chain / "blocks.rlp")], check=True, capture_output=True)
            candidates[f"migrate --from-geth ({engine})"] = ["migrate", f"--from-geth={work / engine}"]
    return candidates


def run(arguments: list[str], chain: Path, data: Path) -> float:
    """Return the seconds of a whole run into an empty directory."""
    shutil.rmtree(data, ignore_errors=True)
    command = [OPHION, *arguments, f"--genesis-file={chain / 'genesis.json'}", f"--data-path={data}"]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return seconds


def run_with_kills(arguments: list[str], chain: Path, data: Path, kills: int, draw: random.Random) -> None:
    """Kill the migration several times during the import, then let it finish. Prints the first block of each run."""
    shutil.rmtree(data, ignore_errors=True)
    command = [OPHION, *arguments, f"--genesis-file={chain / 'genesis.json'}", f"--data-path={data}"]
    begins: list[int] = []
    finished = 0
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        begins.append(int(process.stdout.readline().rpartition(" ")[2]))
        try:
            process.wait(draw.uniform(0.0, MAX_WAIT_S))
            finished += 1
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        process.stdout.close()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = done.stdout.splitlines()[-1] if done.stdout else done.stderr
    if done.returncode or EQUAL not in last:
        sys.exit(f"the migration does not finish after {kills} kills: {last}")
    checked = subprocess.run([OPHION, "storage", "check", f"--data-path={data}"], capture_output=True, check=False)
    state = "the database is sound" if checked.returncode == 0 else "THE DATABASE IS DAMAGED"
    print(f"{kills - finished} runs killed, {finished} had finished before; they began at blocks {begins}")
    print(f"{last}; {state}")


def main() -> None:
    """Run all measured commands alternately, then the migrations with kills."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chain", nargs="?", type=Path, default=CHAIN)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=32)
    arguments = parser.parse_args()
    chain: Path = arguments.chain
    if not (chain / "blocks.rlp").exists():
        sys.exit(f"There is no chain in {chain}: name a folder with genesis.json and blocks.rlp.")
    work = Path(tempfile.mkdtemp(prefix="ophion-bench-"))
    try:
        candidates = write_sources(chain, work)
        times: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(arguments.rounds):
            for name, options in candidates.items():
                times[name].append(run(options, chain, work / "data"))
        base = statistics.median(times["blocks import"])
        print(f"{chain.name}, {arguments.rounds} rounds")
        print(f"{'':32} {'median s':>9} {'best s':>8} {'speed':>6}")
        for name, found in times.items():
            median = statistics.median(found)
            print(f"{name:32} {median:9.2f} {min(found):8.2f} {base / median:6.2f}")
        if arguments.kills:
            options = candidates["migrate --from-besu"]
            run_with_kills(options, chain, work / "data", arguments.kills, random.Random(arguments.seed))
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
