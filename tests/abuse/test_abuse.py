"""The abuse script at a small scale, against a node of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ophion.testing.process import MINING, NodeProcess
from tests.abuse import abuse

OPTIONS = (
    "--rpc-http-api=ETH,NET,WEB3,TRACE",
    "--rpc-ws-enabled",
    "--rpc-ws-port=0",
    "--rpc-ws-api=ETH",
    "--durable-commits=false",
    # low enough to be reached at a small scale
    "--rpc-http-max-active-connections=80",
    "--rpc-ws-max-active-connections=60",
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("abuse") / "data", *MINING, *OPTIONS) as running:
        yield running


@pytest.mark.parametrize("name", [attack.__name__ for attack in abuse.ATTACKS])
def test_a_node_stands(name: str, node: NodeProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    # the machine of a test run is busy with other tests: this guards against minutes, the script against milliseconds
    monkeypatch.setattr(abuse, "PROBE_LIMIT_S", 2.0)
    target = abuse.Target(
        ("127.0.0.1", node.ports["json-rpc"]), ("127.0.0.1", node.ports["ws-rpc"]), node.pid, scale=0.02
    )
    assert asyncio.run(abuse.run(target, [name])) == []
    assert node.is_running


def test_the_node_has_said_what_it_did(node: NodeProcess) -> None:
    assert "Traceback" not in node.output()
    assert node.stop() == 0
