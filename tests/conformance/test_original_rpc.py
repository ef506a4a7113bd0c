"""Runs Pantheon's own JSON-RPC cases on its chain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.node.config import NodeConfig
from tests.conformance.comparison import answer_differences
from tests.conftest import DATA, shared_files
from tests.unit.rpc.interface import Interface, import_chain, open_interface

MOCKED = "../shared/fixtures/README.md: mocked in the original's test bench"
DEVIATIONS = {
    "eth_estimateGas_contractDeploy": "../shared/fixtures/README.md: bisection, our own choice (json-rpc.md 9, line 3)",
    "eth_getNewFilter_addressOnly": MOCKED,
    "eth_getNewFilter_emptyFilter": MOCKED,
    "eth_getNewFilter_topicOnly": MOCKED,
    "eth_getNewFilter_validFilterLatestBlock": MOCKED,
    "eth_getNewFilter_validFilterWithBlockNumber": MOCKED,
    "eth_getLogs_toBlockOutOfRange": "json-rpc.md 9, line 7: up to the head",
    "eth_newBlockFilter": MOCKED,
    "eth_newPendingTransactionFilter": MOCKED,
    "eth_protocolVersion": MOCKED,
    "eth_sendRawTransaction_contractCreation": MOCKED,
    "eth_sendRawTransaction_messageCall": MOCKED,
    "eth_sendRawTransaction_transferEther": MOCKED,
}
"""Cases whose answers differ intentionally, with the line of the specification that decides."""

CASES = shared_files("fixtures/original/jsonrpc/eth")


@pytest.fixture(scope="module")
def interface(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interface]:
    path = tmp_path_factory.mktemp("original")
    genesis = import_chain(path, DATA / "original-chain/genesis.json", DATA / "original-chain/test.blocks")
    with open_interface(path, genesis, NodeConfig()) as opened:
        yield opened


def test_the_chain_is_there(interface: Interface) -> None:
    assert interface.ask("eth_blockNumber") == "0x20"


@pytest.mark.skipif(not CASES, reason="public test data ../shared/fixtures/original/jsonrpc is not here")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case(interface: Interface, case: Path) -> None:
    content = json.loads(case.read_text())
    got = interface.message(json.dumps(content["request"]).encode())
    found = answer_differences(content["response"], got, lenient=True)
    reason = DEVIATIONS.get(case.stem)
    if reason is None:
        assert found == []
        assert got["id"] == content["response"]["id"]
    else:
        assert found, f"passes, though it is listed: {reason}"
