"""Tests the order of simulated blocks, and decoded requests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ophion.chain.block_environment import EnvOverrides
from ophion.errors import RpcError
from ophion.primitives.header import Header
from ophion.rpc.services.simulation import BlockRequest, decode_simulation, in_order
from tests.unit.rpc.interface import Interface


def request(number: int | None = None, timestamp: int | None = None) -> BlockRequest:
    return BlockRequest(EnvOverrides(number=number, timestamp=timestamp), None, (), (), (), (), ())


@pytest.fixture
def base(sample: Interface) -> Header:
    return replace(sample.context.queries.head.header, number=10, timestamp=1000)


def test_numbers_and_times_go_on_by_themselves(base: Header) -> None:
    ordered = in_order([request(), request(13), request(timestamp=2000)], base)
    assert [(one.overrides.number, one.overrides.timestamp) for one in ordered] == [
        (11, 1012),
        (12, 1024),
        (13, 1036),
        (14, 2000),
    ]


def test_gaps_can_stay(base: Header) -> None:
    ordered = in_order([request(), request(69420), request()], base, fills_gaps=False)
    assert [one.overrides.number for one in ordered] == [11, 69420, 69421]


@pytest.mark.parametrize(
    ("requests", "code"),
    [
        ([request(10)], -38020),
        ([request(2**64)], -38020),
        ([request(12), request(12)], -38020),
        ([request(timestamp=1000)], -38021),
        ([request(timestamp=2000), request(timestamp=1500)], -38021),
        ([request(timestamp=2**64 - 1), request()], -38021),
        ([request(267)], -38026),
    ],
)
def test_order_is_kept(base: Header, requests: list[BlockRequest], code: int) -> None:
    with pytest.raises(RpcError) as refused:
        in_order(requests, base)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"blockStateCalls": {}},
        {"blockStateCalls": [5]},
        {"blockStateCalls": [{"stateOverrides": {"0x1": 5}}]},
        {"blockStateCalls": [{"calls": {}}]},
        {"blockStateCalls": [{"blockOverrides": {"withdrawals": [1]}}]},
        {"blockStateCalls": [{}], "validation": "perhaps"},
    ],
)
def test_malformed_requests_are_refused(value: object) -> None:
    with pytest.raises(RpcError) as refused:
        decode_simulation(value)
    assert refused.value.code == -32602
