"""Tests the ports file."""

from __future__ import annotations

from pathlib import Path

from ophion.node.ports_file import NAME, remove_besu_files, remove_ports, write_besu_files, write_ports


def test_the_file_names_the_ports_and_goes_away(tmp_path: Path) -> None:
    write_ports(tmp_path, {"json-rpc": 8545, "ws-rpc": 8546})
    lines = (tmp_path / "ophion.ports").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["json-rpc=8545", "ws-rpc=8546"]
    remove_ports(tmp_path)
    remove_ports(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_ports_are_never_written_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    for name in (NAME, NAME + ".new"):
        (tmp_path / name).symlink_to(precious)
    write_ports(tmp_path, {"json-rpc": 1})
    assert precious.read_text() == "keep me"
    assert not (tmp_path / NAME).is_symlink()
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def test_the_files_of_besu(tmp_path: Path) -> None:
    write_besu_files(tmp_path, {"p2p": 30303, "json-rpc": 8545}, "192.0.2.1", "0.0.0.0")
    lines = (tmp_path / "besu.ports").read_text().splitlines()
    assert lines[1:] == ["p2p=30303", "json-rpc=8545"]
    assert (tmp_path / "besu.networks").read_text().splitlines()[1:] == ["global-ip=192.0.2.1", "local-ip=0.0.0.0"]
    remove_besu_files(tmp_path)
    remove_besu_files(tmp_path)
    assert list(tmp_path.iterdir()) == []
