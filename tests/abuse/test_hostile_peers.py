"""Runs hostile peers at a small scale against a validator that makes a block each second."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ophion.primitives.enode import Enode
from ophion.testing.node_process import NodeProcess
from tests.abuse import hostile_peers, peer_target
from tests.abuse.target import Place
from tests.conftest import ROOT

EXAMPLE = ROOT / "examples" / "ibft2"
OPTIONS = (
    f"--genesis-file={EXAMPLE / 'genesis.json'}",
    f"--node-private-key-file={EXAMPLE / 'key.priv'}",
    "--p2p-enabled",
    "--p2p-interface=127.0.0.1",
    "--p2p-port=0",
    "--bootnodes",
    "--rpc-http-api=ETH,NET",
    "--durable-commits=false",
)
LONGER = {"dripping_frames", "false_heights"}
"""Attacks that take a minute, because they test timeouts of that length. Only the script runs them."""
ELSEWHERE = {"announced_transactions", "headers_that_never_link", "no_answers", "unread_answers"}
"""Attacks whose short form is in tests/integration/test_hostile_eth.py."""
NAMES = [attack.__name__ for attack in hostile_peers.ATTACKS]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("hostile") / "data", *OPTIONS) as running:
        yield running


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LONGER | ELSEWHERE])
def test_a_node_stands(name: str, node: NodeProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    # test machines are busy, so this limit detects only delays of many seconds; the abuse script has a strict limit
    monkeypatch.setattr(peer_target, "SERVED_LIMIT_S", 20.0)
    monkeypatch.setattr(hostile_peers, "LATE_LIMIT_S", 20)
    enode = Enode.parse(node.rpc("net_enode"))
    target = hostile_peers.Target(enode, Place("127.0.0.1", node.ports["json-rpc"]), node.pid, scale=0.01)
    assert asyncio.run(hostile_peers.run(target, [name])) == []
    assert node.is_running


def test_the_node_has_said_nothing_it_should_not(node: NodeProcess) -> None:
    assert "Traceback" not in node.output()
    assert node.stop() == 0
