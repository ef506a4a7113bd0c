"""A node whose old blocks are not downloaded yet says so in every interface, and never returns an empty result."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.block import decode_block
from ophion.chain.chain import Chain
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.native.store import BlockHistory, open_store
from ophion.native.wire import split_receipts
from ophion.node.snap_sync.headers import ReceivedHeaders
from ophion.primitives import rlp
from ophion.testing.busy_chain import blocks_of, genesis_text
from ophion.testing.node_process import NodeProcess, RpcFailure
from ophion.testing.ports import free_ports
from tests.integration.command import ophion

BLOCKS, START = 40, 31
SENTENCE = "block {} has not been downloaded yet; bodies and receipts are available from block 31"
NOW = 2_000_000_000


def write_chain(data: Path) -> None:
    """Write a database with the headers of a chain and the bodies of its last ten blocks. No block has transactions, so
    all blocks have the state of the genesis block.
    """
    text = genesis_text("qbft")
    genesis = parse_genesis(text)
    (data / "database").mkdir(parents=True)
    (data.parent / "genesis.json").write_text(text)
    with closing(open_store(data / "database", durable=False)) as store:
        chain = Chain.open(store, genesis, engine_for(genesis.spec))
        blocks = [decode_block(raw, chain.engine) for raw in blocks_of(text, BLOCKS, 0, 0)]
        ReceivedHeaders(chain).add([block.header for block in blocks], NOW)
        history = BlockHistory(store)
        history.begin(BLOCKS)
        (none,) = split_receipts(rlp.list_of((rlp.EMPTY_LIST,)), True, 1)
        history.put([(block.header.hash, block.body, none) for block in reversed(blocks[START - 1 :])])
        store.rewind(blocks[-1].header.hash, blocks[-1].header.header.state_root)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history") / "data"
    write_chain(folder)
    return folder


@pytest.fixture(scope="module")
def graphql_port() -> int:
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def node(data: Path, graphql_port: int) -> Iterator[NodeProcess]:
    options = (
        f"--genesis-file={data.parent / 'genesis.json'}",
        "--p2p-enabled=false",
        "--rpc-http-api=ETH,DEBUG,TRACE,OTS,TXPOOL",
        "--graphql-http-enabled",
        f"--graphql-http-port={graphql_port}",
    )
    with NodeProcess(data, *options) as found:
        yield found


def query(port: int, text: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/graphql", json.dumps({"query": text}), {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())


def test_the_node_says_from_which_block_on_it_has_bodies(node: NodeProcess) -> None:
    found = node.rpc("eth_capabilities")
    assert [found[key]["oldestBlock"] for key in ("blocks", "tx", "logs", "receipts")] == [hex(START)] * 4
    assert node.height == BLOCKS


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("eth_getBlockByNumber", ["0x7", False]),
        ("eth_getBlockByNumber", ["0x7", True]),
        ("eth_getBlockTransactionCountByNumber", ["0x7"]),
        ("eth_getUncleCountByBlockNumber", ["0x7"]),
        ("eth_getTransactionByBlockNumberAndIndex", ["0x7", "0x0"]),
        ("eth_getBlockReceipts", ["0x7"]),
        ("eth_getLogs", [{"fromBlock": "0x7", "toBlock": "0x7"}]),
        ("eth_getLogs", [{"fromBlock": "0x7", "toBlock": "latest", "address": "0x" + "aa" * 20}]),
        ("eth_feeHistory", ["0x1", "0x7", [50]]),
        ("debug_getRawBlock", ["0x7"]),
        ("debug_getRawReceipts", ["0x7"]),
        ("debug_traceBlockByNumber", ["0x7"]),
        ("trace_block", ["0x7"]),
        ("ots_getBlockDetails", ["0x7"]),
    ],
)
def test_a_missing_block_is_one_error(node: NodeProcess, method: str, params: list[Any]) -> None:
    with pytest.raises(RpcFailure, match=SENTENCE.format(7)):
        node.rpc(method, *params)
    later = json.loads(json.dumps(params).replace('"0x7"', hex(START).join('""')))
    node.rpc(method, *later)


def test_a_search_from_the_genesis_block_names_the_first_missing_block(node: NodeProcess) -> None:
    logs = {"fromBlock": "earliest", "toBlock": "latest"}
    with pytest.raises(RpcFailure, match=SENTENCE.format(1)):
        node.rpc("eth_getLogs", logs)
    found = node.rpc("eth_newFilter", logs)
    with pytest.raises(RpcFailure, match=SENTENCE.format(1)):
        node.rpc("eth_getFilterLogs", found)
    assert node.rpc("eth_getLogs", {"fromBlock": "earliest", "toBlock": "earliest"}) == []
    assert node.rpc("eth_getLogs", {"fromBlock": hex(START), "toBlock": "latest"}) == []


def test_what_needs_no_body_is_answered(node: NodeProcess) -> None:
    assert node.rpc("eth_getBlockByNumber", "earliest", True)["number"] == "0x0"
    assert node.rpc("eth_getTransactionByHash", "0x" + "07" * 32) is None
    assert node.rpc("eth_getTransactionReceipt", "0x" + "07" * 32) is None
    assert len(node.rpc("eth_feeHistory", hex(BLOCKS), "latest", [])["gasUsedRatio"]) == BLOCKS
    assert int(node.rpc("eth_gasPrice"), 16) >= 0
    assert len(node.rpc("debug_getRawHeader", "0x7")) > 500


def test_graphql_has_the_same_error(node: NodeProcess, graphql_port: int) -> None:
    missing = query(graphql_port, "{ block(number: 7) { number transactionCount } }")
    assert SENTENCE.format(7) in json.dumps(missing["errors"])
    logs = query(graphql_port, '{ logs(filter: {fromBlock: "0x5", toBlock: "0x28"}) { index } }')
    assert SENTENCE.format(5) in json.dumps(logs["errors"])
    later = query(graphql_port, "{ block(number: 31) { transactionCount } }")
    assert later["data"]["block"]["transactionCount"] in (0, "0x0")


def test_commands_name_the_missing_block(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write_chain(data)
    place = f"--data-path={data}"
    ophion("storage", "check", place).succeeded()
    genesis = f"--genesis-file={tmp_path / 'genesis.json'}"
    target = tmp_path / "blocks.rlp"
    for failed in (
        ophion("blocks", "export", f"--to={target}", place, genesis),
        ophion("export", "parquet", f"--to={tmp_path / 'tables'}", "--datasets=blocks", place),
    ):
        assert failed.code == 1
        assert "has not been downloaded yet; bodies and receipts are available from block 31" in failed.err
        assert "Traceback" not in failed.err
    assert not target.exists()
    ophion("blocks", "export", f"--to={target}", "--start-block=31", place, genesis).succeeded()
    backup = tmp_path / "backup"
    ophion("storage", "backup", place, f"--to={backup}").succeeded()
    ophion("storage", "check", f"--data-path={backup}").succeeded()
