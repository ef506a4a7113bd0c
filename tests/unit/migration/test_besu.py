"""Databases in the layouts of Besu 1.4 to 26.x give the blocks that were written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ophion.errors import CommandError
from ophion.migration.besu import BesuSource, read_storage_format
from ophion.testing.besu_database import BLOCKCHAIN, BONSAI, FOREST, read_chain, snapshot, write_besu_database
from tests.conftest import DATA

rocksdict = pytest.importorskip("rocksdict", reason="the extra ophion[migrate] is not installed")
CHAINS = DATA / "chains"
LAYOUTS: dict[str, dict[str, Any]] = {
    "unsegmented": {"metadata": {"version": 0}, "families": ("default",)},
    "forest-1": {"metadata": {"version": 1}, "families": FOREST},
    "bonsai-1": {"metadata": {"version": 2}, "families": BONSAI},
    "private": {"metadata": {"version": 1, "privacyVersion": 1}, "families": FOREST},
    "forest-2": {"metadata": {"v2": {"format": "FOREST", "version": 2}}, "families": FOREST, "has_variables": True},
    "bonsai-3": {
        "metadata": {"v2": {"format": "BONSAI", "version": 3}},
        "families": BONSAI,
        "has_variables": True,
        "has_blobs": True,
    },
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_blocks(layout: str, tmp_path: Path) -> None:
    chain = CHAINS / "besu26-qbft-osaka"
    written = write_besu_database(tmp_path / "besu", chain, **LAYOUTS[layout])
    before = snapshot(tmp_path / "besu")
    source = BesuSource(tmp_path / "besu", tmp_path / "links")
    try:
        headers = [header for header, _ in read_chain(chain)]
        assert (source.head().number, source.head().hash) == (len(written) - 1, headers[-1].hash)
        assert [source.hash_at(number) for number in (0, 7, len(written))] == [headers[0].hash, headers[7].hash, None]
        assert list(source.blocks(0, len(written) - 1)) == written
        assert list(source.blocks(6, 8)) == written[6:9]
    finally:
        source.close()
    assert snapshot(tmp_path / "besu") == before
    assert not (tmp_path / "links").exists()


def test_the_links_of_a_killed_run_are_replaced(tmp_path: Path) -> None:
    written = write_besu_database(tmp_path / "besu", CHAINS / "besu-clique")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "CURRENT").write_text("MANIFEST-999999\n")
    source = BesuSource(tmp_path / "besu", tmp_path / "links")
    assert source.head().number == len(written) - 1
    source.close()


def test_after_a_downgrade_the_higher_head_counts(tmp_path: Path) -> None:
    chain = CHAINS / "besu-clique"
    written = write_besu_database(tmp_path / "besu", chain, has_variables=True)
    database, segment = _open(tmp_path / "besu")
    segment[b"\x01chainHeadHash"] = next(header.hash for header, _ in read_chain(chain) if header.number == 12)
    segment.close()
    database.close()
    source = BesuSource(tmp_path / "besu", tmp_path / "links")
    assert source.head().number == len(written) - 1
    source.close()


def test_a_missing_body_is_named(tmp_path: Path) -> None:
    chain = CHAINS / "besu-clique"
    write_besu_database(tmp_path / "besu", chain)
    database, segment = _open(tmp_path / "besu")
    del segment[b"\x03" + next(header.hash for header, _ in read_chain(chain) if header.number == 7)]
    segment.close()
    database.close()
    source = BesuSource(tmp_path / "besu", tmp_path / "links")
    with pytest.raises(CommandError, match="Besu has no body of block 7"):
        list(source.blocks(0, 9))
    source.close()


def _open(path: Path, recycles_logs: bool = False) -> tuple[Any, Any]:
    place = str(path / "database")
    families = {name: rocksdict.Options(raw_mode=True) for name in rocksdict.Rdict.list_cf(place)}
    options = rocksdict.Options(raw_mode=True)
    options.set_recycle_log_file_num(16 if recycles_logs else 0)
    database = rocksdict.Rdict(place, options=options, column_families=families)
    return database, database.get_column_family(BLOCKCHAIN)


def test_a_database_in_use_is_refused(tmp_path: Path) -> None:
    write_besu_database(tmp_path / "besu", CHAINS / "besu-clique")
    script = (
        "import rocksdict, sys\n"
        "place = sys.argv[1]\n"
        "raw = lambda: rocksdict.Options(raw_mode=True)\n"
        "families = {name: raw() for name in rocksdict.Rdict.list_cf(place)}\n"
        "database = rocksdict.Rdict(place, options=raw(), column_families=families)\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "besu" / "database")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        with pytest.raises(CommandError, match=f"process {process.pid} holds .*Stop Besu"):
            BesuSource(tmp_path / "besu", tmp_path / "links")
        process.communicate()
    BesuSource(tmp_path / "besu", tmp_path / "links").close()


def test_a_file_or_link_in_place_of_the_links_is_replaced(tmp_path: Path) -> None:
    written = write_besu_database(tmp_path / "besu", CHAINS / "besu-clique")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (tmp_path / "link").symlink_to(precious)
    (tmp_path / "plain").write_text("x")
    for name in ("link", "plain"):
        source = BesuSource(tmp_path / "besu", tmp_path / name)
        assert source.head().number == len(written) - 1
        source.close()
    assert [entry.name for entry in precious.iterdir()] == ["file"]


def test_a_directory_without_a_database_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no database of Besu"):
        BesuSource(tmp_path, tmp_path / "links")


def test_a_damaged_database_is_one_error(tmp_path: Path) -> None:
    write_besu_database(tmp_path / "besu", CHAINS / "besu-clique")
    (tmp_path / "besu" / "database" / "CURRENT").write_text("MANIFEST-999999\n")
    with pytest.raises(CommandError, match="Unable to open the RocksDB database"):
        BesuSource(tmp_path / "besu", tmp_path / "links")


def test_the_error_about_a_truncated_file_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    write_besu_database(tmp_path / "besu", CHAINS / "besu-clique")
    for file in (tmp_path / "besu" / "database").glob("*.sst"):
        os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(CommandError) as caught:
        BesuSource(tmp_path / "besu", tmp_path / "links")
    text = str(caught.value)
    assert "\n" not in text
    assert f"{tmp_path / 'besu' / 'database'}/" in text
    assert str(tmp_path / "links") not in text
    assert text.endswith("copy the directory again while its node is stopped.")


def write_killed_node(path: Path, *, recycles_logs: bool = False) -> Path:
    """Write the database of a killed node: the log alone says that the head is 24 and no longer 12. Return the log."""
    chain = CHAINS / "besu-clique"
    write_besu_database(path.with_name("running"), chain)
    database, segment = _open(path.with_name("running"), recycles_logs)
    hashes = [header.hash for header, _ in read_chain(chain)]
    segment[b"\x01chainHeadHash"] = hashes[12]
    segment.flush()
    for block_hash in hashes[13:]:
        segment[b"\x01chainHeadHash"] = block_hash
    shutil.copytree(path.with_name("running"), path)
    segment.close()
    database.close()
    return max((path / "database").glob("*.log"))


def test_a_damaged_log_is_an_error_and_not_a_shorter_chain(tmp_path: Path) -> None:
    log = write_killed_node(tmp_path / "besu")
    content = log.read_bytes()
    source = BesuSource(tmp_path / "besu", tmp_path / "links")
    assert (source.warning, source.head().number) == (None, 24)
    source.close()
    for damaged in (content[:-1], content[: len(content) // 2 + 5], content[:100] + b"?" + content[101:]):
        log.write_bytes(damaged)
        with pytest.raises(CommandError, match="Unable to open the RocksDB database"):
            BesuSource(tmp_path / "besu", tmp_path / "links")


def test_an_empty_or_missing_log_is_a_warning(tmp_path: Path) -> None:
    log = write_killed_node(tmp_path / "besu")
    log.write_bytes(b"")
    for said in ("is empty", "is missing"):
        source = BesuSource(tmp_path / "besu", tmp_path / "links")
        assert said in str(source.warning)
        assert source.head().number == 12
        source.close()
        log.unlink(missing_ok=True)


def test_the_end_of_a_recycled_log_may_look_like_damage(tmp_path: Path) -> None:
    log = write_killed_node(tmp_path / "besu", recycles_logs=True)
    log.write_bytes(log.read_bytes() + bytes(range(1, 100)))
    source = BesuSource(tmp_path / "besu", tmp_path / "links")
    assert (source.warning, source.head().number) == (None, 24)
    source.close()


def test_a_database_without_a_chain_is_named(tmp_path: Path) -> None:
    rocksdict.Rdict(str(tmp_path / "besu" / "database"), options=rocksdict.Options(raw_mode=True)).close()
    with pytest.raises(CommandError, match="has no head"):
        BesuSource(tmp_path / "besu", tmp_path / "links")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"version":1}', "FOREST 1"),
        ('{"version":2}', "BONSAI 1"),
        ('{"v2":{"format":"X_BONSAI_ARCHIVE","version":1}}', "X_BONSAI_ARCHIVE 1"),
        ("[]", "unknown"),
        ("{", "unknown"),
    ],
)
def test_the_storage_format_is_read(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "DATABASE_METADATA.json").write_text(text)
    assert read_storage_format(tmp_path) == expected
    shutil.rmtree(tmp_path)
    assert read_storage_format(tmp_path) == "unknown"
