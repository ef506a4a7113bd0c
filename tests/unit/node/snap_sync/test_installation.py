"""Snap synchronisation begins only where it can end, and installs only a whole state."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ophion.chain.chain import FIRST_STATE_KEY, Chain
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import SnapSyncError
from ophion.native.crypto import PrivateKey
from ophion.native.store import open_store
from ophion.node.config import NodeConfig
from ophion.node.datadir import DATA_FILE, DataDirectory
from ophion.node.snap_sync import installation
from ophion.node.snap_sync.headers import ValidatorsUnknown
from ophion.node.snap_sync.installation import install_by_snap
from ophion.testing.bft_chain import bft_genesis_text

KEY = PrivateKey(bytes([5]) * 32)
QBFT = parse_genesis(bft_genesis_text("qbft", 4))
WORK = parse_genesis(
    '{"config": {"chainId": 5, "ethash": {}}, "difficulty": "0x1", "gasLimit": "0x100000", "alloc": {}}'
)


def install(path: Path, genesis: Genesis) -> None:
    with DataDirectory.open(path) as directory:
        install_by_snap(directory, NodeConfig(), genesis, KEY)


def staged(path: Path, is_whole: bool) -> None:
    """Write what a killed process leaves."""
    database = path / "snap" / "database"
    database.mkdir(parents=True)
    store = open_store(database)
    Chain.open(store, QBFT, engine_for(QBFT.spec))
    if is_whole:
        store.put_meta(FIRST_STATE_KEY, bytes(8))
    store.close()


def test_a_data_path_with_a_chain_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    staged(tmp_path, is_whole=True)
    with DataDirectory.open(tmp_path) as directory:
        directory.store()
    before = (tmp_path / "database" / DATA_FILE).read_bytes()
    with caplog.at_level(logging.INFO):
        install(tmp_path, QBFT)
    assert "reason=data path has a chain" in caplog.text
    assert (tmp_path / "database" / DATA_FILE).read_bytes() == before
    assert not (tmp_path / "snap").exists()


def test_a_chain_without_seals_is_executed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    install(tmp_path, WORK)
    assert "no validators' seals" in caplog.text
    assert not (tmp_path / "database").exists()
    assert not (tmp_path / "snap").exists()


def test_a_whole_state_is_installed_without_peers(tmp_path: Path) -> None:
    staged(tmp_path, is_whole=True)
    install(tmp_path, QBFT)
    assert (tmp_path / "database" / DATA_FILE).exists()
    assert not (tmp_path / "snap").exists()


def test_an_unfinished_download_of_another_genesis_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    staged(tmp_path, is_whole=True)
    monkeypatch.setattr(installation, "_fetch", lambda database, *others: any(database.iterdir()))
    install(tmp_path, parse_genesis(bft_genesis_text("qbft", 1)))
    assert "of an unfinished snap synchronisation" in caplog.text
    assert not (tmp_path / "database").exists()


def test_blocks_before_a_validator_contract_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> bool:
        raise ValidatorsUnknown(1000)

    staged(tmp_path, is_whole=False)
    monkeypatch.setattr(installation, "_fetch", fail)
    with pytest.raises(SnapSyncError, match="block 1000"):
        install(tmp_path, QBFT)
    assert (tmp_path / "snap" / "database" / DATA_FILE).exists()


def test_an_error_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> bool:
        raise SnapSyncError("the network has another chain")

    staged(tmp_path, is_whole=False)
    monkeypatch.setattr(installation, "_fetch", fail)
    with pytest.raises(SnapSyncError, match="another chain"):
        install(tmp_path, QBFT)
    assert not (tmp_path / "snap").exists()
    assert not (tmp_path / "database").exists()
