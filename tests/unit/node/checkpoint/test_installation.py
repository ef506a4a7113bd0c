"""An installation turns a checkpoint into the database of a node, or leaves no files behind."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from ophion.errors import CheckpointError, StorageError
from ophion.node.checkpoint import installation
from ophion.node.checkpoint.archive import write_archive
from ophion.node.checkpoint.installation import install_checkpoint
from ophion.node.datadir import DataDirectory
from tests.unit.node.checkpoint.backups import BLOCKS, backup_of
from tests.unit.node.checkpoint.file_server import serving


def install(path: Path, location: object, genesis: object, trusted_hash: bytes | None = None) -> int:
    with DataDirectory.open(path) as directory:
        install_checkpoint(directory, str(location), genesis, trusted_hash)  # type: ignore[arg-type]
        store = directory.store()
        head = store.head()
        assert head is not None
        assert store.check(10) == []
    assert sorted(entry.name for entry in path.iterdir()) == ["database", "lock"]
    return head[1]


def refused(path: Path, location: object, genesis: object, match: str) -> None:
    with DataDirectory.open(path) as directory, pytest.raises(CheckpointError, match=match) as failure:
        install_checkpoint(directory, str(location), genesis, None)  # type: ignore[arg-type]
    assert str(failure.value).startswith("The checkpoint ")
    assert "\n" not in str(failure.value)
    assert [entry.name for entry in path.iterdir()] == ["lock"]


def test_directories_archives_and_addresses_lead_to_the_same_chain(tmp_path: Path) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")
    write_archive(backup, tmp_path / "chain.tar")
    write_archive(backup, tmp_path / "chain.tar.gz")
    with serving((tmp_path / "chain.tar.gz").read_bytes()) as server:
        server.cuts = [5000]
        locations = (backup, tmp_path / "chain.tar", tmp_path / "chain.tar.gz", server.url)
        for number, location in enumerate(locations):
            assert install(tmp_path / f"node{number}", location, genesis) == BLOCKS


def test_a_data_path_with_a_chain_is_left_alone(tmp_path: Path) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")
    assert install(tmp_path / "node", backup, genesis) == BLOCKS
    shutil.rmtree(backup)
    (tmp_path / "node" / "checkpoint").mkdir()
    assert install(tmp_path / "node", backup, genesis) == BLOCKS


def test_unusable_checkpoints_leave_nothing_behind(tmp_path: Path) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")
    _, other = backup_of(tmp_path / "other", "ibft2")
    write_archive(backup, tmp_path / "chain.tar")
    whole = (tmp_path / "chain.tar").read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[: len(whole) // 2])
    node = tmp_path / "node"
    refused(node, tmp_path / "missing", genesis, "There is no backup at")
    refused(node, tmp_path / "cut.tar", genesis, "damaged or incomplete")
    refused(node, tmp_path / "chain.tar", other, "Supplied genesis block does not match")
    with serving(whole[:20_000]) as server:
        refused(node, server.url, genesis, "damaged or incomplete")
        server.statuses = [404]
        refused(node, server.url, genesis, "HTTP status 404")


def test_one_changed_byte_of_the_chain_is_found(tmp_path: Path) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")
    file = backup / "database" / "data.mdb"
    whole = file.read_bytes()
    # a seal is a string of 65 bytes
    headers = [at for at in range(0, len(whole) - 32, 4096) if whole[at : at + 4096].count(b"\xb8\x41") > 2]
    chosen = random.Random(5)
    for _ in range(3):
        page = chosen.choice(headers)
        at = page + whole[page : page + 4096].rindex(b"\xb8\x41") + 10
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with DataDirectory.open(tmp_path / "node") as directory, pytest.raises(CheckpointError):
            install_checkpoint(directory, str(backup), genesis, None)
        assert [entry.name for entry in (tmp_path / "node").iterdir()] == ["lock"]


def test_a_backup_in_use_is_refused(tmp_path: Path) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")
    with (
        DataDirectory.open(backup),
        DataDirectory.open(tmp_path / "node") as directory,
        pytest.raises(StorageError, match="in use"),
    ):
        install_checkpoint(directory, str(backup), genesis, None)


@pytest.mark.parametrize("moment", ["_stage", "verify_in_child", "install_database"])
def test_an_interrupted_installation_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(installation, moment, interrupt)
        with pytest.raises(KeyboardInterrupt):
            install(tmp_path / "node", backup, genesis)
    assert not (tmp_path / "node" / "database").exists()
    assert install(tmp_path / "node", backup, genesis) == BLOCKS
