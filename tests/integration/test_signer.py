"""Sends the calls that EthSigner and Web3Signer make to a node, taken from their sources: nonce, raw transaction,
retry.
"""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for

SENDER = "0x" + DEV_KEYS[0].address.hex()


def _call(node: NodeProcess, method: str, *params: Any) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", node.ports["json-rpc"], timeout=60)
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 77})
    # send the headers that a signer forwards from its client
    connection.request("POST", "/", body, {"Content-Type": "application/json", "Accept": "*/*"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


@pytest.mark.parametrize(
    ("option", "status"), [("--rpc-http-error-status-400=true", 400), ("--rpc-http-error-status-400=false", 200)]
)
def test_a_signer_sends_and_learns_of_a_used_nonce(tmp_path: Path, option: str, status: int) -> None:
    """If the nonce is already used, the node replies with the HTTP status on which a signer retries.

    EthSigner retries on HTTP 400, Web3Signer on HTTP 200.
    """
    options = ("--network=dev", "--p2p-enabled=false", "--miner-enabled", "--miner-coinbase=" + SENDER)
    with NodeProcess(tmp_path / "node", *options, option) as node:
        code, counted = _call(node, "eth_getTransactionCount", SENDER, "pending")
        assert (code, counted["result"], counted["id"]) == (200, "0x0", 77)
        raw = "0x" + legacy_transaction(DEV_KEYS[0], 0, to=DEV_KEYS[1].address, value=1).hex()
        _, sent = _call(node, "eth_sendRawTransaction", raw)
        wait_for(lambda: node.rpc("eth_getTransactionReceipt", sent["result"]) is not None)
        again = "0x" + legacy_transaction(DEV_KEYS[0], 0, to=DEV_KEYS[1].address, value=2, gas_price=0).hex()
        code, refused = _call(node, "eth_sendRawTransaction", again)
        assert code == status
        assert (refused["error"]["code"], refused["error"]["message"]) == (-32001, "Nonce too low")
        assert _call(node, "eth_getTransactionCount", SENDER, "pending")[1]["result"] == "0x1"
