"""Tests `ophion export` with a full or read-only disk and with pruned states: one clear error, no broken file."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from ophion.testing.process import MINING, NodeProcess
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
