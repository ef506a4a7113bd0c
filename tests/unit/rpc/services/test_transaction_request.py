"""Tests transaction fields that the node fills in."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.chainspec.dev_network import dev_genesis
from ophion.errors import RpcError
from ophion.rpc.services.transaction_request import decode_transaction_request, filled
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.wallet.unsigned_transaction import ACCESS_LIST, BLOB, DYNAMIC_FEE, LEGACY, SET_CODE, UnsignedTransaction
from tests.unit.rpc.interface import Interface, open_interface

B = DEV_KEYS[1]
FROM, TO = "0x" + B.address.hex(), "0x" + "d0" * 20
LIST = [{"address": TO, "storageKeys": ["0x1"]}]
PERMITS = [{"chainId": "0x7e2", "address": TO, "nonce": "0x0", "yParity": "0x0", "r": "0x1", "s": "0x1"}]


def fill(dev: Interface, **members: Any) -> UnsignedTransaction:
    request = decode_transaction_request({"from": FROM, "to": TO, **members})
    return dev.run(filled(dev.context, request))


def test_a_transfer_gets_everything_it_lacks(dev: Interface) -> None:
    got = fill(dev, value="0x1")
    assert (got.type, got.chain_id, got.nonce, got.gas, got.value) == (DYNAMIC_FEE, 2018, 0, 21_000, 1)
    assert got.max_priority_fee_per_gas == 993, "what reaches the minimum gas price beside the base fee"
    assert got.max_fee_per_gas == 993 + 2 * 7


def test_the_nonce_is_the_next_one_of_the_pool(dev: Interface) -> None:
    dev.run(dev.node.send(legacy_transaction(B, 0), legacy_transaction(B, 1)))
    assert fill(dev).nonce == 2
    assert fill(dev, nonce="0x7").nonce == 7


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({}, DYNAMIC_FEE),
        ({"accessList": LIST}, DYNAMIC_FEE),
        ({"gasPrice": "0x400"}, LEGACY),
        ({"gasPrice": "0x400", "accessList": LIST}, ACCESS_LIST),
        ({"type": "0x0"}, LEGACY),
        ({"type": "0x1"}, ACCESS_LIST),
        ({"maxFeePerGas": "0x400"}, DYNAMIC_FEE),
        ({"authorizationList": PERMITS}, SET_CODE),
        ({"blobVersionedHashes": ["0x01" + "00" * 31]}, BLOB),
    ],
)
def test_the_type_follows_from_what_is_given(dev: Interface, members: dict[str, Any], kind: int) -> None:
    assert fill(dev, gas="0x30d40", **members).type == kind


def test_before_london_transactions_have_a_gas_price(tmp_path: Any) -> None:
    with open_interface(tmp_path, dev_genesis("berlin")) as old:
        got = fill(old)
        assert (got.type, got.gas_price) == (LEGACY, 1000)
        assert fill(old, accessList=LIST).type == ACCESS_LIST
        for fees in ({"maxFeePerGas": "0x400"}, {"maxPriorityFeePerGas": "0x1"}):
            with pytest.raises(RpcError) as raised:
                fill(old, **fees)
            assert raised.value.code == -32602, "fees that nobody would look at"


@pytest.mark.parametrize(("fork", "chain"), [("frontier", None), ("tangerine", None), ("spurious", 2018)])
def test_before_spurious_dragon_signatures_name_no_chain(tmp_path: Any, fork: str, chain: int | None) -> None:
    with open_interface(tmp_path, dev_genesis(fork)) as old:
        assert fill(old).chain_id == chain


def test_given_fees_are_kept(dev: Interface) -> None:
    got = fill(dev, maxFeePerGas="0x10", maxPriorityFeePerGas="0x2")
    assert (got.max_fee_per_gas, got.max_priority_fee_per_gas) == (16, 2)
    assert fill(dev, maxFeePerGas="0x10").max_priority_fee_per_gas == 16, "a suggestion goes no further than the fee"
    assert fill(dev, maxPriorityFeePerGas="0x5").max_fee_per_gas == 5 + 14
    assert fill(dev, gas="0x5208", blobVersionedHashes=["0x01" + "00" * 31]).max_fee_per_blob_gas == 2


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"gasPrice": "0x1", "maxFeePerGas": "0x1"}, -32602),
        ({"type": "0x5"}, -32602),
        ({"type": "x"}, -32602),
        ({"type": "0x2", "gasPrice": "0x1"}, -32602),
        ({"type": "0x0", "maxFeePerGas": "0x1"}, -32602),
        ({"type": "0x0", "accessList": LIST}, -32602),
        ({"type": "0x2", "authorizationList": PERMITS}, -32602),
        ({"type": "0x2", "blobVersionedHashes": ["0x" + "01" * 32]}, -32602),
        ({"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}, -32602),
        ({"to": None}, -32602),
        ({"chainId": "0x1"}, -32000),
        ({"value": hex(10**30)}, -32004),
    ],
)
def test_what_contradicts_itself_is_refused(dev: Interface, members: dict[str, Any], code: int) -> None:
    with pytest.raises(RpcError) as caught:
        fill(dev, **members)
    assert caught.value.code == code


def test_a_transaction_that_would_revert_is_refused_with_its_data(dev: Interface) -> None:
    with pytest.raises(RpcError) as caught:
        fill(dev, to=None, data="0x60006000fd")
    assert (caught.value.code, caught.value.data) == (3, "0x")
