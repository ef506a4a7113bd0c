"""Compare `ophion export` with cryo over JSON-RPC: the time, and whether all columns of all rows are equal.

    python bench/export.py --cryo=/path/to/python [--rounds=3] [--datasets=A,B+C] [--only-time] CHAIN…

A CHAIN is a directory with `blocks.rlp` and `genesis.json`, or the data path of a development network, such as
`bench/tables.py` leaves. `--only-time` does not compare rows. `--cryo` is a Python interpreter with the package cryo.
The script imports each chain. Both tools export the same ranges alternately, beside a node that is started anew in
every round, because a node caches recent traces. Datasets that are joined by `+` are exported by one command of each
tool.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.dataset as arrow_dataset
import pyarrow.parquet as parquet

from ophion.testing.node_process import NodeProcess, processor_s

DATASETS = (
    "blocks", "transactions", "logs", "erc20_transfers", "traces", "native_transfers", "contracts",
    "balance_diffs", "nonce_diffs", "code_diffs", "storage_diffs",
    "balance_diffs+nonce_diffs+code_diffs+storage_diffs", "traces+native_transfers+contracts",
    "traces+native_transfers+contracts+balance_diffs+nonce_diffs+code_diffs+storage_diffs",
)  # fmt: skip
KEYS = ("block_number", "transaction_index", "log_index", "transfer_index", "create_index", "trace_address", "address",
        "slot", "action_type", "action_from", "action_reward_type")  # fmt: skip
OPHION = [str(Path(sys.executable).with_name("ophion"))]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment of both tools. With that variable, Python would compile every module of a checkout at each start."""
NODE = ("--rpc-http-api=ETH,NET,WEB3,TRACE,DEBUG", "--rpc-max-trace-filter-range=100000")

CRYO = """
import sys, time, json, cryo, asyncio
datasets, first, end, url, out = sys.argv[1:]
began = time.perf_counter()
cryo.freeze(datasets.split("+"), blocks=[f"{first}:{end}"], rpc=url, output_dir=out, include_columns=["all"],
            no_verbose=True, max_concurrent_requests=16)
print(json.dumps(time.perf_counter() - began))
"""


class Ran(NamedTuple):
    """Result of a command that has ended."""

    out: str
    seconds: float
    cpu_s: float
    memory_mb: float
    """Peak memory of the command in megabytes; at least the peak of this process."""


def run(*command: Any, may_crash_at_exit: bool = False) -> Ran:
    """Run a command and wait for it."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([str(one) for one in command], stdout=out, stderr=out, env=ENVIRONMENT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        out.seek(0)
        text = out.read().decode()
    if process.returncode != 0 and not may_crash_at_exit:
        raise SystemExit(f"{command}: {text}")
    return Ran(text, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def rows_of(files: list[Path], names: list[str]) -> list[tuple[Any, ...]]:
    """Return all rows of Parquet files, in a fixed order."""
    table = arrow_dataset.dataset(sorted(files), format="parquet").to_table(columns=names)
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    at = [names.index(key) for key in KEYS if key in names]
    return sorted(rows, key=lambda row: tuple((row[one] is not None, row[one]) for one in at))


def differences(ours: Path, theirs: list[Path]) -> dict[str, Any]:
    """Return the common columns whose values differ, each with the first difference."""
    if not theirs:
        return {"cryo": "no file"}
    own = list(ours.rglob("*.parquet"))
    mine, other = (set(parquet.read_schema(files[0]).names) for files in (own, theirs))
    names = sorted(mine & other)
    left, right = rows_of(own, names), rows_of(theirs, names)
    found: dict[str, Any] = {}
    if len(left) != len(right):
        found["rows"] = [len(left), len(right)]
        return found
    for at, name in enumerate(names):
        differing = [(a[at], b[at]) for a, b in zip(left, right, strict=True) if a[at] != b[at]]
        if differing:
            found[name] = {"count": len(differing), "example": repr(differing[0])[:160]}
    missing = sorted(other - mine)
    if missing:
        found["columns only cryo has"] = missing
    return found


def main() -> None:
    """Print one JSON line per chain and dataset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cryo", required=True)
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only-time", action="store_true")
    parser.add_argument("chains", nargs="+", type=Path)
    options = parser.parse_args()
    for chain in options.chains:
        with tempfile.TemporaryDirectory(prefix="ophion-bench-") as folder:
            work = Path(folder)
            data, genesis = chain, "--network=dev"
            if not (chain / "database").exists():
                data, genesis = work / "data", f"--genesis-file={chain / 'genesis.json'}"
                run(*OPHION, "blocks", "import", f"--from={chain / 'blocks.rlp'}", genesis, f"--data-path={data}")
            for dataset in options.datasets.split(","):
                compare(chain.name, dataset, data, genesis, work, options)


