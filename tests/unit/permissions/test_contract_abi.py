"""Tests calls to permission contracts, and their answers."""

from __future__ import annotations

import pytest
from eth_abi import encode
from hypothesis import given
from hypothesis import strategies as st

from ophion.native.crypto import keccak256
from ophion.native.transactions import Transaction, decode_transactions
from ophion.permissions.contract_abi import (
    MalformedAnswer,
    connection_question,
    named_url,
    node_question,
    packed_ip,
    read_account_changes,
    read_connection,
    read_named_node,
    read_node_change,
    read_yes_or_no,
    sending_question,
    transaction_question,
)
from ophion.primitives.enode import Enode
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction

A = Enode(bytes(range(64)), "10.1.2.3", 30303, 0)
B = Enode(bytes(64), "2001:db8::1", 1, 1)
KEY = DEV_KEYS[1]


def selector(signature: str) -> bytes:
    return keccak256(signature.encode())[:4]


@given(st.binary(max_size=100), st.integers(0, 2**256 - 1))
def test_transactions(payload: bytes, value: int) -> None:
    words = ["address", "address", "uint256", "uint256", "uint256", "bytes"]
    sender, to = "0x" + "11" * 20, "0x" + "00" * 20
    expected = encode(words, [sender, to, value, 5, 7, payload])
    asked = sending_question(bytes.fromhex("11" * 20), None, value, 5, 7, payload)
    assert asked == bytes.fromhex("936421d5") + expected
    assert asked[:4] == selector("transactionAllowed(address,address,uint256,uint256,uint256,bytes)")


def test_a_transaction_that_bids_a_fee_has_the_price_zero() -> None:
    legacy, fee = decode_transactions([legacy_transaction(KEY, 0, gas_price=9), fee_transaction(KEY, 0, max_fee=9)])
    assert isinstance(legacy, Transaction)
    assert isinstance(fee, Transaction)
    assert transaction_question(legacy, KEY.address) == sending_question(KEY.address, bytes(20), 0, 9, 21_000, b"")
    assert transaction_question(fee, KEY.address) == sending_question(KEY.address, bytes(20), 0, 0, 21_000, b"")


def test_connections_of_the_first_interface() -> None:
    asked = connection_question(A, B)
    ends = ["bytes32", "bytes32", "bytes16", "uint16"]
    values = [[end.node_id[:32], end.node_id[32:], packed_ip(end.ip), end.tcp_port] for end in (A, B)]
    assert asked == bytes.fromhex("3620b1df") + encode(ends * 2, values[0] + values[1])
    assert asked[:4] == selector(f"connectionAllowed({','.join(ends * 2)})")
    assert packed_ip("10.1.2.3") == bytes(10) + b"\xff\xff\x0a\x01\x02\x03"


def test_nodes_of_the_second_interface() -> None:
    for end in (A, B):
        expected = encode(["string", "string", "uint16"], [end.node_id.hex(), end.ip, end.tcp_port])
        assert node_question(end) == bytes.fromhex("45a59e5b") + expected
    assert node_question(A)[:4] == selector("connectionAllowed(string,string,uint16)")


@pytest.mark.parametrize("end", [A, B])
def test_calls_that_change_rules_are_understood(end: Enode) -> None:
    ends = ["bytes32", "bytes32", "bytes16", "uint16"]
    words = encode(ends, [end.node_id[:32], end.node_id[32:], packed_ip(end.ip), end.tcp_port])
    node = Enode(end.node_id, end.ip, end.tcp_port, end.tcp_port)
    account = encode(["address"], ["0x" + "11" * 20])
    for verb, is_added in (("add", True), ("remove", False)):
        assert read_node_change(selector(f"{verb}Enode({','.join(ends)})") + words) == (is_added, node)
        assert read_account_changes(selector(f"{verb}Account(address)") + account) == (is_added, [b"\x11" * 20])
        named = encode(["string", "string", "uint16"], [end.node_id.hex(), end.ip, end.tcp_port])
        assert read_node_change(selector(f"{verb}Enode(string,string,uint16)") + named) == (is_added, node)
    many = encode(["address[]"], [["0x" + "11" * 20, "0x" + "22" * 20]])
    assert read_account_changes(selector("addAccounts(address[])") + many) == (True, [b"\x11" * 20, b"\x22" * 20])


@given(st.text(max_size=70), st.text(max_size=40), st.integers(0, 65535), st.binary(max_size=64))
def test_nodes_by_name_are_read_wherever_they_stand(name: str, host: str, port: int, before: bytes) -> None:
    before = before[: len(before) // 32 * 32]
    named = encode(["string", "string", "uint16"], [name, host, port])
    assert read_named_node(named) == (name, host, port)
    # the event data starts with a flag, so the offsets of the texts count from the flag
    event = encode(["bool", "string", "string", "uint16"], [True, name, host, port])
    assert read_named_node(event, 32) == (name, host, port)


def test_a_node_named_otherwise_than_by_an_address_is_no_change_that_a_dry_run_understands() -> None:
    named = encode(["string", "string", "uint16"], [A.node_id.hex(), "bank.example", 1])
    assert read_node_change(selector("addEnode(string,string,uint16)") + named) is None
    assert named_url((A.node_id.hex(), "bank.example", 1)) == f"enode://{A.node_id.hex()}@bank.example:1"


@given(st.binary(max_size=200))
def test_other_calls_are_not(call: bytes) -> None:
    names = ("addAccount(address)", "addAccounts(address[])", "addEnode(string,string,uint16)")
    for selected in (call, *(selector(name) + call for name in names)):
        read_account_changes(selected)
        read_node_change(selected)
        read_named_node(call, 32)
    assert read_account_changes(call) is None
    assert read_node_change(call) is None


def test_answers() -> None:
    assert read_yes_or_no((1).to_bytes(32, "big"))
    assert not read_yes_or_no(bytes(32))
    assert read_connection(b"\xff" * 32)
    assert not read_connection(b"\x7f" + b"\xff" * 31)


@pytest.mark.parametrize("answer", [b"", b"\1", bytes(31), bytes(33), (2).to_bytes(32, "big")])
def test_anything_else_is_no_answer(answer: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        read_yes_or_no(answer)
    with pytest.raises(MalformedAnswer):
        read_connection(answer)
