"""Write-ahead logs: which can be checked to their end, and whether the newest is there."""

from __future__ import annotations

from pathlib import Path

from ophion.migration.rocksdb_logs import missing_end, recycles_logs


def write_log(path: Path, number: int, first_type: int) -> None:
    (path / f"{number:06}.log").write_bytes(bytes(6) + bytes([first_type]) + b"content")


def test_the_type_of_the_first_record_says_whether_logs_are_recycled(tmp_path: Path) -> None:
    write_log(tmp_path, 4, 1)
    (tmp_path / "000005.log").write_bytes(b"")
    (tmp_path / "notes.log").write_bytes(bytes(6) + b"\x05")
    assert not recycles_logs(tmp_path)
    write_log(tmp_path, 6, 5)
    assert recycles_logs(tmp_path)


def test_the_newest_log_belongs_to_the_run_of_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_text("MANIFEST-000104\n")
    write_log(tmp_path, 83, 1)
    assert "is missing" in str(missing_end(tmp_path))
    (tmp_path / "000105.log").write_bytes(b"")
    assert "000105.log is empty" in str(missing_end(tmp_path))
    write_log(tmp_path, 105, 1)
    assert missing_end(tmp_path) is None
    (tmp_path / "CURRENT").write_bytes(b"\xff")
    assert missing_end(tmp_path) is None
