"""Tests priv_*: private states, logs, filters, subscriptions, traces and tenants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.enclave.group_ids import legacy_id
from ophion.native.privacy import private_contract_address
from ophion.rpc.schema.registry import WEBSOCKET
from ophion.runtime.principal import TENANT
from ophion.testing.private_transactions import set_number, text
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until
from tests.unit.rpc.interface import GROUPS
from tests.unit.rpc.private_interface import FOR, FROM, PRIVACY, THIRD, PrivateInterface, open_private

GROUP = legacy_id([FROM, FOR])
SENDER = "0x" + DEV_KEYS[0].address.hex()
CONTRACT = private_contract_address(DEV_KEYS[0].address, 0, GROUP)
SHOWN = "0x" + CONTRACT.hex()


def deploying(runtime: str, first: str = "") -> bytes:
    """Return init code that runs `first` and then returns this code."""
    size, start = len(runtime) // 2, len(first) // 2 + 12
    return bytes.fromhex(f"{first}60{size:02x}60{start:02x}60003960{size:02x}6000f3{runtime}")


LOGGER = deploying("602a600052" + "600035" + "60206000a1" + "00")
"""Code that logs 42 with the first word of the input as topic."""
HOLDER = deploying("600035" + "80601257" + "60005460005260206000f3" + "5b60005500", first="6007600055")
"""Contract that stores 7 at first. If the first word of the input is not 0, the contract stores this word; otherwise it
returns the stored word.
"""
FORWARDER = deploying("602035600052" + "60206000602060006000600035" + "5af150" + "60206000f3")
"""Code that calls the address in the first word with the second word, and returns the result."""


@pytest.fixture
def private(tmp_path: Path) -> Iterator[PrivateInterface]:
    with open_private(tmp_path) as opened:
        yield opened


def word(number: int) -> str:
    return "0x" + number.to_bytes(32, "big").hex()


def test_states_by_block(private: PrivateInterface) -> None:
    empty = private.ask("priv_debugGetStateRoot", text(GROUP), "latest")
    assert empty == "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
    private.send()
    first = private.ask("priv_debugGetStateRoot", text(GROUP), "latest")
    private.send(set_number(1), nonce=1, to=CONTRACT)
    second = private.ask("priv_debugGetStateRoot", text(GROUP), "latest")
    assert len({empty, first, second}) == 3
    assert private.ask("priv_debugGetStateRoot", text(GROUP), "0x1") == first
    assert private.ask("priv_debugGetStateRoot", text(GROUP), "0x0") == empty
    assert private.error("priv_debugGetStateRoot", text(GROUP), "0x9") == (-32000, "Block not found")
    assert private.ask("priv_getCode", text(GROUP), SHOWN, "latest").startswith("0x6080")
    assert private.ask("priv_getCode", text(GROUP), SHOWN, "0x0") == "0x"
    assert private.ask("priv_getCode", text(bytes(32)), SHOWN) == "0x"


def test_calls(private: PrivateInterface) -> None:
    private.send()
    call = {"to": SHOWN, "data": "0x6d4ce63c"}
    assert private.ask("priv_call", text(GROUP), call, "latest") == word(0)
    assert private.error("priv_call", text(GROUP), {"data": "0x"}, "latest")[0] == -32602
    assert private.error("priv_call", text(GROUP), {"to": SHOWN, "data": "0x12345678"})[0] == 3


def test_public_state_is_read_and_never_written(private: PrivateInterface) -> None:
    creation = legacy_transaction(DEV_KEYS[2], 0, to=None, data=HOLDER, gas=200_000)
    _, (hash,) = private.run(private.node.mine(creation))
    public = private.ask("eth_getTransactionReceipt", "0x" + hash.hex())["contractAddress"]
    assert private.ask("priv_call", text(GROUP), {"to": public}, "latest") == word(7)
    private.send(FORWARDER)
    assert private.ask("priv_getCode", text(GROUP), SHOWN) != "0x"
    target = "0x" + public[2:].rjust(64, "0")
    assert private.ask("priv_call", text(GROUP), {"to": SHOWN, "data": target + word(0)[2:]}) == word(7)
    marker = private.send(bytes.fromhex(target[2:] + word(9)[2:]), nonce=1, to=CONTRACT)
    assert private.ask("priv_getTransactionReceipt", marker)["status"] == "0x0"
    explained = private.ask("priv_explain", marker)
    assert explained["reason"].lower() == f"public state cannot be changed: {public}"
    assert private.ask("eth_call", {"to": public}, "latest") == word(7)
    assert private.ask("priv_call", text(GROUP), {"to": public}, "latest") == word(7)


def test_logs_belong_to_their_group_alone(private: PrivateInterface) -> None:
    private.send(LOGGER)
    markers = [private.send(bytes.fromhex(word(n)[2:]), nonce=n, to=CONTRACT) for n in (1, 2)]
    found = private.ask("priv_getLogs", text(GROUP), {})
    assert [log["topics"] for log in found] == [[word(1)], [word(2)]]
    assert [log["transactionHash"] for log in found] == markers
    assert {log["data"] for log in found} == {word(42)}
    assert {(log["address"], log["logIndex"], log["removed"]) for log in found} == {(SHOWN, "0x0", False)}
    assert [log["blockNumber"] for log in found] == ["0x2", "0x3"]
    assert private.ask("priv_getLogs", text(GROUP), {"topics": [word(2)]}) == found[1:]
    assert private.ask("priv_getLogs", text(GROUP), {"address": SHOWN, "topics": [[word(1), word(5)]]}) == found[:1]
    assert private.ask("priv_getLogs", text(GROUP), {"fromBlock": "0x3"}) == found[1:]
    assert private.ask("priv_getLogs", text(GROUP), {"blockHash": found[0]["blockHash"]}) == found[:1]
    assert private.ask("priv_getLogs", text(GROUP), {"address": "0x" + "11" * 20}) == []
    assert private.ask("priv_getLogs", text(bytes(32)), {}) == []
    assert private.ask("eth_getLogs", {"fromBlock": "0x0"}) == [], "never among public logs"
    receipt = private.ask("priv_getTransactionReceipt", markers[0])
    assert receipt["logs"] == found[:1]
    assert int(receipt["logsBloom"], 16) != 0


def test_filters(private: PrivateInterface) -> None:
    private.send(LOGGER)
    filter_id = private.ask("priv_newFilter", text(GROUP), {"topics": [word(2)]})
    assert private.ask("priv_getFilterChanges", text(GROUP), filter_id) == []
    for nonce in (1, 2):
        private.send(bytes.fromhex(word(nonce)[2:]), nonce=nonce, to=CONTRACT)
    found = private.ask("priv_getFilterChanges", text(GROUP), filter_id)
    assert [log["topics"] for log in found] == [[word(2)]]
    assert private.ask("priv_getFilterChanges", text(GROUP), filter_id) == []
    assert private.ask("priv_getFilterLogs", text(GROUP), filter_id) == found
    for name, what in (("priv_getFilterChanges", "Filter"), ("priv_getFilterLogs", "Logs filter")):
        assert private.error(name, text(bytes(32)), filter_id) == (-32000, f"{what} not found")
        assert private.error(name, text(GROUP), "0x1") == (-32000, f"{what} not found")
    assert private.ask("priv_uninstallFilter", text(bytes(32)), filter_id) is False
    assert private.ask("priv_uninstallFilter", text(GROUP), filter_id) is True
    assert private.ask("priv_uninstallFilter", text(GROUP), filter_id) is False


def test_an_id_of_a_private_filter_answers_on_the_public_methods(private: PrivateInterface) -> None:
    """As in Besu, `eth_getFilterChanges` accepts an id of `priv_newFilter`. web3j polls private filters with this
    method.
    """
    private.send(LOGGER)
    filter_id = private.ask("priv_newFilter", text(GROUP), {"fromBlock": "earliest"})
    private.send(bytes.fromhex(word(3)[2:]), nonce=1, to=CONTRACT)
    found = private.ask("eth_getFilterChanges", filter_id)
    assert [log["topics"] for log in found] == [[word(3)]]
    assert private.ask("eth_getFilterChanges", filter_id) == []
    assert private.ask("eth_getFilterLogs", filter_id) == found
    assert private.ask("eth_uninstallFilter", filter_id) is True
    assert private.ask("eth_uninstallFilter", filter_id) is False
    assert private.error("eth_getFilterChanges", filter_id) == (-32000, "Filter not found")
    assert private.error("eth_getFilterLogs", filter_id) == (-32000, "Logs filter not found")


class Listening:
    """A connection that records its notifications."""

    client = "somebody"

    def __init__(self) -> None:
        self.told: list[Any] = []

    def notify(self, message: bytes) -> None:
        self.told.append(json.loads(message))

    def close(self) -> None:
        self.told.append("closed")


def test_subscriptions(private: PrivateInterface) -> None:
    caller = Listening()
    dispatcher = private.dispatcher_for(WEBSOCKET, (*GROUPS, "eea"))

    def ask(name: str, *params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": params}).encode()
        return private.message(body, dispatcher, caller)

    private.send(LOGGER)
    id = ask("priv_subscribe", text(GROUP), "logs", {"address": SHOWN})["result"]
    other = ask("priv_subscribe", text(bytes(32)), "logs")["result"]
    assert ask("priv_subscribe", text(GROUP), "newHeads")["error"]["code"] == -32600
    marker = private.send(bytes.fromhex(word(1)[2:]), nonce=1, to=CONTRACT)
    private.ask("priv_getTransactionReceipt", marker)
    private.run(until(lambda: bool(caller.told)))
    (message,) = caller.told
    assert message["method"] == "priv_subscription"
    assert (message["params"]["subscription"], message["params"]["privacyGroupId"]) == (id, text(GROUP))
    assert message["params"]["result"]["transactionHash"] == marker
    assert ask("priv_unsubscribe", text(bytes(32)), id)["error"]["message"] == "Subscription not found"
    assert ask("priv_unsubscribe", text(GROUP), id)["result"] is True
    assert ask("priv_unsubscribe", text(GROUP), id)["error"]["message"] == "Subscription not found"
    assert ask("priv_unsubscribe", text(bytes(32)), other)["result"] is True
    assert len(private.subscriptions) == 0


def test_traces(private: PrivateInterface) -> None:
    created = private.send()
    (entry,) = private.ask("priv_traceTransaction", created)
    assert (entry["type"], entry["result"]["address"], entry["action"]["from"]) == ("create", SHOWN, SENDER)
    assert (entry["transactionHash"], entry["blockNumber"]) == (created, 1)
    markers = [
        private.ask("eea_sendRawTransaction", private.signed(set_number(n), nonce=n, to=CONTRACT)) for n in (1, 2)
    ]
    private.seal()
    (entry,) = private.ask("priv_traceTransaction", markers[1])
    assert (entry["type"], entry["action"]["to"]) == ("call", SHOWN)
    assert entry["action"]["input"] == "0x" + set_number(2).hex()
    assert private.ask("priv_traceTransaction", "0x" + "11" * 32) is None


def test_several_markers_of_a_block_are_executed_in_order(private: PrivateInterface) -> None:
    markers = [private.ask("eea_sendRawTransaction", private.signed())]
    for nonce in range(1, 6):
        markers.append(
            private.ask("eea_sendRawTransaction", private.signed(set_number(nonce), nonce=nonce, to=CONTRACT))
        )
    private.seal()
    assert {private.ask("priv_getTransactionReceipt", marker)["status"] for marker in markers} == {"0x1"}
    assert private.ask("priv_call", text(GROUP), {"to": SHOWN, "data": "0x6d4ce63c"}) == word(5)
    head = private.node.chain.head
    rows = private.privacy.ledger.roots(GROUP, head.number, head.hash)
    assert ["0x" + marker.hex() for marker, _ in rows] == markers
    assert len({root for _, root in rows}) == len(markers)


def test_tenants_see_what_is_theirs(tmp_path: Path) -> None:
    with open_private(tmp_path, replace(PRIVACY, multi_tenancy=True), keys=3) as private:
        third = legacy_id([THIRD])

        def as_tenant(key: bytes | None) -> None:
            TENANT.set(None if key is None else text(key))

        as_tenant(FROM)
        marker = private.send()
        assert private.ask("priv_getTransactionReceipt", marker)["contractAddress"] == SHOWN
        assert private.error("priv_status")[0] == -50100
        as_tenant(FOR)
        assert private.ask("priv_getTransactionReceipt", marker)["contractAddress"] == SHOWN
        assert private.error("eea_sendRawTransaction", private.signed(nonce=1)) == (
            -50100,
            "Private from does not match enclave public key",
        )
        as_tenant(THIRD)
        assert private.ask("priv_getTransactionReceipt", marker) is None
        assert private.ask("priv_getPrivateTransaction", marker) is None
        assert private.ask("priv_explain", marker)["state"] == "not ours"
        found = private.error("priv_findPrivacyGroup", [text(FROM), text(FOR)])
        assert found == (-50100, "Error finding privacy group")
        refused = (-50100, "Privacy group must contain the enclave public key")
        for name, params in (
            ("priv_call", ({"to": SHOWN},)),
            ("priv_getCode", (SHOWN,)),
            ("priv_getLogs", ({},)),
            ("priv_newFilter", ({},)),
            ("priv_getFilterChanges", ("0x1",)),
            ("priv_debugGetStateRoot", ()),
            ("priv_catchUp", ()),
            ("priv_deletePrivacyGroup", ()),
        ):
            assert private.error(name, text(GROUP), *params) == refused, name
        assert private.error("priv_getTransactionCount", SENDER, text(GROUP)) == refused
        assert private.ask("priv_getTransactionCount", SENDER, text(third)) == "0x0"
        as_tenant(None)
        nobody = (-50100, "The token names no privacy public key of this node")
        assert private.error("eea_sendRawTransaction", private.signed()) == nobody
        assert private.error("priv_getTransactionReceipt", marker) == nobody
        as_tenant(bytes(32))
        assert private.error("priv_call", text(GROUP), {"to": SHOWN}) == nobody


def test_more_logs_than_an_answer_holds_are_refused(private: PrivateInterface, monkeypatch: pytest.MonkeyPatch) -> None:
    private.send(LOGGER)
    filter_id = private.ask("priv_newFilter", text(GROUP), {})
    markers = [private.send(bytes.fromhex(word(nonce)[2:]), nonce=nonce, to=CONTRACT) for nonce in (1, 2)]
    for place in ("ophion.rpc.services.private_logs.MAX_LOGS", "ophion.rpc.methods.priv_transactions.MAX_LOGS"):
        monkeypatch.setattr(place, 0)
    assert private.error("priv_getLogs", text(GROUP), {})[0] == -32005
    assert private.error("priv_getFilterChanges", text(GROUP), filter_id)[0] == -32005
    assert private.ask("priv_getFilterChanges", text(GROUP), filter_id) == [], "nobody is stuck with it"
    assert private.error("priv_getTransactionReceipt", markers[0])[1] == "Response exceeds maximum RPC response size"
