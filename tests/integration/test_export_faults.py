"""Tests `ophion export` with a full or read-only disk and with pruned states: one clear error, no broken file."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ophion.native.store import RULES_KEY, open_store
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import OPHION, environment, ophion
from tests.integration.test_robust_disk import own_file_systems

pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")
import pyarrow.parquet as parquet

RICH = DEV_KEYS[1]
BLOCKS = 24
SMALL_DISK_KIB = 64


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a chain whose blocks hold more data than the small disk, without the states of its first blocks."""
    path = tmp_path_factory.mktemp("faults") / "data"
    with NodeProcess(path, *MINING) as node:
        for nonce in range(BLOCKS):
            send(node, nonce)
        assert node.stop() == 0
    with NodeProcess(path, *MINING, "--state-history=16") as node:
        send(node, BLOCKS)
        wait_for(lambda: "pruned old states states=" in node.output())
        assert node.stop() == 0
    return path


def send(node: NodeProcess, nonce: int) -> None:
    content = random.Random(nonce).randbytes(4096)
    node.receipt(node.send(legacy_transaction(RICH, nonce, to=bytes([1]) * 20, data=content, gas=300_000)))


def exported_with(mount: str, data: Path, to: Path) -> tuple[int, str, list[str]]:
    """Export into a separate file system. Returns exit code, output and the files of this file system."""
    to.mkdir()
    script = '"$@" 2>&1; code=$?; find "$TO" -type f; exit $code'
    arguments = ("export", "parquet", f"--data-path={data}", f"--to={to}", "--datasets=transactions,blocks")
    done = subprocess.run(
        [*own_file_systems(f"mount {mount} none {to}"), "sh", "-c", script, "sh", *OPHION, *arguments],
        env={**environment(), "TO": str(to)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = done.stdout.splitlines()
    return done.returncode, done.stdout, [line for line in lines if line.startswith(str(to))]


def test_a_full_disk_leaves_no_broken_file(data: Path, tmp_path: Path) -> None:
    code, out, files = exported_with(f"-t tmpfs -o size={SMALL_DISK_KIB}k", data, tmp_path / "tables")
    assert code == 1
    assert "the disk is full" in out
    assert "Traceback" not in out
    assert not [file for file in files if "transactions" in file or ".unfinished" in file]


def test_a_read_only_disk_is_refused(data: Path, tmp_path: Path) -> None:
    code, out, files = exported_with("-t tmpfs -o ro", data, tmp_path / "tables")
    assert code == 1
    assert "Read-only file system" in out
    assert "Traceback" not in out
    assert files == []


def test_a_pruned_range_is_refused(data: Path, tmp_path: Path) -> None:
    to = tmp_path / "tables"
    common = ("export", "parquet", f"--data-path={data}", f"--to={to}", "--datasets=traces")
    ophion(*common).failed("The state before block 2 is pruned", "--start-block")
    assert not list(to.rglob("*.parquet"))
    ophion(*common, f"--start-block={BLOCKS - 4}", f"--end-block={BLOCKS}").succeeded()
    assert parquet.read_table(to / "traces").num_rows >= 4


def with_rules(data: Path, copy: Path, keep: set[str]) -> Path:
    """Copy a chain and keep only these rules, like the database of an older version."""
    shutil.copytree(data, copy)
    with closing(open_store(copy / "database", create=False)) as store:
        rules = json.loads(store.meta(RULES_KEY) or b"")
        store.put_meta(RULES_KEY, json.dumps({name: rules[name] for name in rules if name in keep}).encode())
    return copy


def test_executed_datasets_of_an_older_database_are_read_without_writing(data: Path, tmp_path: Path) -> None:
    older = with_rules(data, tmp_path / "data", {"chainId", "consensus"})
    before = (older / "database" / "data.mdb").read_bytes()
    first = f"--start-block={BLOCKS - 4}"
    ophion("export", "parquet", f"--data-path={older}", f"--to={tmp_path / 'tables'}", "--datasets=traces,nonce_diffs",
           first).succeeded()  # fmt: skip
    assert parquet.read_table(tmp_path / "tables" / "traces").num_rows >= 4
    query = f"select count(*) from traces where block_number > {BLOCKS - 4}"
    ophion("sql", f"--data-path={older}", query).succeeded()
    assert (older / "database" / "data.mdb").read_bytes() == before


def test_a_database_without_rules_is_refused_with_the_remedy(data: Path, tmp_path: Path) -> None:
    older = with_rules(data, tmp_path / "data", set())
    remedy = "is of an older Ophion. Start a node of this version on it once"
    ophion("export", "parquet", f"--data-path={older}", f"--to={tmp_path / 'tables'}").failed(remedy)
    ophion("sql", f"--data-path={older}", "select 1").failed(remedy)
    with NodeProcess(older, *MINING) as node:
        assert node.stop() == 0
    ophion("export", "parquet", f"--data-path={older}", f"--to={tmp_path / 'tables'}").succeeded()
