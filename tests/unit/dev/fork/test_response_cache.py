"""Tests the files of a fork's cache."""

from __future__ import annotations

from pathlib import Path

from ophion.dev.fork.response_cache import ForkCache, find_point, keep_point

HASH = b"\x11" * 32


def test_records_survive_and_a_line_cut_off_by_a_crash_is_ignored(tmp_path: Path) -> None:
    cache = ForkCache(tmp_path, 7, HASH)
    cache.add({"codes": ["0x00"]})
    cache.add({"hashes": {"1": "0x22"}})
    cache.close()
    file = tmp_path / "7" / f"0x{HASH.hex()}.jsonl"
    with file.open("ab") as broken:
        broken.write(b'{"codes": ["0x')
    assert list(ForkCache(tmp_path, 7, HASH).records()) == [{"codes": ["0x00"]}, {"hashes": {"1": "0x22"}}]
    assert list(ForkCache(tmp_path, 8, HASH).records()) == []
    again = ForkCache(tmp_path, 7, HASH)
    again.add({"codes": ["0x01"]})
    again.close()
    assert list(again.records())[-1] == {"codes": ["0x01"]}


def test_points_are_kept_by_source_and_number_without_the_address(tmp_path: Path) -> None:
    keep_point(tmp_path, "http://host/secret", 5, 7, {"hash": "0x11"})
    assert find_point(tmp_path, "http://host/secret", 5) == (7, {"hash": "0x11"})
    assert find_point(tmp_path, "http://host/secret", 6) is None
    assert find_point(tmp_path, "http://host/other", 5) is None
    assert b"secret" not in (tmp_path / "points.jsonl").read_bytes()
    keep_point(tmp_path, "http://host/secret", 5, 7, None)
    assert find_point(tmp_path, "http://host/secret", 5) is None
