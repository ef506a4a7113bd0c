"""Databases that geth 1.13.15 wrote, LevelDB and Pebble, give the blocks that geth imported."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from ophion.errors import CommandError
from ophion.migration.geth import GethSource
from ophion.testing.besu_database import read_chain, snapshot
from tests.conftest import DATA

pytest.importorskip("cramjam", reason="the extra ophion[migrate] is not installed")
BLOCKS = list(read_chain(DATA / "chains" / "geth-clique"))
FROZEN = 7
"""Blocks in the freezer; the others are in the key-value database."""


@pytest.fixture(params=["leveldb", "pebble"])
def datadir(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a data directory of geth with the test chain."""
    return unpack(request.param, tmp_path / "geth")


def unpack(engine: str, path: Path) -> Path:
    with tarfile.open(DATA / "geth-databases" / f"{engine}.tar.gz") as archive:
        archive.extractall(path, filter="data")
    return path


def test_every_block_is_found(datadir: Path) -> None:
    before = snapshot(datadir)
    source = GethSource(datadir)
    assert source.client == "geth"
    assert (source.head().number, source.head().hash) == (12, BLOCKS[12][0].hash)
    assert [source.hash_at(number) for number in range(13)] == [header.hash for header, _ in BLOCKS]
    assert source.hash_at(13) is None
    assert list(source.blocks(0, 12)) == [raw for _, raw in BLOCKS]
    source.close()
    assert snapshot(datadir) == before


def test_the_freezer_may_lie_elsewhere(datadir: Path, tmp_path: Path) -> None:
    ancient = datadir / "geth" / "chaindata" / "ancient"
    moved = ancient.rename(tmp_path / "ancient")
    source = GethSource(datadir, moved)
    assert list(source.blocks(3, 9)) == [raw for _, raw in BLOCKS[3:10]]
    source.close()
    source = GethSource(datadir)
    with pytest.raises(CommandError, match=f"geth has no hash of block {FROZEN - 1}"):
        list(source.blocks(FROZEN - 1, 12))
    source.close()


def test_a_freezer_of_geth_1_10_has_no_folder_of_its_own(datadir: Path) -> None:
    ancient = datadir / "geth" / "chaindata" / "ancient"
    for file in (ancient / "chain").iterdir():
        file.rename(ancient / file.name)
    (ancient / "chain").rmdir()
    source = GethSource(datadir)
    assert next(source.blocks(1, 1)) == BLOCKS[1][1]
    source.close()


def test_goquorum_is_named(datadir: Path) -> None:
    (datadir / "quorum-raft-state").mkdir()
    source = GethSource(datadir)
    assert source.client == "GoQuorum"
    source.close()


def test_a_database_in_use_is_refused(datadir: Path) -> None:
    lock = datadir / "geth" / "chaindata" / "LOCK"
    script = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(CommandError, match="geth is using its database"):
            GethSource(datadir)
        process.communicate()
    GethSource(datadir).close()


def test_damage_is_one_error(datadir: Path, tmp_path: Path) -> None:
    chaindata = datadir / "geth" / "chaindata"
    table = next(file for file in chaindata.iterdir() if file.suffix in (".ldb", ".sst"))
    content = table.read_bytes()
    table.write_bytes(content[:-1] + b"\x00")
    with pytest.raises(CommandError, match=r"not a table of LevelDB or Pebble.*--from-rlp=FILE"):
        GethSource(datadir)
    table.unlink()
    with pytest.raises(CommandError, match="No such file"):
        GethSource(datadir)
    bodies = chaindata / "ancient" / "chain" / "bodies.0000.cdat"
    table.write_bytes(content)
    bodies.write_bytes(bodies.read_bytes()[:4])
    source = GethSource(datadir)
    with pytest.raises(CommandError, match="Unable to read item"):
        list(source.blocks(0, 6))
    source.close()
    with pytest.raises(CommandError, match="There is no database of geth"):
        GethSource(tmp_path / "nowhere")
