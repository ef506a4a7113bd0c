"""The migration copies small files of an old node, never overwrites files, and reports the copies."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from ophion.errors import ConfigError
from ophion.migration.node_files import BESU_LAYOUT, GETH_LAYOUT, take_over
from ophion.node.node_key_file import load_key

KEY = "8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63"
"""A public test key."""
ENODE = f"enode://{'ab' * 64}@10.0.0.1:30303"


def test_files_of_goquorum_are_translated(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "geth").mkdir(parents=True)
    (old / "keystore").mkdir()
    (old / "geth" / "nodekey").write_text(KEY)
    (old / "static-nodes.json").write_text(json.dumps([f"{ENODE}?discport=0&raftport=50400"]))
    (old / "permissioned-nodes.json").write_text(json.dumps([f"{ENODE}?raftport=50400"]))
    taken = take_over(old, GETH_LAYOUT, new, None)
    assert load_key(new / "key").secret().hex() == KEY
    assert (new / "key").stat().st_mode & 0o777 == 0o600
    assert json.loads((new / "static-nodes.json").read_text()) == [f"{ENODE}?discport=0"]
    assert tomllib.loads((new / "permissions_config.toml").read_text()) == {"nodes-allowlist": [ENODE]}
    assert [file.name for file in taken.files] == ["geth/nodekey", "static-nodes.json", "permissioned-nodes.json"]
    assert any(line.startswith("keystore: accounts stay") for line in taken.by_hand)
    assert any(line.startswith("options: ") for line in taken.by_hand)


def test_existing_files_stay(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for path, text in ((old, KEY), (new, "11" * 32)):
        path.mkdir()
        (path / "key").write_text(text)
    taken = take_over(old, BESU_LAYOUT, new, None)
    assert (new / "key").read_text() == "11" * 32
    assert "exists and differs" in taken.files[0].outcome
    assert any("exists and differs" in line for line in taken.by_hand)


def test_files_that_cannot_be_used_are_reported(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "key").write_text("")
    (old / "static-nodes.json").write_text("{}")
    taken = take_over(old, BESU_LAYOUT, new, None)
    assert not (new / "key").exists()
    assert [file.outcome.partition(":")[0] for file in taken.files] == ["not taken over", "not taken over"]
    assert any(line.startswith("node key: copy the key") for line in taken.by_hand)
    with pytest.raises(ConfigError, match="Unable to read the Besu configuration file"):
        take_over(old, BESU_LAYOUT, new, tmp_path / "nowhere.toml")


def test_a_configuration_file_with_a_mistake_is_reported_like_the_other_files(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    (old / "key").write_text(KEY)
    (old / "config.toml").write_text("a = [")
    taken = take_over(old, BESU_LAYOUT, new, None)
    assert taken.config is None
    assert [file.name for file in taken.files] == ["config.toml", "key"]
    assert taken.files[0].outcome.startswith("not taken over: Unable to read the Besu configuration file")
    assert (new / "key").exists()
    assert not (new / "config.toml").exists()
