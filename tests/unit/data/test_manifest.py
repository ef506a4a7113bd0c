"""Tests the list of exported files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.data.export_target import DirectoryTarget
from ophion.data.manifest import MANIFEST_NAME, DatasetEntry, FileEntry, Manifest
from ophion.errors import CommandError


def entry(first: int, last: int) -> FileEntry:
    return FileEntry(f"logs/from=00000000/part-{first:08d}-{last:08d}.parquet", first, last, "", 0, 0, "")


@pytest.mark.parametrize(
    ("files", "gaps"),
    [
        ([], [(0, 9)]),
        ([(0, 9)], []),
        ([(0, 3), (6, 7)], [(4, 5), (8, 9)]),
        ([(4, 30)], [(0, 3)]),
        ([(5, 6), (2, 3)], [(0, 1), (4, 4), (7, 9)]),
        ([(20, 30)], [(0, 9)]),
    ],
)
def test_missing_ranges_are_the_gaps_between_files(files: list[tuple[int, int]], gaps: list[tuple[int, int]]) -> None:
    assert DatasetEntry({}, [entry(*one) for one in files]).missing(0, 9) == gaps


@pytest.mark.parametrize(
    "path",
    [
        "../logs/from=00000000/part-00000000-00000009.parquet",
        "/etc/passwd",
        "logs/from=00000000/../../../victim",
        "blocks/from=00000000/part-00000000-00000009.parquet",
        "logs/from=0/part-0-9.parquet/../../../victim",
    ],
)
def test_a_manifest_names_no_files_of_others(tmp_path: Path, path: str) -> None:
    """An export deletes listed files that are not intact. Whoever can change the manifest must not choose them."""
    target = DirectoryTarget(tmp_path)
    manifest = Manifest.load(target, 1337, "ab")
    manifest.dataset("logs", {}).files.append(FileEntry(path, 0, 9, "", 0, 0, ""))
    manifest.save(target)
    with pytest.raises(CommandError, match="is damaged: it lists the file"):
        Manifest.load(target, 1337, "ab")


def test_a_manifest_is_read_again_and_belongs_to_one_chain(tmp_path: Path) -> None:
    target = DirectoryTarget(tmp_path)
    manifest = Manifest.load(target, 1337, "ab")
    manifest.dataset("logs", {"hex": False}).files.append(entry(0, 9))
    manifest.save(target)
    again = Manifest.load(target, 1337, "ab")
    assert again.dataset("logs", {"hex": False}).files == [entry(0, 9)]
    with pytest.raises(CommandError, match="another value of hex"):
        again.dataset("logs", {"hex": True})
    with pytest.raises(CommandError, match="belongs to another chain"):
        Manifest.load(target, 1337, "cd")
    (tmp_path / MANIFEST_NAME).write_text("[]")
    with pytest.raises(CommandError, match="is damaged"):
        Manifest.load(target, 1337, "ab")


def test_a_manifest_with_other_checksums_is_read(tmp_path: Path) -> None:
    """Its files count as changed, so that they are written again."""
    target = DirectoryTarget(tmp_path)
    manifest = Manifest.load(target, 1337, "ab")
    manifest.dataset("logs", {}).files.append(entry(0, 9))
    manifest.save(target)
    path = tmp_path / MANIFEST_NAME
    path.write_text(path.read_text().replace('"crc32": ""', '"sha256": "00"'))
    assert Manifest.load(target, 1337, "ab").dataset("logs", {}).files == [entry(0, 9)]
