"""Measure tables of a large chain: python bench/tables.py --keep DIRECTORY [--transactions 1000000] [--rounds 3]

Builds a chain in the given directory, outside the repository, and keeps it for the next run. Half of its transactions
transfer wei, half transfer a token, between 1,000 accounts. Prints one JSON line for the export of each dataset, and
one for each of twenty questions of an analyst: by `ophion sql` over the chain, and by DuckDB over the exported files.
The time of a question is the best of the rounds, without the start of the process.
"""

from __future__ import annotations

import argparse
import asyncio
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
from growth import SENDERS, Builder, memory_mb, words

from ophion.data import open_chain
from ophion.data.sql import connect
from ophion.native.crypto import keccak256
from ophion.node.datadir import DataDirectory
from ophion.testing.node_core import TestCore, open_core

ACCOUNTS: Final = 1000
BLOCK: Final = 250
POLL_S: Final = 0.01
EVENT: Final = keccak256(b"Transfer(address,address,uint256)").hex()
TOKEN: Final = f"602035600052 600035 33 7f{EVENT} 60206000a3 600035 54 602035 01 600035 55 00"
"""EVM code that transfers the amount in the second word to the account in the first word. It logs the transfer and adds
the amount to the account's slot.
"""
DATASETS: Final = ("blocks", "transactions", "logs", "erc20_transfers", "native_transfers", "traces", "state_diffs")

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


async def build(core: TestCore, count: int) -> None:
    builder = Builder(core)
    await builder.fund()
    token = await builder.deploy(TOKEN)
    accounts = [keccak256(number.to_bytes(4, "big"))[:20] for number in range(ACCOUNTS)]
    for first in range(0, count, BLOCK):
        raws = []
        for index in range(first, min(first + BLOCK, count)):
            key, to = SENDERS[index % len(SENDERS)], accounts[index * 7919 % ACCOUNTS]
            if index % 2:
                raws.append(builder.sign(key, to, value=index))
            else:
                raws.append(builder.sign(key, token, words(int.from_bytes(to, "big"), index)))
        await core.mine(*raws)


def built(place: Path, count: int) -> None:
    if (place / "finished").exists():
        return
    shutil.rmtree(place, ignore_errors=True)
    with DataDirectory.open(place) as opened:
        opened.store()
    began = time.perf_counter()
    with open_core(place / "database") as core:
        asyncio.run(build(core, count))
    (place / "finished").write_text(f"{time.perf_counter() - began:.1f}")


def export(data: Path, to: Path, dataset: str) -> dict[str, Any]:
    """Export one dataset; returns rows, time and peak anonymous memory of the process."""
    command = [sys.executable, "-m", "ophion", "export", "parquet", f"--data-path={data}", f"--datasets={dataset}"]
    began, memory = time.perf_counter(), 0.0
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([*command, f"--to={to}", "--u256=decimal"], stdout=out, stderr=out)
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            memory = max(memory, memory_mb(process.pid))
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
        "export": dataset,
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
    chosen = parser.parse_args()
    data = chosen.keep / f"chain-{chosen.transactions}"
    built(data, chosen.transactions)
    tables = chosen.keep / f"tables-{chosen.transactions}"
    shutil.rmtree(tables, ignore_errors=True)
    for dataset in DATASETS:
        print(json.dumps(export(data, tables / dataset, dataset)), flush=True)
    files = duckdb.connect()
    for name in ("blocks", "transactions", "logs", "erc20_transfers"):
        place = tables / name / name
        files.execute(f"create view {name} as select * from read_parquet('{place}/*/*.parquet')")
    with open_chain(data) as chain:
        live, middle = connect(chain, []), chain.reader.head().number // 2
        for question in QUESTIONS:
            text = question.format(middle=middle)
            found = {"chain_s": best(live, text, chosen.rounds), "files_s": best(files, text, chosen.rounds)}
            print(json.dumps({"question": question, **found}), flush=True)


if __name__ == "__main__":
    main()
