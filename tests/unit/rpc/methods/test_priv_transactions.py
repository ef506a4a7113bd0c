"""Tests eea_* and priv_*: sending, receipts and nonces, with every error of privacy.md 3 and 11."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.errors import PrivacyRefused
from ophion.native.crypto import keccak256
from ophion.native.privacy import decode_private_transaction
from ophion.rpc.methods import all_methods
from ophion.testing.private_transactions import NUMBER_CONTRACT, set_number, text
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import GROUPS, Interface
from tests.unit.rpc.private_interface import FOR, FROM, THIRD, PrivateInterface, open_private

SENDER = "0x" + DEV_KEYS[0].address.hex()
GROUP = legacy_id([FROM, FOR])
CONTRACT = "0xebf56429e6500e84442467292183d4d621359838"
REVERTING = bytes.fromhex("60fe60005260206000fd")


@pytest.fixture
def private(tmp_path: Path) -> Iterator[PrivateInterface]:
    with open_private(tmp_path) as opened:
        yield opened


def test_a_contract_is_created_and_used(private: PrivateInterface) -> None:
    marker = private.send()
    receipt = private.ask("eea_getTransactionReceipt", marker)
    assert receipt == private.ask("priv_getTransactionReceipt", marker)
    assert (receipt["contractAddress"], receipt["from"], receipt["to"]) == (CONTRACT, SENDER, None)
    assert receipt["output"].startswith("0x6080604052600436")
    assert (receipt["status"], receipt["logs"], receipt["transactionHash"]) == ("0x1", [], marker)
    assert receipt["privacyGroupId"] == text(GROUP)
    assert (receipt["privateFrom"], receipt["privateFor"]) == (text(FROM), [text(FOR)])
    public = private.ask("eth_getTransactionReceipt", marker)
    assert (public["to"], public["contractAddress"], public["logs"]) == ("0x" + "0" * 38 + "7e", None, [])
    assert (receipt["blockHash"], receipt["blockNumber"]) == (public["blockHash"], public["blockNumber"])
    used = private.send(set_number(47), nonce=1, to=bytes.fromhex(CONTRACT[2:]))
    receipt = private.ask("priv_getTransactionReceipt", used)
    assert (receipt["contractAddress"], receipt["to"], receipt["output"]) == (None, CONTRACT, "0x")
    call = {"to": CONTRACT, "data": "0x6d4ce63c"}
    assert int(private.ask("priv_call", text(GROUP), call, "latest"), 16) == 47
    assert int(private.ask("priv_call", text(GROUP), call, hex(1)), 16) == 0
    assert private.ask("priv_call", text(bytes(32)), call) == "0x", "another group has no such contract"
    assert private.ask("eth_call", call, "latest") == "0x", "nor has the public state"
    assert private.ask("eth_getCode", CONTRACT, "latest") == "0x"


def test_transactions_that_arrive_together_are_checked_like_single_ones(private: PrivateInterface) -> None:
    raws = [bytes.fromhex(private.signed(nonce=nonce)[2:]) for nonce in range(20)]
    raws[12] = raws[12][:-1]

    async def send_all() -> list[Any]:
        return await asyncio.gather(*(private.privacy.send(raw) for raw in raws), return_exceptions=True)

    results = private.run(send_all())
    assert [index for index, one in enumerate(results) if not isinstance(one, bytes)] == [12]
    assert isinstance(results[12], PrivacyRefused)
    private.seal()
    receipts = [private.ask("priv_getTransactionReceipt", "0x" + one.hex()) for one in results[:12]]
    assert [receipt["status"] for receipt in receipts] == ["0x1"] * 12


def test_a_private_receipt_has_the_fields_of_both_eras(private: PrivateInterface) -> None:
    """Checks every row of privacy.md 9, for a creation, a call and a failure, with both kinds of recipients."""
    usual = {
        "contractAddress",
        "from",
        "to",
        "output",
        "logs",
        "blockHash",
        "blockNumber",
        "transactionIndex",
        "transactionHash",
        "commitmentHash",
        "status",
        "privateFrom",
        "privacyGroupId",
        "logsBloom",
    }
    group = b64decode(private.ask("priv_createPrivacyGroup", [text(FROM), text(FOR)]))
    for members, data, extra in (
        ({}, NUMBER_CONTRACT, {"privateFor"}),
        ({"nonce": 1, "to": bytes.fromhex(CONTRACT[2:])}, set_number(1), {"privateFor"}),
        ({"nonce": 2}, REVERTING, {"privateFor", "revertReason"}),
        ({"privacy_group_id": group}, NUMBER_CONTRACT, set()),
    ):
        marker = private.send(data, **members)
        receipt = private.ask("priv_getTransactionReceipt", marker)
        assert set(receipt) == usual | extra
        public = private.ask("eth_getTransactionReceipt", marker)
        for name in ("blockHash", "blockNumber", "transactionIndex", "transactionHash"):
            assert receipt[name] == public[name]
        assert receipt["commitmentHash"] == marker
        assert len(receipt["logsBloom"]) == 2 + 512


def test_the_marker_is_what_the_reference_says(private: PrivateInterface) -> None:
    marker = private.ask("eth_getTransactionByHash", private.send())
    assert (marker["to"], marker["value"], marker["v"] in ("0x1b", "0x1c")) == ("0x" + "0" * 38 + "7e", "0x0", True)
    assert (marker["gasPrice"], marker["gas"]) == (hex(10**9), hex(3_000_000))
    assert len(marker["input"]) == 66
    assert marker["from"] == "0x" + DEV_KEYS[1].address.hex(), "the configured key"


def test_the_private_transaction_is_shown_to_participants(private: PrivateInterface) -> None:
    raw = private.signed()
    marker = private.ask("eea_sendRawTransaction", raw.removeprefix("0x"))
    assert private.ask("priv_getPrivateTransaction", marker) is None, "it is not mined yet"
    assert private.ask("eea_getTransactionReceipt", marker) is None
    private.seal()
    shown = private.ask("priv_getPrivateTransaction", marker)
    assert shown["hash"] == "0x" + keccak256(bytes.fromhex(raw[2:])).hex()
    assert (shown["from"], shown["nonce"], shown["restriction"]) == (SENDER, "0x0", "restricted")
    assert (shown["privateFrom"], shown["privateFor"]) == (text(FROM), [text(FOR)])
    assert "privacyGroupId" not in shown
    assert shown["input"] == "0x" + NUMBER_CONTRACT.hex()
    decoded = decode_private_transaction(bytes.fromhex(raw[2:]))
    assert [int(shown[name], 16) for name in "vrs"] == list(decoded.signature)


def test_a_private_transaction_of_type_2_is_executed(private: PrivateInterface) -> None:
    """The transaction has the encoding of web3j: 0x02 and a list of fourteen items."""
    raw = private.signed(max_priority_fee=7)
    assert raw.startswith("0x02f9")
    marker = private.ask("eea_sendRawTransaction", raw)
    private.seal()
    assert private.ask("priv_getTransactionReceipt", marker)["contractAddress"] == CONTRACT
    shown = private.ask("priv_getPrivateTransaction", marker)
    assert (shown["type"], shown["maxPriorityFeePerGas"], shown["maxFeePerGas"]) == ("0x2", "0x7", hex(10**9))
    assert (shown["from"], shown["v"] in ("0x0", "0x1")) == (SENDER, True)
    assert private.ask("eth_getTransactionByHash", marker)["gasPrice"] == hex(10**9)
    wrong = private.signed(max_priority_fee=7, nonce=1, chain_id=5)
    assert private.error("eea_sendRawTransaction", wrong) == (-32000, "Wrong Chain ID in transaction signature")


def test_nonces_are_counted_by_account_and_group(private: PrivateInterface) -> None:
    assert private.ask("priv_getTransactionCount", SENDER, text(GROUP)) == "0x0"
    private.send()
    assert private.ask("priv_getTransactionCount", SENDER, text(GROUP)) == "0x1"
    assert private.ask("priv_getTransactionCount", SENDER, text(bytes(32))) == "0x0"
    for name in ("eea_getTransactionCount", "priv_getEeaTransactionCount"):
        assert private.ask(name, SENDER, text(FROM), [text(FOR)]) == "0x1"
        assert private.ask(name, SENDER, text(FROM), [text(THIRD)]) == "0x0"
        assert private.error(name, SENDER, text(FROM)) == (-32602, "Invalid params")
    assert private.error("priv_getTransactionCount", SENDER, text(GROUP), "latest")[0] == -32602
    assert private.error("priv_getTransactionCount", SENDER, "no base64!")[0] == -32602


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"value": 1}, (-50100, "We cannot transfer ether in private transaction yet.")),
        ({"restriction": b"unrestricted"}, (-50100, "Unimplemented private transaction type")),
        ({"restriction": b"other"}, (-50100, "Unimplemented private transaction type")),
        ({"private_from": THIRD}, (-50100, "Private from does not match enclave public key")),
        ({"privacy_group_id": bytes(32)}, (-50100, "Offchain Privacy group does not exist.")),
        ({"privacy_group_id": b"short"}, (-50100, "Offchain Privacy group does not exist.")),
        ({"chain_id": 4}, (-32000, "Wrong Chain ID in transaction signature")),
        ({"private_for": [THIRD]}, (-50200, "NodeMissingPeerUrl")),
        ({"gas_limit": 20_000}, (-32003, "Intrinsic gas exceeds gas limit")),
    ],
)
def test_what_is_refused(private: PrivateInterface, members: dict[str, Any], error: tuple[int, str]) -> None:
    raw = private.signed(**members)
    assert private.error("eea_sendRawTransaction", raw) == error
    if error[0] != -32003:
        assert private.error("priv_distributeRawTransaction", raw) == error
    private.seal()
    assert private.ask("priv_getTransactionCount", SENDER, text(GROUP)) == "0x0"


def test_what_is_no_transaction(private: PrivateInterface) -> None:
    undecodable = (-50100, "Unable to decode the private signed raw transaction")
    for raw in ("", "0x", "0xc0", "nonsense", "0xf8", private.signed()[:-2], private.signed() + "00", 5):
        assert private.error("eea_sendRawTransaction", raw) == undecodable
    assert private.error("eea_sendRawTransaction")[0] == -32602
    assert private.error("eea_sendRawTransaction", private.signed(), "latest")[0] == -32602
    assert private.error("eea_sendTransaction", {}) == (-32601, "Method not found")


def test_a_private_transaction_of_16_mib_is_refused(private: PrivateInterface) -> None:
    raw = private.signed(bytes(16 * 1024 * 1024))
    for name in ("eea_sendRawTransaction", "priv_distributeRawTransaction"):
        assert private.error(name, raw) == (-50200, "InvalidPayload")
    assert private.node.chain.store.rows("payloads", b"", b"", 1) == []


def test_a_signature_without_signer(private: PrivateInterface) -> None:
    raw = bytearray.fromhex(private.signed()[2:])
    found = decode_private_transaction(bytes(raw))
    at = bytes(raw).index(found.signature[1].to_bytes(32, "big"))
    raw[at : at + 32] = b"\xff" * 32
    assert private.error("eea_sendRawTransaction", "0x" + raw.hex()) == (-32002, "Invalid signature")


def test_private_nonces_may_be_ahead_and_not_behind(private: PrivateInterface) -> None:
    markers = [
        private.ask("eea_sendRawTransaction", private.signed(nonce=0)),
        private.ask("eea_sendRawTransaction", private.signed(set_number(5), nonce=1, to=bytes.fromhex(CONTRACT[2:]))),
        private.ask("eea_sendRawTransaction", private.signed(set_number(6), nonce=3, to=bytes.fromhex(CONTRACT[2:]))),
    ]
    private.seal()
    status = [private.ask("priv_getTransactionReceipt", marker)["status"] for marker in markers]
    assert status == ["0x1", "0x1", "0x2"], "executed in order; the last came before its turn"
    assert private.error("eea_sendRawTransaction", private.signed(nonce=1)) == (
        -50100,
        "Private transaction nonce too low",
    )
    explained = private.ask("priv_explain", markers[2])
    assert (explained["state"], explained["reason"]) == ("invalid", "private nonce 3 where 2 is next")


def test_a_failure_changes_nothing_and_keeps_its_nonce(private: PrivateInterface) -> None:
    marker = private.send(REVERTING)
    receipt = private.ask("priv_getTransactionReceipt", marker)
    assert (receipt["status"], receipt["output"]) == ("0x0", "0x")
    assert int(receipt["revertReason"], 16) == 0xFE
    assert private.ask("priv_getTransactionCount", SENDER, text(GROUP)) == "0x0"
    explained = private.ask("priv_explain", marker)
    assert (explained["state"], explained["reason"]) == ("failed", "execution reverted")
    assert private.ask("priv_getTransactionReceipt", private.send())["status"] == "0x1", "the same nonce is used again"


def test_distribution_alone_gives_the_key_for_a_marker_of_ones_own(private: PrivateInterface) -> None:
    key = private.ask("priv_distributeRawTransaction", private.signed())
    assert len(key) == 66

    raw = legacy_transaction(
        DEV_KEYS[2], 0, to=(126).to_bytes(20, "big"), data=bytes.fromhex(key[2:]), gas=100_000, gas_price=10**9
    )
    marker = private.ask("eth_sendRawTransaction", "0x" + raw.hex())
    private.seal()
    assert private.ask("priv_getTransactionReceipt", marker)["contractAddress"] == CONTRACT


def test_a_marker_that_points_nowhere(private: PrivateInterface) -> None:

    raws = [
        legacy_transaction(DEV_KEYS[2], nonce, to=(126).to_bytes(20, "big"), data=data, gas=100_000, gas_price=10**9)
        for nonce, data in enumerate((b"\x11" * 32, b"", b"\x22" * 31, b"\x33" * 64))
    ]
    markers = ["0x" + hash.hex() for hash in private.run(private.node.send(*raws))]
    private.seal()
    for marker in markers:
        assert private.ask("eth_getTransactionReceipt", marker)["status"] == "0x1"
        assert private.ask("priv_getTransactionReceipt", marker) is None
        assert private.ask("priv_getPrivateTransaction", marker) is None
    states = [private.ask("priv_explain", marker)["state"] for marker in markers]
    assert states == ["no payload", "not a marker", "not a marker", "not a marker"]
    assert private.ask("priv_explain", "0x" + "44" * 32)["state"] == "unknown"


def test_who_there_is_and_how_far_it_has_come(private: PrivateInterface) -> None:
    private.send()
    status = private.ask("priv_status")
    assert status["keys"] == [text(FROM), text(FOR)]
    assert (status["followed"], status["head"], status["executed"]) == ("0x1", "0x1", 1)
    assert set(status["states"]) == {text(GROUP)}
    assert private.ask("priv_catchUp", text(GROUP)) == "0x0"
    assert private.ask("priv_getPrivacyPrecompileAddress") == "0x" + "0" * 38 + "7e"


def test_all_of_it_survives_a_restart(tmp_path: Path) -> None:
    with open_private(tmp_path) as private:
        marker = private.send()
        before = private.ask("priv_debugGetStateRoot", text(GROUP), "latest")
    with open_private(tmp_path) as private:
        assert private.ask("priv_debugGetStateRoot", text(GROUP), "latest") == before
        assert private.ask("priv_getTransactionReceipt", marker)["contractAddress"] == CONTRACT
        used = private.send(set_number(9), nonce=1, to=bytes.fromhex(CONTRACT[2:]))
        assert private.ask("priv_getTransactionReceipt", used)["status"] == "0x1"


PRIVATE_METHODS = sorted(
    (spec.name, transport)
    for spec in all_methods().specs
    if spec.group in ("eea", "priv", "privx")
    for transport in spec.transports
)


@pytest.mark.parametrize(("name", "transport"), PRIVATE_METHODS)
def test_each_method_says_that_privacy_is_off(dev: Interface, name: str, transport: str) -> None:
    dispatcher = dev.dispatcher_for(transport, (*GROUPS, "priv"))
    for params in ("[]", '["nonsense",{},7,8,9]'):
        body = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (name.encode(), params.encode())
        error = dev.message(body, dispatcher)["error"]
        expected = "Privacy is not enabled"
        if name == "priv_getPrivacyPrecompileAddress":
            expected += " to get the precompiled address"
        assert (error["code"], error["message"]) == (-50100, expected)


def test_without_their_group_they_are_not_enabled(dev: Interface) -> None:
    assert dev.error("eea_sendRawTransaction", "0x")[0] == -32604
