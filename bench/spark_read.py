"""Read one dataset in Spark with 1, 2 and 4 executor processes, then with 4 while one is killed. Compare the rows.

    python bench/spark_read.py --path=data --genesis=genesis.json [--dataset=traces] [--executors=1,2,4]

Needs pyspark 4 and Java. All processes run on this machine and talk over loopback. Prints one JSON line per run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from ophion.data import open_chain
from ophion.data.spark import register

SOURCES = Path(__file__).resolve().parent.parent / "src"


def session(executors: int) -> Any:
    """Start a cluster of executor processes."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(SOURCES)
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    found = (
        SparkSession.builder.master(f"local-cluster[{executors},1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.executorEnv.PYTHONPATH", str(SOURCES))
        .getOrCreate()
    )
    register(found)
    return found


def executor_pids() -> list[int]:
    """Return the ids of the executor processes below this process."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    parts = [line.split(None, 2) for line in listed.splitlines()]
    below, found = {os.getpid()}, []
    for _ in range(6):
        below |= {int(pid) for pid, parent, *_ in parts if int(parent) in below}
    for pid, _, *arguments in parts:
        if int(pid) in below and "CoarseGrainedExecutorBackend" in " ".join(arguments):
            found.append(int(pid))
    return found


def digest(rows: list[Any]) -> str:
    """Return a hash of the rows that does not depend on their order."""
    return hashlib.sha256("\n".join(sorted(map(str, rows))).encode()).hexdigest()


def plain(row: dict[str, Any]) -> list[Any]:
    """Return the values of a row, with bytes as hexadecimal text."""
    return [value.hex() if isinstance(value, bytes | bytearray) else value for value in row.values()]


def read(options: argparse.Namespace, executors: int, kills: bool) -> tuple[str, int, float]:
    """Return digest and number of rows, and the seconds without the start of the cluster."""
    spark = session(executors)
    try:
        frame = spark.read.format("ophion").option("path", options.path).option("dataset", options.dataset)
        frame = frame.option("genesis", options.genesis).option("blocksPerPartition", str(options.blocks)).load()
        spark.range(executors * 4).repartition(executors * 4).count()
        if kills:
            pids = executor_pids()
            threading.Timer(options.kill_after, os.kill, (pids[0], signal.SIGKILL)).start()
        began = time.perf_counter()
        rows = [plain(row.asDict()) for row in frame.collect()]
        return digest(rows), len(rows), time.perf_counter() - began
    finally:
        spark.stop()


def main() -> None:
    """Print one JSON line per run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", required=True)
    parser.add_argument("--genesis", required=True)
    parser.add_argument("--dataset", default="traces")
    parser.add_argument("--executors", default="1,2,4")
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--kill-after", type=float, default=2.0)
    options = parser.parse_args()
    began = time.perf_counter()
    with open_chain(options.path, genesis=options.genesis) as chain:
        local = chain.dataset(options.dataset, numbers=["decimal"]).to_arrow().to_pylist()
    took = time.perf_counter() - began
    expected = digest([plain(row) for row in local])
    print(json.dumps({"run": "local", "rows": len(local), "s": round(took, 3)}), flush=True)
    counts = [int(count) for count in options.executors.split(",")]
    for count, kills in [*((count, False) for count in counts), (counts[-1], True)]:
        found, rows, seconds = read(options, count, kills)
        report = {"run": f"{count} executors", "killed": kills, "rows": rows, "s": round(seconds, 3)}
        print(json.dumps({**report, "same_rows": found == expected}), flush=True)


if __name__ == "__main__":
    main()
