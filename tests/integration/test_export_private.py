"""`private_transactions`: a member exports what it can read, a node that is no member exports nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.data import open_chain
from ophion.enclave.group_ids import legacy_id
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import NodeProcess
from ophion.testing.private_transactions import NUMBER_CONTRACT, PrivateClient, set_number, text
from ophion.testing.signing import DEV_KEYS
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion

pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")
import pyarrow.parquet as parquet

LIMIT_S = 60.0


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNetwork]:
    options = ("--privacy-enabled", "--privacy-delivery=queue")
    path = tmp_path_factory.mktemp("private")
    with TestNetwork(path, "qbft", validators=1, followers=2, options=options) as running:
        yield running


def url(node: NodeProcess) -> str:
    return f"http://127.0.0.1:{node.ports['json-rpc']}"


def test_members_export_the_same_rows_and_others_none(network: TestNetwork, tmp_path: Path) -> None:
    a, b, c = (PrivateClient(node, key, CHAIN_ID) for node, key in zip(network.nodes, DEV_KEYS, strict=False))
    for node in (a.node, b.node):
        wait_for(lambda node=node: len(node.rpc("priv_status")["peers"]) >= 2, LIMIT_S, "enclaves")
    created = a.send(NUMBER_CONTRACT, private_for=(b.enclave_key,))
    contract = a.receipt(created)["contractAddress"]
    called = a.send(set_number(47), to=contract, private_for=(b.enclave_key,))
    assert a.receipt(called)["status"] == "0x1"
    for node in (b.node, c.node):
        wait_for(lambda node=node: node.rpc("eth_getTransactionReceipt", called) is not None, LIMIT_S, "the block")
    wait_for(lambda: b.node.rpc("priv_getTransactionReceipt", called) is not None, LIMIT_S, "the payload")
    last = int(a.node.rpc("eth_getTransactionReceipt", called)["blockNumber"], 16)
    tables = []
    for client in (a, b, c):
        with open_chain(url(client.node)) as chain:
            tables.append(chain.private_transactions(blocks=(0, last)).to_arrow().to_pylist())
    assert tables[0] == tables[1]
    assert tables[2] == []
    first, second = tables[0]
    assert ["0x" + row["transaction_hash"].hex() for row in (first, second)] == [created, called]
    assert (first["input"], second["input"]) == (NUMBER_CONTRACT, set_number(47))
    assert "0x" + first["contract_address"].hex() == "0x" + second["to_address"].hex() == contract
    assert first["privacy_group_id"] == text(legacy_id([a.enclave_key, b.enclave_key]))
    assert (first["private_from"], first["private_for"]) == (text(a.enclave_key), text(b.enclave_key))
    assert (first["from_address"], first["status"], second["nonce"]) == (a.key.address, 1, 1)

    to = tmp_path / "tables"
    named = ("export", "parquet", "--datasets=private_transactions")
    ophion(*named, f"--rpc={url(b.node)}", f"--end-block={last + 1}", f"--to={to}").succeeded()
    (file,) = to.rglob("*.parquet")
    assert parquet.read_table(file).num_rows == 2

    refused = ophion(*named, f"--data-path={a.node.data_path}", f"--to={tmp_path / 'no'}")
    refused.failed("needs --rpc=URL: payloads are encrypted")


def test_a_node_without_privacy_says_so(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--rpc-http-api=ETH,PRIV") as node:
        named = ("export", "parquet", "--datasets=private_transactions", f"--to={tmp_path / 'no'}")
        ophion(*named, f"--rpc={url(node)}").failed("Privacy is not enabled")
