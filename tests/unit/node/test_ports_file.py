"""The ports file."""

from __future__ import annotations

from pathlib import Path

from ophion.node.ports_file import remove_ports, write_ports


def test_the_file_names_the_ports_and_goes_away(tmp_path: Path) -> None:
    write_ports(tmp_path, {"json-rpc": 8545, "ws-rpc": 8546})
    lines = (tmp_path / "ophion.ports").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["json-rpc=8545", "ws-rpc=8546"]
    remove_ports(tmp_path)
    remove_ports(tmp_path)
    assert list(tmp_path.iterdir()) == []
