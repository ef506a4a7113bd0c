from __future__ import annotations

import json
from pathlib import Path

import pytest

from ophion.errors import ConfigError
from ophion.peers.policy.static_nodes import read_static_nodes
from ophion.primitives.enode import Enode

ONE = Enode(b"\x07" * 64, "127.0.0.1", 30303, 30303)
TWO = Enode(b"\x08" * 64, "::1", 30304, 0)


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "static-nodes.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_an_array_of_enodes(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps([ONE.url, TWO.url, ONE.url]))
    assert read_static_nodes(path, must_exist=False) == (ONE, TWO)


@pytest.mark.parametrize("text", ["", "  \n", "[]"])
def test_an_empty_list_has_no_nodes(tmp_path: Path, text: str) -> None:
    assert read_static_nodes(written(tmp_path, text), must_exist=True) == ()


def test_a_missing_file_is_empty_unless_required(tmp_path: Path) -> None:
    assert read_static_nodes(tmp_path / "x", must_exist=False) == ()
    with pytest.raises(ConfigError, match="x does not exist"):
        read_static_nodes(tmp_path / "x", must_exist=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("{}", "must hold a JSON array"),
        ("[1]", "entry 1: an enode URL is expected"),
        (json.dumps([ONE.url, "enode://aa@1.2.3.4:5"]), "entry 2: Invalid enode URL syntax"),
        (json.dumps([f"enode://{'ab' * 64}@1.2.3.4:0"]), "entry 1: the listening port is 0"),
        (json.dumps([f"enode://{'ab' * 64}@example.org:1"]), "host names are not accepted"),
        (b"\xff\xfe\xff", "is not valid JSON"),
        (b"[" + b" " * 2_000_000, "cannot be read: more than"),
    ],
)
def test_errors_name_their_position(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        read_static_nodes(path, must_exist=False)
    assert str(path) in str(caught.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_static_nodes(tmp_path, must_exist=False)