def run_cryo(python: str, dataset: str, head: int, url: str, to: Path) -> tuple[float, Ran]:
    """Export with cryo. Returns the seconds without the start of cryo, and the result of the whole process.

    cryo sometimes crashes, so try three times.
    """
    for _ in range(3):
        ran = run(python, "-c", CRYO, dataset, 1, head + 1, url, to, may_crash_at_exit=True)
        seconds = [line for line in ran.out.splitlines() if re.fullmatch(r"[0-9]+\.[0-9e-]+", line)]
        if seconds:
            return float(seconds[-1]), ran
    raise SystemExit(f"cryo {dataset}: {ran.out}")


def compare(chain: str, dataset: str, data: Path, genesis: str, work: Path, options: argparse.Namespace) -> None:
    """Export one dataset, or several together, with both tools and print the comparison."""
    ours_s, inner_s, cryo_s, cryo_process_s, ours_cpu, cryo_cpu = [], [], [], [], [], []
    for turn in range(options.rounds):
        ours, theirs = work / f"ours-{dataset}-{turn}", work / f"cryo-{dataset}-{turn}"
        theirs.mkdir()
        with NodeProcess(data, genesis, *NODE) as node:
            ran = run(
                *OPHION, "export", "parquet", f"--data-path={data}", genesis, f"--to={ours}",
                f"--datasets={dataset.replace('+', ',')}", "--start-block=1", "--u256=binary,string,f64",
            )  # fmt: skip
            ours_s.append(ran.seconds)
            ours_cpu.append(ran.cpu_s)
            inner_s.append(float(re.search(r"([0-9.]+) s\)", ran.out).group(1)))  # type: ignore[union-attr]
            before = processor_s(node.pid)
            url = f"http://127.0.0.1:{node.ports['json-rpc']}"
            seconds, cryo = run_cryo(options.cryo, dataset, node.height, url, theirs)
            cryo_s.append(seconds)
            cryo_process_s.append(cryo.seconds)
            cryo_cpu.append(cryo.cpu_s + processor_s(node.pid) - before)
    rows = sum(parquet.read_metadata(file).num_rows for file in ours.rglob("*.parquet"))
    found: dict[str, Any] = {}
    for name in [] if options.only_time else dataset.split("+"):
        files = list(theirs.glob(f"*__{name}__*.parquet"))
        found |= {f"{name}.{key}": value for key, value in differences(ours / name, files).items()}
    print(
        json.dumps(
            {
                "chain": chain,
                "dataset": dataset,
                "rows": rows,
                "export_s": round(min(inner_s), 3),
                "process_s": round(min(ours_s), 3),
                "cryo_s": round(min(cryo_s), 3),
                "cryo_process_s": round(min(cryo_process_s), 3),
                "ratio": round(min(cryo_s) / min(inner_s), 1),
                "ratio_of_processes": round(min(cryo_process_s) / min(ours_s), 1),
                "ratio_of_processor_time": round(min(cryo_cpu) / min(ours_cpu), 1),
                "cpu_s": round(min(ours_cpu), 3),
                "cryo_and_node_cpu_s": round(min(cryo_cpu), 3),
                "memory_mb": round(ran.memory_mb),
                "differences": found,
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
