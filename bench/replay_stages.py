"""Measure the stages of an export that executes blocks: python bench/replay_stages.py CHAIN [--rounds 3]

A CHAIN is a directory with `blocks.rlp` and `genesis.json`. Prints one JSON line per set of datasets: milliseconds of
processor time, in one thread, for preparing the blocks, executing them without rows, filling columns, and encoding
columns as Parquet with zstd. The time of columns is the difference of two executions.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ophion.chainspec.genesis import parse_genesis
from ophion.data.database_reader import DatabaseReader
from ophion.data.datasets import datasets_named
from ophion.data.parquet import ParquetFile, write_parquet
from ophion.data.selection import Format, Rows, columns_of
from ophion.native.tables import ReplayStop, replay_tables

SETS = (
    ("balance_diffs", "nonce_diffs", "code_diffs", "storage_diffs"),
    ("traces",),
    ("traces", "native_transfers", "contracts"),
    ("traces", "native_transfers", "contracts", "balance_diffs", "nonce_diffs", "code_diffs", "storage_diffs"),
)


def timed(rounds: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the best processor time in milliseconds, and the last result."""
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        found = work()
        best = min(best, time.process_time() - began)
    return best * 1000, found


def main() -> None:
    """Import the chain and print one line per set of datasets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chain", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    genesis = options.chain / "genesis.json"
    with tempfile.TemporaryDirectory(prefix="ophion-bench-") as folder:
        subprocess.run(
            [sys.executable, "-m", "ophion", "blocks", "import", f"--from={options.chain / 'blocks.rlp'}",
             f"--genesis-file={genesis}", f"--data-path={folder}"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        reader = DatabaseReader(Path(folder), lambda: parse_genesis(genesis.read_bytes()))
        last = reader.head().number
        reader.chain("traces")
        for names in SETS:
            measure(reader, last, names, options.rounds)
        reader.close()


def measure(reader: DatabaseReader, last: int, names: tuple[str, ...], rounds: int) -> None:
    """Print the stages of one set of datasets."""
    tables = [(dataset, columns_of(dataset, Format())) for dataset in datasets_named(names)]
    prepared, blocks = timed(rounds, lambda: reader.chain("traces").traced_blocks(1, last))

    def executed(wanted: list[tuple[str, list[str]]]) -> tuple[float, Any]:
        return timed(
            rounds, lambda: replay_tables(blocks, wanted, Rows().filter(), reader.chain_id, False, ReplayStop(), 2**40)
        )

    without, _ = executed([(dataset.name, []) for dataset, _ in tables])
    whole, found = executed([(dataset.name, [column.name for column in columns]) for dataset, columns in tables])

    def encode() -> int:
        files = [ParquetFile(io.BytesIO(), dataset, columns, False, 1) for dataset, columns in tables]
        write_parquet(files, [found[1]])
        return sum(file.rows for file in files)

    encoded, rows = timed(rounds, encode)
    stages = {"prepare": prepared, "execute": without, "columns": whole - without, "encode": encoded}
    print(
        json.dumps({"datasets": "+".join(names), "rows": rows, **{k: round(v, 1) for k, v in stages.items()}}),
        flush=True,
    )


if __name__ == "__main__":
    main()
