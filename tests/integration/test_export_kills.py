"""`ophion export --follow` is killed at random moments while a node makes blocks. Every row is exported exactly once.

`OPHION_EXPORT_KILLS` sets the number of kills.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ophion.data import open_chain
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.integration.command import environment, ophion

pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")
import pyarrow.dataset as arrow_dataset
import pyarrow.parquet as parquet

KILLS = int(os.environ.get("OPHION_EXPORT_KILLS", "10"))
BLOCKS_PER_FILE = 4
RICH = DEV_KEYS[1]
DATASETS = ("blocks", "transactions")
FOLLOW = """
import os, random, signal, sys, time
from pathlib import Path

from ophion.data.database_reader import DatabaseReader
from ophion.data.datasets import datasets_named
from ophion.data.export import Export, ExportPlan
from ophion.data.continuous_export import Follower
from ophion.data.optional_packages import require
from ophion.data.export_target import open_target

data, to, kills, blocks = sys.argv[1:]
require("pyarrow.parquet")
chance = random.Random(35)


def follow(began):
    os.write(began, b"1")
    reader = DatabaseReader(Path(data))
    plan = ExportPlan(datasets_named(("blocks", "transactions")), blocks_per_file=int(blocks), workers=2)
    export = Export(reader, open_target(to), plan)
    Follower(export, reader, 2, lambda seconds: time.sleep(0.01) is None).run(0, lambda last, result: None)


def last_change():
    try:
        return (Path(to) / "_manifest.json").stat().st_mtime_ns
    except FileNotFoundError:
        return 0


for kill in range(int(kills)):
    begins, began = os.pipe()
    before = last_change()
    child = os.fork()
    if child == 0:
        follow(began)
    os.read(begins, 1)
    while kill % 2 and last_change() == before:  # every other follower makes progress first
        time.sleep(0.001)
    time.sleep(chance.uniform(0.0, 0.5))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(begins)
    os.close(began)
"""
"""Script that forks followers and kills each at a random moment. The followers share the imports, so most kills hit a
follower at work.
"""


def test_every_row_is_there_once_after_kills(tmp_path: Path) -> None:
    to = tmp_path / "tables"
    with NodeProcess(tmp_path / "data", *MINING) as node:
        ends = threading.Event()
        sender = threading.Thread(target=send_until, args=(node, ends))
        sender.start()
        try:
            driver = [sys.executable, "-c", FOLLOW, str(node.data_path), str(to), str(KILLS), str(BLOCKS_PER_FILE)]
            ran = subprocess.run(driver, env=environment(), capture_output=True, text=True, timeout=600, check=False)
            assert ran.returncode == 0, ran.stderr[-2000:]
            assert "Error" not in ran.stderr
        finally:
            ends.set()
            sender.join()
        head = node.height
        check(to, head, complete=False)
        command = ("export", "parquet", f"--data-path={node.data_path}", f"--to={to}", "--datasets=blocks,transactions")
        ophion(*command, f"--blocks-per-file={BLOCKS_PER_FILE}", f"--end-block={head + 1}").succeeded()
        check(to, head, complete=True)
        with open_chain(node.data_path) as chain:
            expected = chain.transactions(columns=["transaction_hash"], blocks=(0, head)).to_arrow()
    found = arrow_dataset.dataset(to / "transactions", partitioning="hive").to_table(columns=["transaction_hash"])
    assert sorted(found["transaction_hash"].to_pylist()) == sorted(expected["transaction_hash"].to_pylist())
    assert found.num_rows > 0


def send_until(node: NodeProcess, ends: threading.Event) -> None:
    nonce = 0
    while not ends.wait(0.02):
        node.send(legacy_transaction(RICH, nonce, to=bytes([9]) * 20, value=1))
        nonce += 1


def check(to: Path, head: int, complete: bool) -> None:
    """Check that the manifest lists every block at most once, and that each listed file holds the listed blocks."""
    manifest = json.loads((to / "_manifest.json").read_bytes())
    for name in DATASETS:
        numbers: list[int] = []
        for file in manifest["datasets"][name]["files"]:
            numbers += range(file["first"], file["last"] + 1)
            assert parquet.read_metadata(to / file["path"]).num_rows == file["rows"]
        assert len(numbers) == len(set(numbers))
        assert not complete or sorted(numbers) == list(range(head + 1))
