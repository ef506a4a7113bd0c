"""Tests objects rendered in Python."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ophion.chain.fee_oracle import FeeHistory
from ophion.chainspec.genesis import parse_genesis
from ophion.rpc.schema import render
from tests.unit.rpc.interface import Interface


@pytest.mark.parametrize(
    "address",
    [
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ],
)
def test_addresses_in_checksum_case(address: str) -> None:
    assert render.checksum_address(bytes.fromhex(address[2:])) == address


def test_fields_of_later_forks_appear_only_where_they_are(dev: Interface) -> None:
    header = replace(
        dev.node.queries.head.header,
        base_fee_per_gas=7,
        withdrawals_root=bytes(32),
        blob_gas_used=1,
        excess_blob_gas=2,
        parent_beacon_block_root=bytes(32),
        requests_hash=bytes(32),
    )
    block = render.block_object(header, bytes(32), None, 500, (), (), ())
    assert {"baseFeePerGas", "withdrawalsRoot", "withdrawals", "blobGasUsed", "excessBlobGas"} <= set(block)
    assert {"parentBeaconBlockRoot", "requestsHash"} <= set(block)
    assert "totalDifficulty" not in block
    old = replace(
        header, base_fee_per_gas=None, withdrawals_root=None, blob_gas_used=None, excess_blob_gas=None,
        parent_beacon_block_root=None, requests_hash=None,
    )  # fmt: skip
    assert list(render.block_object(old, bytes(32), 9, 500, (), (), None))[-2:] == ["uncles", "transactions"]


def test_a_fee_history_without_percentiles_has_no_rewards() -> None:
    history = FeeHistory(5, [1, 2], [0.5], [0, 0], [0.0], None)
    assert render.fee_history(history) == {
        "oldestBlock": "0x5",
        "baseFeePerGas": ["0x1", "0x2"],
        "gasUsedRatio": [0.5],
        "baseFeePerBlobGas": ["0x0", "0x0"],
        "blobGasUsedRatio": [0.0],
    }
    assert render.fee_history(replace(history, rewards=[[3]]))["reward"] == [["0x3"]]


def test_the_configuration_of_a_chain_is_shown_in_camel_case() -> None:
    genesis = parse_genesis(
        '{"config":{"chainid":5,"homesteadblock":0,"constantinopleFixBlock":0,"contractSizeLimit":50000,'
        '"clique":{"blockperiodseconds":15,"epochlength":30000}},"difficulty":"0x1","gasLimit":"0x100000",'
        '"alloc":{},"extraData":"0x' + "00" * 32 + "11" * 20 + "00" * 65 + '"}'
    )
    assert render.chain_config(genesis.spec) == {
        "chainId": 5,
        "homesteadBlock": 0,
        "constantinopleFixBlock": 0,
        "contractSizeLimit": 50000,
        "clique": {"blockPeriodSeconds": 15, "epochLength": 30000},
    }
