"""Tests the file that describes the backends of a gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.errors import CommandError
from ophion.gateway.backends import BackendNetwork, BackendNode, ServiceAddress, ServiceKind


def test_a_site_is_read_as_it_was_written(tmp_path: Path) -> None:
    nodes = (
        BackendNode(
            "rpcnode",
            "rpc",
            {ServiceKind.JSON_RPC: ServiceAddress("127.0.0.1", 1), ServiceKind.METRICS: ServiceAddress("127.0.0.1", 2)},
            "e",
        ),
        BackendNode("validator1", "validator", {}),
    )
    site = BackendNetwork(
        "quickstart",
        "qbft",
        nodes,
        {"grafana": ServiceAddress("127.0.0.1", 3)},
        needs_token=True,
        socket_needs_token=True,
    )
    site.write(tmp_path / "site.json")
    assert BackendNetwork.read(tmp_path / "site.json") == site


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"nodes":[]}', '{"network":"n","consensus":null,"nodes":[{"name":"a","role":"r","places":[]}]}'],
)
def test_anything_else_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "site.json").write_text(text)
    with pytest.raises(CommandError, match="does not describe a network"):
        BackendNetwork.read(tmp_path / "site.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Unable to read .*site.json: No such file"):
        BackendNetwork.read(tmp_path / "site.json")
