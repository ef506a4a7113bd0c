"""Kill `ophion export --follow` on the chain of tables.py: python bench/export_kills.py --chain DIRECTORY [--kills 50]

A node continues the QBFT chain that `tables.py` has built, under a constant load. Exports of blocks, transactions and
logs follow it; each gets SIGKILL at a random moment. Every `--fresh` kills, the export starts with an empty directory,
so that kills hit files of old blocks as well as those of new blocks. After each kill, every listed file must have the
listed size and rows, and no block may be listed twice. At the end, the export is completed, and its rows are compared
with those of an export without kills. Prints JSON lines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import duckdb
import lateness
import pyarrow.parquet as parquet
import transfer_chain

from ophion.testing.network import CHAIN_ID

LOAD_S: Final = 2
"""Seconds of load that are signed at a time."""
KEYS: Final = {
    "blocks": "block_number",
    "transactions": "transaction_hash",
    "logs": "(block_number, log_index)",
}


async def load(port: int, rate: float) -> None:
    """Send transfers at a fixed rate until this process ends."""
    made = lateness.transactions(int(rate * LOAD_S), CHAIN_ID)
    while True:
        following = asyncio.to_thread(lateness.transactions, len(made), CHAIN_ID)
        made, _ = await asyncio.gather(following, lateness.load(port, made, rate))


def run_load(port: int, rate: float) -> None:
    asyncio.run(load(port, rate))


def export(data: Path, to: Path, chosen: argparse.Namespace, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ophion", "export", "parquet", f"--data-path={data}", f"--to={to}"]
    size = f"--blocks-per-file={chosen.blocks_per_file}"
    return subprocess.Popen([*command, "--u256=decimal", size, *options], stdout=subprocess.PIPE, text=True)


def listed(to: Path) -> tuple[int, int]:
    """Check all listed files. Returns their number and their rows."""
    if not (to / "_manifest.json").exists():
        return 0, 0
    found = [0, 0]
    for name, dataset in json.loads((to / "_manifest.json").read_bytes())["datasets"].items():
        end = -1
        for file in dataset["files"]:
            assert file["first"] > end, (name, file)
            end = file["last"]
            path = to / file["path"]
            assert path.stat().st_size == file["size"], file
            assert parquet.read_metadata(path).num_rows == file["rows"], file
            found = [found[0] + 1, found[1] + file["rows"]]
    return found[0], found[1]


def kill_followers(data: Path, to: Path, chosen: argparse.Namespace) -> None:
    chance = random.Random(chosen.seed)
    for kill in range(chosen.kills):
        if kill % chosen.fresh == 0:
            shutil.rmtree(to, ignore_errors=True)
        before = listed(to)
        moment = chance.uniform(0.1, chosen.longest)
        with export(data, to, chosen, "--follow", "--final-depth=0") as process:
            time.sleep(moment)
            assert process.poll() is None, "the export has ended by itself"
            process.kill()
        left = len(list(to.rglob(".unfinished-*")))
        files, rows = listed(to)
        found = {"kill": kill + 1, "after_s": round(moment, 2), "files": files, "rows": rows, "unfinished": left}
        print(json.dumps({**found, "files_before": before[0], "rows_before": before[1]}), flush=True)


def rows_of(to: Path) -> dict[str, Any]:
    """Count the rows of each dataset and its different keys, and compute a hash of all rows in any order."""
    found = {}
    with duckdb.connect() as connection:
        for name, key in KEYS.items():
            files = f"read_parquet('{to}/{name}/from=*/part-*.parquet', hive_partitioning = false)"
            query = f"select count(*), count(distinct {key}), sum(hash(t)::hugeint)::varchar from {files} t"
            found[name] = connection.execute(query).fetchone()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chain", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--fresh", type=int, default=10)
    parser.add_argument("--longest", type=float, default=8.0, help="seconds before a kill, at most")
    parser.add_argument("--rate", type=float, default=2000)
    parser.add_argument("--blocks-per-file", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=35)
    chosen = parser.parse_args()
    killed, whole = chosen.chain / "killed", chosen.chain / "whole"
    for place in (killed, whole):
        shutil.rmtree(place, ignore_errors=True)
    with lateness.started("qbft", chosen.chain, chosen.chain) as node:
        first = node.height
        sender = multiprocessing.Process(target=run_load, args=(node.ports["json-rpc"], chosen.rate), daemon=True)
        sender.start()
        began = time.perf_counter()
        kill_followers(transfer_chain.data_path(chosen.chain), killed, chosen)
        lasted = time.perf_counter() - began
        sender.terminate()
        sender.join()
        head = node.height
    print(json.dumps({"blocks_made": head - first, "head": head, "seconds": round(lasted, 1)}), flush=True)
    found = {}
    for to in (killed, whole):
        with export(transfer_chain.data_path(chosen.chain), to, chosen, f"--end-block={head + 1}") as process:
            said = process.communicate()[0].splitlines()[-1]
        assert process.returncode == 0, said
        listed(to)
        found[to] = rows_of(to)
        print(json.dumps({"export": to.name, "result": said, "rows": found[to]}), flush=True)
    assert found[killed] == found[whole]
    assert all(rows == keys for rows, keys, _ in found[whole].values())
    print(json.dumps({"kills": chosen.kills, "every_row_once": True}), flush=True)


if __name__ == "__main__":
    main()
