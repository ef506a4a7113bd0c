"""Sends the same requests to go-ethereum and to a node with --compat=geth-1.13. The test lists every deviation
by name.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.native.crypto import PrivateKey
from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.signing import legacy_transaction
from ophion.testing.wait_for import wait_for

GETH = os.environ.get("GETH", "")
pytestmark = pytest.mark.skipif(not shutil.which(GETH or "-"), reason="GETH does not name a go-ethereum program")

NOBODY = "0x" + "11" * 20
UNKNOWN = "0x" + "ab" * 32
POOR = "0x" + legacy_transaction(PrivateKey(b"\x77" * 32), 0, value=1, gas_price=10**10, chain_id=1337).hex()
REQUESTS: dict[str, tuple[str, list[Any]]] = {
    "chain id": ("eth_chainId", []),
    "network id": ("net_version", []),
    "block number": ("eth_blockNumber", []),
    "balance of nobody": ("eth_getBalance", [NOBODY, "latest"]),
    "balance without block": ("eth_getBalance", [NOBODY]),
    "balance of a short address": ("eth_getBalance", ["0x11", "latest"]),
    "balance at an unknown block": ("eth_getBalance", [NOBODY, "0xffffff"]),
    "balance at an unknown hash": ("eth_getBalance", [NOBODY, {"blockHash": UNKNOWN}]),
    "code of nobody": ("eth_getCode", [NOBODY, "latest"]),
    "nonce of nobody": ("eth_getTransactionCount", [NOBODY, "latest"]),
    "storage of nobody": ("eth_getStorageAt", [NOBODY, "0x0", "latest"]),
    "unknown block by number": ("eth_getBlockByNumber", ["0xffffff", False]),
    "unknown block by hash": ("eth_getBlockByHash", [UNKNOWN, False]),
    "block with a bad number": ("eth_getBlockByNumber", ["0xzz", False]),
    "block number with leading zeros": ("eth_getBlockByNumber", ["0x00", False]),
    "transaction count of an unknown block": ("eth_getBlockTransactionCountByHash", [UNKNOWN]),
    "uncle count of an unknown block": ("eth_getUncleCountByBlockHash", [UNKNOWN]),
    "transaction by index of an unknown block": ("eth_getTransactionByBlockHashAndIndex", [UNKNOWN, "0x0"]),
    "receipts of an unknown block": ("eth_getBlockReceipts", ["0xffffff"]),
    "logs of nobody": ("eth_getLogs", [{"address": NOBODY, "fromBlock": "0x0", "toBlock": "latest"}]),
    "logs of an unknown hash": ("eth_getLogs", [{"blockHash": UNKNOWN}]),
    "logs from the end to the start": ("eth_getLogs", [{"fromBlock": "0x2", "toBlock": "0x1"}]),
    "changes of an unknown filter": ("eth_getFilterChanges", ["0x1"]),
    "logs of an unknown filter": ("eth_getFilterLogs", ["0x1"]),
    "uninstall an unknown filter": ("eth_uninstallFilter", ["0x1"]),
    "call of nobody": ("eth_call", [{"to": NOBODY}, "latest"]),
    "call with too much value": ("eth_call", [{"from": NOBODY, "to": NOBODY, "value": "0x1"}, "latest"]),
    "estimate with too much value": ("eth_estimateGas", [{"from": NOBODY, "to": NOBODY, "value": "0x1"}]),
    "call with an invalid opcode": ("eth_call", [{"data": "0xfe"}, "latest"]),
    "call that reverts": ("eth_call", [{"data": "0x60006000fd"}, "latest"]),
    "raw transaction that is empty": ("eth_sendRawTransaction", ["0x"]),
    "raw transaction that is no RLP": ("eth_sendRawTransaction", ["0x00"]),
    "raw transaction of a poor account": ("eth_sendRawTransaction", [POOR]),
    "unknown method": ("eth_nothing", []),
    "unknown group": ("nothing_at_all", []),
    "too few parameters": ("eth_getBalance", []),
    "too many parameters": ("eth_chainId", [1]),
    "hash": ("web3_sha3", ["0x68656c6c6f"]),
    "hash of no hexadecimal": ("web3_sha3", ["hello"]),
    "fee history of no blocks": ("eth_feeHistory", ["0x0", "latest", []]),
}


def _ask(port: int, method: str, params: list[Any]) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    connection.request("POST", "/", body, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    error = answer.get("error")
    return json.dumps(answer.get("result")) if error is None else f"{error['code']} {error['message']}"


@pytest.fixture(scope="module")
def geth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("geth")
    command = [GETH, "--dev", f"--datadir={folder}", "--http", f"--http.port={port}", "--ipcdisable", "--nodiscover"]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:

        def answers() -> bool:
            try:
                return _ask(port, "eth_chainId", []) == '"0x539"'
            except OSError:
                return False

        try:
            wait_for(answers)
            yield port
        finally:
            process.terminate()


DEVIATIONS = {
    "balance without block": "the block is optional, as in Besu",
    "balance of a short address": "short addresses are padded, as in Besu",
    "balance at an unknown block": "null, as in Besu",
    "balance at an unknown hash": "null, as in Besu",
    "block with a bad number": "the text of invalid parameters",
    "block number with leading zeros": "leading zeros are accepted, as in Besu",
    "logs of an unknown hash": "the text of an unknown block",
    "logs from the end to the start": "an error of parameters",
    "call with too much value": "the text ends before the amounts",
    "estimate with too much value": "the text ends before the amounts",
    "call with an invalid opcode": "the text ends before the name of the instruction",
    "call that reverts": "code 3 also without data",
    "raw transaction that is empty": "an error of parameters",
    "raw transaction that is no RLP": "an error of parameters",
    "raw transaction of a poor account": "the text ends before the amounts",
    "too few parameters": "the text of invalid parameters",
    "too many parameters": "further parameters are ignored, as in Besu",
    "hash of no hexadecimal": "the text of invalid parameters",
    "fee history of no blocks": "an error of parameters",
}
"""Requests whose answers differ from geth, with what the node does instead."""


def test_answers_differ_only_where_it_is_listed(geth: int, tmp_path: Path) -> None:
    options = ("--network=dev", "--compat=geth-1.13", "--p2p-enabled=false", "--rpc-http-api=ETH,NET,WEB3")
    with NodeProcess(tmp_path / "node", *options) as node:
        port = node.ports["json-rpc"]
        answers = {name: (_ask(geth, *request), _ask(port, *request)) for name, request in REQUESTS.items()}
    different = {name: pair for name, pair in answers.items() if pair[0] != pair[1]}
    assert set(different) == set(DEVIATIONS), different
