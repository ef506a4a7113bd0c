"""Data directories of other clients are recognised and left untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.errors import StorageError
from ophion.node.datadir import DataDirectory
from ophion.node.foreign_data import FOREIGN_LAYOUTS, find_foreign_data, refuse_foreign_data

LAYOUTS = [
    ("Besu", ["DATABASE_METADATA.json", "key"]),
    ("Besu", ["DATABASE_METADATA.json", "VERSION_METADATA.json", "database/CURRENT", "database/000012.sst", "key"]),
    ("Besu", ["database/CURRENT", "database/MANIFEST-000004", "key"]),
    ("Besu", ["database/000012.sst"]),
    ("Besu", ["VERSION_METADATA.json"]),
    ("geth", ["geth/chaindata/CURRENT", "geth/nodekey", "keystore/UTC--key"]),
    ("geth", ["geth/nodekey"]),
    ("geth", ["chaindata/CURRENT", "chaindata/MANIFEST-000001", "nodekey"]),
    ("geth", ["chaindata/MANIFEST-000001"]),
    ("GoQuorum", ["geth/chaindata/CURRENT", "geth/nodekey", "quorum-raft-state/000001.log"]),
    ("GoQuorum", ["geth/chaindata/CURRENT", "raft-wal/0.wal"]),
    ("Nethermind", ["nethermind_db/spaceneth/blocks/CURRENT"]),
    ("Erigon", ["chaindata/mdbx.dat"]),
    ("reth", ["db/mdbx.dat", "static_files/a"]),
    ("OpenEthereum", ["chains/private/db/906a34e69aec8c0d/overlayrecent/CURRENT"]),
    ("RocksDB or LevelDB", ["CURRENT", "MANIFEST-000001"]),
]


def _make(path: Path, names: list[str]) -> None:
    for name in names:
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")


def _content(path: Path) -> dict[str, tuple[int, int]]:
    """Return every file and directory with mode and modification time."""
    return {str(found): (found.stat().st_mode, found.stat().st_mtime_ns) for found in [path, *path.rglob("*")]}


@pytest.mark.parametrize(("client", "names"), LAYOUTS, ids=lambda value: str(value)[:40])
def test_foreign_data_is_refused_before_anything_is_written(tmp_path: Path, client: str, names: list[str]) -> None:
    _make(tmp_path, names)
    before = _content(tmp_path)
    for open_it in (DataDirectory.open, DataDirectory.open_existing, DataDirectory.beside_a_node):
        with pytest.raises(StorageError) as refused:
            open_it(tmp_path)
        assert f"holds data of {client} (" in str(refused.value)
        assert "run `ophion migrate --" in str(refused.value)
        assert "--data-path=NEW`" in str(refused.value)
        assert "docs/migration/README.md" in str(refused.value)
    assert _content(tmp_path) == before


def test_foreign_data_beside_a_chain_of_ours_is_refused_as_well(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as directory:
        directory.store()
    (tmp_path / "database" / "CURRENT").write_text("MANIFEST-000001")
    with pytest.raises(StorageError, match=r"holds data of Besu \(database/CURRENT\)"):
        DataDirectory.open(tmp_path)


def test_our_own_files_and_configuration_files_are_not_foreign(tmp_path: Path) -> None:
    _make(
        tmp_path, ["key", "static-nodes.json", "permissions_config.toml", "genesis.json", "config.toml", "keystore/a"]
    )
    with DataDirectory.open(tmp_path) as directory:
        directory.store()
    assert find_foreign_data(tmp_path) is None
    refuse_foreign_data(tmp_path / "missing")
    refuse_foreign_data(tmp_path / "key" / "below")


def test_every_layout_has_a_pattern_and_a_way_out() -> None:
    for layout in FOREIGN_LAYOUTS:
        assert layout.patterns
        assert layout.source.startswith("--")
