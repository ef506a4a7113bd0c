"""The Spark format `ophion` returns the rows of a local read, even if one of several executor processes is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.data import open_chain
from ophion.errors import CommandError
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.conftest import ROOT

pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")
pytest.importorskip("pyspark", minversion="4", reason="pyspark 4 is not installed")
from ophion.data.spark import OphionReader, Plan, register

RICH = DEV_KEYS[1]
MASTER = os.environ.get("OPHION_SPARK_MASTER", "local[2]")
"""Spark master. `local-cluster[4,1,512]` has four executor processes; the default is fast."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spark") / "data"
    with NodeProcess(path, *MINING) as running:
        for nonce in range(6):
            running.receipt(running.send(legacy_transaction(RICH, nonce, to=bytes([nonce + 1]) * 20, value=10**18)))
    return path


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    session = (
        SparkSession.builder.master(MASTER)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    register(session)
    yield session
    session.stop()


@pytest.mark.parametrize("dataset", ["transactions", "traces", "balance_diffs"])
def test_rows_are_those_of_a_local_read(spark: Any, data: Path, dataset: str) -> None:
    options = {"path": str(data), "dataset": dataset, "blocksPerPartition": "2", "startBlock": "1"}
    frame = spark.read.format("ophion").options(**options).load()
    found = frame.collect()
    with open_chain(data) as chain:
        last = chain.reader.head().number
        expected = chain.dataset(dataset, blocks=(1, last), numbers=["decimal"]).to_arrow().to_pylist()
    rows = [{name: bytes(v) if isinstance(v, bytearray) else v for name, v in row.asDict().items()} for row in found]
    assert sorted(map(str, rows)) == sorted(map(str, expected))
    assert len(rows) >= 6


def test_options_are_checked(data: Path) -> None:
    for options, problem in [
        ({"path": str(data), "rpc": "http://localhost"}, "one option: path, or rpc"),
        ({"path": str(data), "dataset": "log"}, "There is no dataset 'log'"),
        ({"path": str(data), "startBlock": "one"}, "startblock must be a number"),
        ({"path": str(data), "block": "1"}, "Unknown option 'block'"),
        ({"path": str(data), "dataset": "blocks", "address": "0x" + "11" * 20}, "no filter --address"),
        ({"path": str(data), "u256": "float"}, "forms of numbers"),
    ]:
        with pytest.raises(CommandError, match=problem):
            Plan(options)
    with pytest.raises(CommandError, match="There is no block 99"):
        OphionReader(Plan({"path": str(data), "startBlock": "99"})).partitions()


def test_a_read_of_another_chain_is_refused(data: Path) -> None:
    reader = OphionReader(Plan({"path": str(data), "dataset": "blocks"}))
    (partition,) = reader.partitions()
    assert sum(batch.num_rows for batch in reader.read(partition)) == partition.last + 1
    partition.last_hash = bytes(32)
    with pytest.raises(CommandError, match="has another block"):
        list(reader.read(partition))


@pytest.mark.skipif("cluster" not in MASTER, reason="OPHION_SPARK_MASTER names no cluster of executor processes")
def test_a_killed_executor_changes_nothing(spark: Any, data: Path) -> None:
    """Kill one executor process of this session while tasks wait, and compare the rows."""

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        import time

        time.sleep(3)
        yield from batches

    frame = spark.read.format("ophion").options(path=str(data), dataset="transactions", blocksPerPartition="1").load()
    expected = sorted(map(str, frame.collect()))
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    driver = spark.sparkContext._gateway.proc.pid
    executors = [
        int(line.split()[0])
        for line in listed.splitlines()
        if "CoarseGrainedExecutorBackend" in line and int(line.split()[1]) == driver
    ]
    assert executors
    slow = frame.mapInArrow(slowly, frame.schema)
    killer = threading.Timer(2, os.kill, (executors[0], signal.SIGKILL))
    killer.start()
    assert sorted(map(str, slow.collect())) == expected
    killer.join()
