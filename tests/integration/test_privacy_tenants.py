"""Tenants of a node whose enclave is remote: their tokens name the keys, as in Besu's multi-tenancy tutorial."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any

import jwt

from ophion.enclave.group_ids import legacy_id
from ophion.native.privacy import sign_private_transaction
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.private_transactions import ENCLAVE_KEYS, ENCLAVE_SECRETS, GAS, GET, NUMBER_CONTRACT, text
from ophion.testing.signing import DEV_KEYS
from ophion.testing.wait_for import wait_for

LIMIT_S = 60.0
SECRET = "s" * 40
SENDER = "0x" + DEV_KEYS[0].address.hex()


class Tenant:
    """A client whose token names an enclave key."""

    def __init__(self, node: NodeProcess, key: bytes) -> None:
        claims = {"permissions": ["*:*"], "privacyPublicKey": text(key), "exp": int(time.time()) + 600}
        self._token = jwt.encode(claims, SECRET, "HS256")
        self._port = node.ports["json-rpc"]
        self.key = key

    def ask(self, method: str, *params: Any) -> Any:
        """Return the result of a call, or the message of its error."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=LIMIT_S)
        headers = {"Authorization": f"Bearer {self._token}"}
        connection.request("POST", "/", json.dumps({"id": 1, "method": method, "params": params}), headers)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer["result"] if "result" in answer else answer["error"]["message"]

    def create(self, private_for: bytes) -> Any:
        """Create a contract for this tenant and another key; return the hash of the marker, or the error."""
        raw = sign_private_transaction(
            DEV_KEYS[0].secret(),
            nonce=0,
            gas_price=0,
            gas_limit=GAS,
            to=None,
            data=NUMBER_CONTRACT,
            private_from=self.key,
            private_for=(private_for,),
            privacy_group_id=None,
            chain_id=CHAIN_ID,
        )
        return self.ask("eea_sendRawTransaction", "0x" + raw.hex())


def test_tokens_name_the_keys_of_a_remote_enclave(tmp_path: Path) -> None:
    files = []
    for number, secret in enumerate(ENCLAVE_SECRETS[:2]):
        files.append(tmp_path / f"enclave{number}.key")
        files[-1].write_text(json.dumps({"data": {"bytes": text(secret)}, "type": "unlocked"}))
    token_key = tmp_path / "token.key"
    token_key.write_text(SECRET)
    (port,) = free_ports(1)
    own = {
        0: (f"--privacy-enclave-http-port={port}", *(f"--privacy-enclave-key-file={file}" for file in files)),
        1: (
            f"--privacy-url=http://127.0.0.1:{port}",
            "--privacy-multi-tenancy-enabled",
            "--rpc-http-authentication-enabled",
            f"--rpc-http-authentication-jwt-public-key-file={token_key}",
            "--rpc-http-authentication-jwt-algorithm=HS256",
            "--rpc-http-api-methods-no-auth=eth_blockNumber,net_peerCount",
        ),
    }
    with TestNetwork(tmp_path, "qbft", validators=1, followers=1, options=("--privacy-enabled",), own=own) as network:
        node = network.nodes[1]
        first, second, unknown = (Tenant(node, key) for key in ENCLAVE_KEYS)
        group = legacy_id([first.key, first.key])
        marker = first.create(first.key)
        wait_for(lambda: first.ask("eth_getTransactionReceipt", marker), LIMIT_S, "the marker's block")
        receipt = wait_for(lambda: first.ask("priv_getTransactionReceipt", marker), LIMIT_S, "the private receipt")
        call = {"to": receipt["contractAddress"], "data": GET}
        assert int(first.ask("priv_call", text(group), call, "latest"), 16) == 0
        assert first.ask("priv_getTransactionCount", SENDER, text(group)) == "0x1"
        refused = "Privacy group must contain the enclave public key"
        for other in (second, unknown):
            assert other.ask("priv_call", text(group), call, "latest") == refused
            assert other.ask("priv_getTransactionReceipt", marker) is None

        # a group of both tenants, created by the second one
        members = [text(first.key), text(second.key)]
        shared = second.ask("priv_createPrivacyGroup", {"addresses": members})
        assert [one["privacyGroupId"] for one in first.ask("priv_findPrivacyGroup", members)] == [shared]
        assert unknown.ask("priv_getTransactionCount", SENDER, shared) == refused
        marker = second.create(first.key)
        wait_for(lambda: second.ask("eth_getTransactionReceipt", marker), LIMIT_S, "the marker's block")
        for one in (first, second):
            assert wait_for(lambda one=one: one.ask("priv_getTransactionReceipt", marker), LIMIT_S, "the receipt")

        # the enclave refuses a key that it does not hold
        assert unknown.create(first.key) == "EnclaveNoMatchingPrivateKey"
