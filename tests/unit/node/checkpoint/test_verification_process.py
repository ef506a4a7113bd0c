"""If a file crashes the process that reads it, the node reports one error."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ophion.errors import CheckpointError
from ophion.node.checkpoint.verification_process import verify_in_child
from tests.unit.node.checkpoint.backups import BLOCKS, backup_of


def test_a_child_verifies_and_reports_progress(tmp_path: Path) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")
    steps = set[str]()
    verified = verify_in_child(backup / "database", genesis, None, lambda step, done, total: steps.add(step))
    assert (verified.number, steps >= {"headers", "contents"}) == (BLOCKS, True)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")
    file = backup / "database" / "data.mdb"
    whole = file.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:4096], b"", random.Random(3).randbytes(len(whole))):
        file.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            verify_in_child(backup / "database", genesis, None, lambda step, done, total: None)
