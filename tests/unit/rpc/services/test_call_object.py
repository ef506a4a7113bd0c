"""Tests call objects and overrides (json-rpc.md 3.4, 7.1)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.chain.block_environment import EnvOverrides
from ophion.errors import RpcError
from ophion.primitives.hexcodec import data
from ophion.rpc.services.call_object import Call, decode_block_overrides, decode_call, decode_state_overrides

ADDRESS = "0x" + "11" * 20


def test_an_empty_object_is_a_call() -> None:
    assert decode_call({}) == Call()


def test_every_member_is_read_and_unknown_ones_are_ignored() -> None:
    call = decode_call(
        {
            "from": "11" * 20,
            "to": ADDRESS,
            "gas": "100",
            "gasPrice": "0x1",
            "maxFeePerGas": "0x2",
            "maxPriorityFeePerGas": "0x3",
            "value": "0x4",
            "data": "0x05",
            "nonce": "0x6",
            "accessList": [{"address": ADDRESS, "storageKeys": ["0x1"]}],
            "maxFeePerBlobGas": "0x7",
            "blobVersionedHashes": ["0x" + "01" * 32],
            "authorizationList": [
                {"chainId": "0x1", "address": ADDRESS, "nonce": "0x2", "yParity": "0x1", "r": "0x3", "s": "0x4"}
            ],
            "strict": False,
            "type": "0x2",
            "chainId": "0x1",
            "anything": {},
        }
    )
    eleven = b"\x11" * 20
    assert call == Call(
        sender=eleven,
        to=eleven,
        gas=100,
        value=4,
        input=b"\x05",
        nonce=6,
        gas_price=1,
        max_fee_per_gas=2,
        max_priority_fee_per_gas=3,
        max_fee_per_blob_gas=7,
        blob_hashes=[b"\x01" * 32],
        access_list=[(eleven, [bytes(31) + b"\x01"])],
        authorizations=[(1, eleven, 2, 1, 3, 4)],
        chain_id=1,
        is_strict=False,
    )
    call.request(21000)


def test_null_members_are_absent() -> None:
    assert decode_call({"to": None, "data": None}) == Call()


def test_data_and_input_must_agree() -> None:
    assert decode_call({"data": "0x01", "input": "0x01"}).input == b"\x01"
    with pytest.raises(RpcError, match="Invalid params"):
        decode_call({"data": "0x01", "input": "0x02"})


@pytest.mark.parametrize(
    "value",
    [
        "0x8",
        None,
        {"to": "foo"},
        {"gas": -1},
        {"gasPrice": "0x" + "f" * 33},
        {"nonce": "0x1" + "0" * 16},
        {"accessList": {}},
        {"accessList": [{"address": ADDRESS, "storageKeys": 5}]},
        {"blobVersionedHashes": "0x"},
        {"authorizationList": [{}]},
        {"data": "0x1"},
    ],
)
def test_other_forms_are_invalid_params(value: Any) -> None:
    with pytest.raises(RpcError, match="Invalid params"):
        decode_call(value)


def test_state_overrides_are_read() -> None:
    (override,) = decode_state_overrides({ADDRESS: {"balance": "0x1", "code": "0x60", "stateDiff": {"0x1": "0x2"}}})
    assert override is not None
    assert decode_state_overrides({}) == ()


@pytest.mark.parametrize(
    "value",
    [5, {ADDRESS: 5}, {ADDRESS: {"state": {}, "stateDiff": {}}}, {ADDRESS: {"state": 5}}, {"zz": {}},
     {ADDRESS: {"movePrecompileToAddress": "0xzz"}}],
)  # fmt: skip
def test_contradicting_state_overrides_are_invalid_params(value: Any) -> None:
    with pytest.raises(RpcError, match="Invalid params"):
        decode_state_overrides(value)


def test_block_overrides_are_read() -> None:
    overrides = decode_block_overrides({"number": "0x5", "time": "0x6", "feeRecipient": ADDRESS, "other": 1})
    assert overrides == EnvOverrides(number=5, timestamp=6, beneficiary=b"\x11" * 20)
    with pytest.raises(RpcError, match="Invalid params"):
        decode_block_overrides([])


_MEMBERS = st.sampled_from(
    ["from", "to", "gas", "value", "data", "input", "nonce", "gasPrice", "accessList", "authorizationList", "strict"]
)
_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=50) | st.lists(st.none(), max_size=2)


@given(st.dictionaries(_MEMBERS, _VALUES))
def test_no_call_object_makes_the_decoder_fail_otherwise(value: dict[str, Any]) -> None:
    try:
        decode_call(value).request(50_000)
    except RpcError as error:
        assert error.code == -32602


def test_block_overrides_have_the_older_names_of_geth_as_well() -> None:
    word = "0x" + "09".zfill(64)
    older = decode_block_overrides({"coinbase": ADDRESS, "random": word, "baseFee": "0x7"})
    named = decode_block_overrides({"feeRecipient": ADDRESS, "prevRandao": word, "baseFeePerGas": "0x7"})
    for found in (older, named):
        assert (data(found.beneficiary or b""), data(found.mix_hash or b""), found.base_fee) == (ADDRESS, word, 7)
    both = decode_block_overrides({"baseFee": "0x7", "baseFeePerGas": "0x8"})
    assert both.base_fee == 8
