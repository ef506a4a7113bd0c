"""Tests simulated blocks."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.testing.signing import DEV_KEYS, signed_authorization
from tests.unit.rpc.interface import Interface

RICH, POOR = "0x" + "c0" * 20, "0x" + "c1" * 20
FUNDED = {RICH: {"balance": hex(10**18)}}
IDENTITY = "0x" + "00" * 19 + "04"


def simulate(dev: Interface, *blocks: dict[str, Any], **options: Any) -> Any:
    return dev.ask("eth_simulateV1", {"blockStateCalls": list(blocks), **options}, "latest")


def code(dev: Interface, *blocks: dict[str, Any], **options: Any) -> int:
    return dev.error("eth_simulateV1", {"blockStateCalls": list(blocks), **options}, "latest")[0]


def test_blocks_follow_each_other_and_keep_what_happened(dev: Interface) -> None:
    pay = {"from": RICH, "to": POOR, "value": "0x5"}
    back = {"from": POOR, "to": RICH, "value": "0x5"}
    first, second = simulate(dev, {"stateOverrides": FUNDED, "calls": [pay]}, {"calls": [back]})
    head = dev.ask("eth_getBlockByNumber", "latest")
    assert first["parentHash"] == head["hash"]
    assert second["parentHash"] == first["hash"]
    assert int(second["timestamp"], 16) == int(head["timestamp"], 16) + 24
    assert [call["status"] for block in (first, second) for call in block["calls"]] == ["0x1", "0x1"]
    assert dev.ask("eth_getBalance", RICH, "latest") == "0x0"


def test_numbers_left_out_are_filled_with_empty_blocks(dev: Interface) -> None:
    blocks = simulate(dev, {"blockOverrides": {"number": "0x3"}})
    assert [block["number"] for block in blocks] == ["0x1", "0x2", "0x3"]
    assert code(dev, {"blockOverrides": {"number": "0x0"}}) == -38020
    assert code(dev, {"blockOverrides": {"time": "0x0"}}) == -38021
    assert code(dev, {"blockOverrides": {"number": "0x500"}}) == -38026


def test_a_simulated_block_is_found_by_its_hash(dev: Interface) -> None:
    previous = "0x" + "600143034060005260206000f3"  # this contract returns BLOCKHASH(NUMBER - 1)
    ask = {"to": POOR}
    first, second = simulate(dev, {"stateOverrides": {POOR: {"code": previous}}, "calls": [ask]}, {"calls": [ask]})
    assert first["calls"][0]["returnData"] == first["parentHash"]
    assert second["calls"][0]["returnData"] == first["hash"]


def test_transfers_show_as_logs_when_asked_for(dev: Interface) -> None:
    block = {"stateOverrides": FUNDED, "calls": [{"from": RICH, "to": POOR, "value": "0x5"}]}
    (plain,) = simulate(dev, block)
    assert plain["calls"][0]["logs"] == []
    (shown,) = simulate(dev, block, traceTransfers=True)
    (log,) = shown["calls"][0]["logs"]
    assert log["address"] == "0x" + "ee" * 20
    assert log["blockHash"] == shown["hash"] == plain["hash"]


def test_a_precompiled_contract_can_be_elsewhere(dev: Interface) -> None:
    moved = {"stateOverrides": {IDENTITY: {"movePrecompileToAddress": POOR}}}
    calls = [{"to": POOR, "input": "0x1234"}, {"to": IDENTITY, "input": "0x1234"}]
    (block,) = simulate(dev, {**moved, "calls": calls})
    assert [call["returnData"] for call in block["calls"]] == ["0x1234", "0x"]
    assert code(dev, {"stateOverrides": {POOR: {"movePrecompileToAddress": RICH}}}) == -32000
    assert code(dev, {"stateOverrides": {IDENTITY: {"movePrecompileToAddress": IDENTITY}}}) == -38022


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"from": RICH, "to": POOR, "value": "0x1"}, -38014),
        ({"from": "0x" + DEV_KEYS[0].address.hex(), "to": POOR, "gas": "0x1"}, -38013),
        ({"to": POOR, "gas": hex(10**18)}, -38015),
    ],
)
def test_a_call_that_cannot_be_made_fails_the_request(dev: Interface, call: dict[str, Any], expected: int) -> None:
    assert code(dev, {"calls": [call]}) == expected


def test_rules_are_enforced_when_asked_for(dev: Interface) -> None:
    priced = {"blockOverrides": {"baseFeePerGas": "0xa"}, "stateOverrides": FUNDED}
    assert code(dev, {**priced, "calls": [{"from": RICH, "to": POOR}]}, validation=True) == -38012
    assert simulate(dev, {**priced, "calls": [{"from": RICH, "to": POOR}]})[0]["baseFeePerGas"] == "0xa"
    early = {"from": RICH, "to": POOR, "nonce": "0x5", "maxFeePerGas": hex(10**10)}
    assert code(dev, {"stateOverrides": FUNDED, "calls": [early]}, validation=True) == -38011
    late = {**early, "nonce": "0x0"}
    state = {RICH: {"balance": hex(10**18), "nonce": "0x3"}}
    assert code(dev, {"stateOverrides": state, "calls": [late]}, validation=True) == -38010
    last = {RICH: {"balance": hex(10**18), "nonce": hex(2**64 - 1)}}
    assert code(dev, {"stateOverrides": last, "calls": [{**late, "nonce": None}]}, validation=True) == -32603


def test_the_last_nonce_matters_only_where_nonces_do(dev: Interface) -> None:
    """If nonces are checked, the maximum nonce is too high for every account, and an account with the maximum nonce
    cannot send.
    """
    last = {"from": RICH, "to": POOR, "nonce": hex(2**64 - 1), "maxFeePerGas": hex(10**10)}
    there = {RICH: {"balance": hex(10**18), "nonce": hex(2**64 - 1)}}
    for state in (FUNDED, there):
        (block,) = simulate(dev, {"stateOverrides": state, "calls": [last]}, returnFullTransactions=True)
        assert block["calls"][0]["status"] == "0x1"
        assert block["transactions"][0]["nonce"] == hex(2**64 - 1)
    (block,) = simulate(dev, {"stateOverrides": there, "calls": [{**last, "nonce": None}] * 2})
    assert [call["status"] for call in block["calls"]] == ["0x1", "0x1"]
    assert code(dev, {"stateOverrides": FUNDED, "calls": [last]}, validation=True) == -38011
    assert code(dev, {"stateOverrides": there, "calls": [last]}, validation=True) == -32603


def test_an_account_with_the_last_nonce_makes_no_contract(dev: Interface) -> None:
    """A creation by an account with the maximum nonce fails and costs as much as any creation. The nonce in the request
    does not matter.
    """
    there = {RICH: {"balance": hex(10**18), "nonce": hex(2**64 - 1)}}
    creation = {"from": RICH, "input": "0x00"}
    (block,) = simulate(dev, {"stateOverrides": there, "calls": [creation, {**creation, "nonce": "0x1"}]})
    for call in block["calls"]:
        assert (call["status"], call["returnData"], call["logs"]) == ("0x0", "0x", [])
        assert call["error"] == {"message": "nonce uint64 overflow", "code": -32015}
        assert int(call["gasUsed"], 16) == 53_000 + 4 + 2
    last = {**creation, "nonce": hex(2**64 - 1)}
    (block,) = simulate(dev, {"stateOverrides": FUNDED, "calls": [last]})
    assert block["calls"][0]["status"] == "0x1", "the account counts, not the request"
    refused = dev.error("eth_call", creation, "latest", there)
    assert refused == (-32000, "nonce uint64 overflow")


def test_a_failed_call_says_why(dev: Interface) -> None:
    reverting, endless = {"code": "0x60006000fd"}, {"code": "0x5b600056"}
    overrides = {RICH: reverting, POOR: endless}
    (block,) = simulate(dev, {"stateOverrides": overrides, "calls": [{"to": RICH}, {"to": POOR, "gas": "0x10000"}]})
    reverted, halted = block["calls"]
    assert reverted["error"]["code"] == 3
    assert halted["error"] == {"message": "out of gas", "code": -32015}
    assert {reverted["status"], halted["status"]} == {"0x0"}


def test_requests_that_make_no_sense(dev: Interface) -> None:
    assert dev.error("eth_simulateV1", {})[0] == -32602
    assert dev.error("eth_simulateV1", {"blockStateCalls": []})[0] == -32602
    assert dev.error("eth_simulateV1", {"blockStateCalls": [{}]}, "0x999")[0] == -32000
    assert code(dev, *([{}] * 257)) == -38026


def test_full_transactions_have_no_signature(dev: Interface) -> None:
    block = {"stateOverrides": FUNDED, "calls": [{"from": RICH, "to": POOR}]}
    (shown,) = simulate(dev, block, returnFullTransactions=True)
    (transaction,) = shown["transactions"]
    assert (transaction["from"], transaction["r"], transaction["s"]) == (RICH, "0x0", "0x0")
    assert transaction["gas"] == hex(50_000_000) or int(transaction["gas"], 16) == int(shown["gasLimit"], 16)


def test_logs_are_counted_through_the_block_transfers_included(dev: Interface) -> None:
    logging = {POOR: {"code": "0x60aa60006000a160bb60006000a100"}}
    calls = [{"from": RICH, "to": POOR}, {"from": RICH, "to": IDENTITY, "value": "0x1"}, {"from": RICH, "to": POOR}]
    (block,) = simulate(dev, {"stateOverrides": FUNDED | logging, "calls": calls}, traceTransfers=True)
    indexes = [log["logIndex"] for call in block["calls"] for log in call["logs"]]
    assert indexes == ["0x0", "0x1", "0x2", "0x3", "0x4"]


def test_calls_with_blobs_and_authorizations(dev: Interface) -> None:
    key = DEV_KEYS[1]
    fields = zip(
        ("chainId", "address", "nonce", "yParity", "r", "s"),
        signed_authorization(key, 2018, bytes.fromhex(POOR[2:]), 0),
        strict=True,
    )
    permit = {name: "0x" + value.hex() if isinstance(value, bytes) else hex(value) for name, value in fields}
    returning = {POOR: {"code": "0x60004960005260206000f3"}}  # this contract returns the hash of the first blob
    blobs = {"from": RICH, "to": POOR, "blobVersionedHashes": ["0x01" + "22" * 31]}
    delegated = {"from": RICH, "to": "0x" + key.address.hex(), "authorizationList": [permit]}
    (block,) = simulate(
        dev, {"stateOverrides": FUNDED | returning, "calls": [blobs, delegated]}, returnFullTransactions=True
    )
    assert [one["type"] for one in block["transactions"]] == ["0x3", "0x4"]
    assert [call["returnData"] for call in block["calls"]] == ["0x01" + "22" * 31, "0x" + "00" * 32]
    assert block["blobGasUsed"] == hex(2**17)
