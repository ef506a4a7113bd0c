"""Measure tables of a large chain: python bench/tables.py --keep DIRECTORY [--transactions 1000000] [--rounds 3]

Builds a chain in the given directory, outside the repository, and keeps it for the next run; an interrupted build
continues. Prints one JSON line for each export, and one for each of twenty questions of an analyst: by `ophion sql`
over the chain, and by DuckDB over the exported files. The time of a question is the best of the rounds, without the
start of the process. `--only-export` asks no questions.

`lateness.py --chain` continues the chain with a node, and the export of blocks, transactions and logs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import duckdb
import transfer_chain

from ophion.data import open_chain
from ophion.data.sql import connect

POLL_S: Final = 0.01
STORED: Final = "blocks,transactions,logs"
EXECUTED: Final = "native_transfers,traces,contracts,address_appearances,state_diffs"
DATASETS: Final = (STORED, "erc20_transfers", "traces", EXECUTED)

QUESTIONS: Final = (
    "select count(*) from transactions",
    "select from_address, count(*) n from transactions group by 1 order by n desc limit 10",
    "select to_address, count(*) n from transactions group by 1 order by n desc limit 10",
    "select timestamp // 86400 d, count(*) from transactions group by 1 order by 1",
    "select timestamp // 3600 h, sum(value_decimal) from transactions group by 1 order by 1",
    "select to_address, sum(gas_used) from transactions where n_input_bytes > 0 group by 1 order by 2 desc limit 10",
    "select sum(gas_used * effective_gas_price::hugeint) from transactions",
    "select success, count(*) from transactions group by 1",
    "select avg(gas_used), max(gas_used), quantile_cont(gas_used, 0.99) from transactions",
    "select block_number, count(*) n from transactions group by 1 order by n desc, 1 limit 10",
    "select avg(gas_used::double / gas_limit) from blocks",
    "select avg(n_transactions), max(size) from blocks",
    "select count(distinct address) from logs",
    "select topic0, count(*) from logs group by 1 order by 2 desc",
    "select erc20, sum(value_decimal), count(*) from erc20_transfers group by 1",
    "select to_address, sum(value_decimal) s from erc20_transfers where block_number <= {middle} group by 1 order by s"
    " desc limit 10",
    "select from_address, sum(value_decimal) s from erc20_transfers group by 1 order by s desc limit 10",
    "select count(*) from logs where block_number between {middle} and {middle} + 100",
    "select b.author, sum(t.gas_used) from transactions t join blocks b using (block_number) group by 1",
    "select t.from_address, count(*) from erc20_transfers e join transactions t using (transaction_hash)"
    " where e.block_number > {middle} and t.block_number > {middle} group by 1 order by 2 desc limit 5",
)


def peak_mb(pid: int) -> float:
    """Return the peak memory of a process so far, with the pages of mapped files."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    # the status of a process that has just ended has no such line
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0) / 1024


def export(place: Path, to: Path, datasets: str) -> dict[str, Any]:
    """Export datasets with one command; returns rows, time and peak memory of the process."""
    command = [sys.executable, "-m", "ophion", "export", "parquet", f"--datasets={datasets}"]
    command += [f"--data-path={transfer_chain.data_path(place)}", f"--genesis-file={place / 'genesis.json'}"]
    began, memory = time.perf_counter(), 0.0
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([*command, f"--to={to}", "--u256=decimal"], stdout=out, stderr=out)
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            memory = max(memory, peak_mb(process.pid))
            time.sleep(POLL_S)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read()
    found = re.search(r"Exported ([0-9,]+) rows", said)
    if found is None:
        raise SystemExit(said)
    rows = int(found.group(1).replace(",", ""))
    return {
        "export": datasets,
        "rows": rows,
        "process_s": round(seconds, 3),
        "rows_per_s": round(rows / seconds),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "memory_mb": round(memory),
    }


def best(connection: Any, question: str, rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        connection.execute(question).fetchall()
        taken.append(time.perf_counter() - began)
    return round(min(taken), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only-export", action="store_true")
    chosen = parser.parse_args()
    place = chosen.keep / f"transfers-{chosen.transactions}"
    transfer_chain.build(place, chosen.transactions)
    tables = place / "tables"
    for dataset in DATASETS:
        to = tables if dataset == STORED else place / "others"
        shutil.rmtree(to, ignore_errors=True)
        print(json.dumps(export(place, to, dataset)), flush=True)
    if not chosen.only_export:
        ask(place, tables, chosen.rounds)


def ask(place: Path, tables: Path, rounds: int) -> None:
    """Print the times of all questions."""
    export(place, tables, "erc20_transfers")
    files = duckdb.connect()
    for name in ("blocks", "transactions", "logs", "erc20_transfers"):
        files.execute(f"create view {name} as select * from read_parquet('{tables / name}/*/*.parquet')")
    with open_chain(transfer_chain.data_path(place), genesis=place / "genesis.json") as chain:
        live, middle = connect(chain, []), chain.reader.head().number // 2
        for question in QUESTIONS:
            text = question.format(middle=middle)
            found = {"chain_s": best(live, text, rounds), "files_s": best(files, text, rounds)}
            print(json.dumps({"question": question, **found}), flush=True)


if __name__ == "__main__":
    main()
