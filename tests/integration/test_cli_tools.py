"""Runs the small tools from scripts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import bcrypt
import pytest

from tests.integration.command import ophion

KEY = "0x8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63"  # this key is a published test key
ADDRESS = "0xfe3b557e8fb62b89f4916b721be55ceb828dbd73"


def test_a_public_key_is_made_kept_and_written(tmp_path: Path) -> None:
    path = f"--data-path={tmp_path / 'data'}"
    shown = ophion(path, "public-key", "export").succeeded().out
    assert re.fullmatch(r"0x[0-9a-f]{128}\n", shown)
    ophion("public-key", "export", path, f"--to={tmp_path / 'key.pub'}").succeeded()
    assert (tmp_path / "key.pub").read_text() == shown.strip()
    assert re.fullmatch(r"0x[0-9a-f]{40}\n", ophion("public-key", "export-address", path).succeeded().out)


def test_an_address_belongs_to_the_given_key(tmp_path: Path) -> None:
    (tmp_path / "node.key").write_text(KEY)
    done = ophion("public-key", "export-address", f"--node-private-key-file={tmp_path / 'node.key'}").succeeded()
    assert done.out == f"{ADDRESS}\n"


@pytest.mark.parametrize("content", ["", "0x12", f"{KEY}\n{KEY}"])
def test_a_bad_key_file_is_one_clear_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "key").write_text(content)
    ophion("public-key", "export", f"--data-path={tmp_path}").failed("Supplied file does not contain valid key pair.")


def test_rlp_reads_standard_input_and_writes_standard_output() -> None:
    encoded = ophion("rlp", "encode", "--type=QBFT_EXTRA_DATA", text=f'["{ADDRESS}"]').succeeded().out
    assert encoded == f"0xf83aa0{'00' * 32}d594{ADDRESS[2:]}c080c0\n"
    assert ophion("rlp", "decode", "--type=qbft_extra_data", text=encoded).succeeded().out == f'["{ADDRESS}"]\n'
    ophion("rlp", "encode").failed("An error occurred while trying to read the JSON data.")
    ophion("rlp", "decode", text="0x00").failed("Unable to decode the RLP string with selected type.")


def test_a_password_is_hashed_without_a_newline() -> None:
    shown = ophion("password", "hash", "--password=secret").succeeded().out
    assert bcrypt.checkpw(b"secret", shown.encode())
    assert shown.startswith("$2a$10$")
    assert not shown.endswith("\n")


def test_a_network_is_generated_that_the_node_can_read(tmp_path: Path) -> None:
    description = {
        "genesis": {
            "config": {"chainId": 2018, "constantinoplefixblock": 0, "ibft2": {"blockperiodseconds": 2}},
            "difficulty": "0x1",
            "gasLimit": "0x47b760",
            "mixHash": "0x63746963616c2062797a616e74696e65206661756c7420746f6c6572616e6365",
            "alloc": {},
        },
        "blockchain": {"nodes": {"generate": True, "count": 2}},
    }
    (tmp_path / "network.json").write_text(json.dumps(description))
    command = ("operator", "generate-blockchain-config", "--config-file=network.json", "--to=network")
    assert "2 keys" in ophion(*command, cwd=tmp_path).succeeded().out
    folder = next((tmp_path / "network" / "keys").iterdir())
    key_file = f"--node-private-key-file={folder / 'key.priv'}"
    assert ophion("public-key", "export-address", key_file).succeeded().out.strip() == folder.name
    assert ophion("public-key", "export", key_file).succeeded().out.strip() == (folder / "key.pub").read_text()
    ophion(*command, cwd=tmp_path).failed("Output directory must be empty.")


def test_a_configuration_file_is_checked(tmp_path: Path) -> None:
    (tmp_path / "good.toml").write_text('data-path="data"\ngenesis-file="genesis.json"\n')
    (tmp_path / "bad.toml").write_text("data-path=1\nfoo=1\nbar=2\n")
    good = ophion("validate-config", "--config-file=good.toml", cwd=tmp_path).succeeded()
    assert good.out.startswith("TOML config file is valid on basic inspection.")
    bad = ophion("validate-config", "--config-file=bad.toml", cwd=tmp_path)
    bad.failed("Unknown options in TOML configuration file: foo, bar")
