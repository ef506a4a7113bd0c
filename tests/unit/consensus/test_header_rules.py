"""Tests common header rules, one by one, and the values that they compute."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ophion.chainspec.forks import BlobParameters, Fork, ForkSchedule, Milestone
from ophion.chainspec.spec import ChainSpec
from ophion.consensus import header_rules as rules
from ophion.errors import InvalidHeader
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import EMPTY_TRIE_ROOT
from tests.unit.consensus.stories import genesis

FRONTIER = genesis({"ethash": {}}).spec
LONDON_AT_5 = genesis({"ethash": {}, "londonBlock": 5}).spec
LONDON = genesis({"ethash": {}, "londonBlock": 0}).spec
PARENT = replace(genesis({"ethash": {}}, gasLimit=10_240_000).header(bytes(32)), number=3, timestamp=100)
CANCUN = ForkSchedule({}, {Milestone.CANCUN: 0}).at(1, 0)
OSAKA = ForkSchedule({}, {Milestone.OSAKA: 0}).at(1, 0)
BLOB = rules.GAS_PER_BLOB


def child(**fields: Any) -> Header:
    return replace(PARENT, **{"number": 4, "timestamp": 110, "parent_hash": b"\x07" * 32, **fields})


def test_a_header_continues_its_parent() -> None:
    parent = HashedHeader(PARENT, b"\x07" * 32)
    rules.check_parent(child(), parent)
    with pytest.raises(InvalidHeader, match="number: got 5, expected 4"):
        rules.check_parent(child(number=5), parent)
    with pytest.raises(InvalidHeader, match="parent hash"):
        rules.check_parent(child(parent_hash=bytes(32)), parent)


def test_time_moves_forward_by_at_least_the_period() -> None:
    rules.check_timestamp(child(timestamp=101), PARENT)
    rules.check_timestamp(child(timestamp=105), PARENT, 5)
    with pytest.raises(InvalidHeader, match="timestamp: got 100, expected at least 101"):
        rules.check_timestamp(child(timestamp=100), PARENT)
    with pytest.raises(InvalidHeader, match="at least 105"):
        rules.check_timestamp(child(timestamp=104), PARENT, 5)


def test_the_future_is_only_too_early() -> None:
    rules.check_not_future(child(), 100, 10)
    with pytest.raises(InvalidHeader) as caught:
        rules.check_not_future(child(), 99, 10)
    assert caught.value.transient


def test_extra_data_is_short_and_gas_used_within_the_limit() -> None:
    rules.check_extra_data(child(extra_data=bytes(32)))
    with pytest.raises(InvalidHeader, match="extra data length: got 33"):
        rules.check_extra_data(child(extra_data=bytes(33)))
    rules.check_gas_used(child(gas_used=10_240_000))
    with pytest.raises(InvalidHeader, match="gas used"):
        rules.check_gas_used(child(gas_used=10_240_001))


@pytest.mark.parametrize("limit", [10_240_000, 10_240_000 + 9_999, 10_240_000 - 9_999])
def test_a_gas_limit_within_the_bound_is_fine(limit: int) -> None:
    rules.check_gas_limit(child(gas_limit=limit), PARENT, FRONTIER)


@pytest.mark.parametrize("limit", [10_240_000 + 10_000, 10_240_000 - 10_000, 0, 4999, 2**63])
def test_a_gas_limit_outside_the_bound_is_refused(limit: int) -> None:
    with pytest.raises(InvalidHeader, match="gas limit"):
        rules.check_gas_limit(child(gas_limit=limit), PARENT, FRONTIER)


@pytest.mark.parametrize("limit", [5000, 10_240_000 * 2, 2**63 - 1])
def test_under_the_rules_of_goquorum_a_gas_limit_may_jump(limit: int) -> None:
    spec = replace(FRONTIER, has_free_gas_limit=True)
    rules.check_gas_limit(child(gas_limit=limit), PARENT, spec)
    for outside in (4999, 2**63):
        with pytest.raises(InvalidHeader, match="gas limit"):
            rules.check_gas_limit(child(gas_limit=outside), PARENT, spec)


def test_at_the_smallest_limit_the_bound_is_four() -> None:
    small = replace(PARENT, gas_limit=5000)
    rules.check_gas_limit(child(gas_limit=5003), small, FRONTIER)
    with pytest.raises(InvalidHeader, match="less than 4 away from 5000"):
        rules.check_gas_limit(child(gas_limit=5004), small, FRONTIER)


def test_the_first_london_block_doubles_the_reference() -> None:
    before = replace(PARENT, number=4)
    first = child(number=5, gas_limit=20_480_000, base_fee_per_gas=10**9)
    assert rules.is_first_london(first, before, LONDON_AT_5)
    rules.check_gas_limit(first, before, LONDON_AT_5)
    with pytest.raises(InvalidHeader, match="away from 20480000"):
        rules.check_gas_limit(replace(first, gas_limit=10_240_000), before, LONDON_AT_5)
    assert not rules.is_first_london(child(number=6), replace(PARENT, number=5), LONDON_AT_5)


@given(st.integers(5000, 10**9), st.integers(5000, 10**9))
def test_a_built_gas_limit_moves_towards_its_target_and_is_valid(limit: int, target: int) -> None:
    parent = replace(PARENT, gas_limit=limit)
    built = rules.next_gas_limit(parent, False, target)
    rules.check_gas_limit(child(gas_limit=built), parent, FRONTIER)
    assert abs(target - built) <= abs(target - limit)
    assert rules.next_gas_limit(parent, False, None) == limit


@pytest.mark.parametrize(
    ("fee", "used", "expected"),
    [
        (1_000_000_000, 5_000_000, 1_000_000_000),
        (1_000_000_000, 10_000_000, 1_125_000_000),
        (1_000_000_000, 0, 875_000_000),
        (1_000_000_000, 9_000_000, 1_100_000_000),
        (1_000_000_000, 3_000_000, 950_000_000),
        (0, 0, 0),
        (0, 10_000_000, 1),
        (7, 10_000_000, 8),
        (7, 0, 7),
    ],
)
def test_the_base_fee_follows_the_use_of_the_parent(fee: int, used: int, expected: int) -> None:
    parent = replace(PARENT, base_fee_per_gas=fee, gas_used=used, gas_limit=10_000_000)
    assert rules.next_base_fee(parent, LONDON) == expected
    rules.check_base_fee(child(base_fee_per_gas=expected), parent, LONDON)
    with pytest.raises(InvalidHeader, match=f"base fee: got {expected + 1}, expected {expected}"):
        rules.check_base_fee(child(base_fee_per_gas=expected + 1), parent, LONDON)


def test_the_first_base_fee_is_the_one_of_the_genesis_file() -> None:
    given_fee = genesis({"ethash": {}, "londonBlock": 5}, baseFeePerGas=42).spec
    assert rules.next_base_fee(PARENT, LONDON_AT_5) == 10**9
    assert rules.next_base_fee(PARENT, given_fee) == 42


@pytest.mark.parametrize("option", ["zeroBaseFee", "fixedBaseFee"])
def test_networks_that_set_the_base_fee_do_not_check_it(option: str) -> None:
    spec = genesis({"ethash": {}, "londonBlock": 0, option: True}).spec
    parent = replace(PARENT, base_fee_per_gas=10**9)
    rules.check_base_fee(child(base_fee_per_gas=12345), parent, spec)
    built = rules.base_fee_for(parent, spec.fork_at(4, 0), spec, fixed_base_fee=77)
    assert built == (0 if option == "zeroBaseFee" else 77)


def test_there_is_no_base_fee_before_london() -> None:
    assert rules.base_fee_for(PARENT, FRONTIER.fork_at(4, 0), FRONTIER, 5) is None
    assert rules.base_fee_for(replace(PARENT, base_fee_per_gas=8), LONDON.fork_at(4, 0), LONDON, 5) == 7


TAILS: list[tuple[Milestone, dict[str, Any]]] = [
    (Milestone.BERLIN, {}),
    (Milestone.LONDON, {"base_fee_per_gas": 0}),
    (Milestone.SHANGHAI, {"withdrawals_root": EMPTY_TRIE_ROOT}),
    (Milestone.CANCUN, {"blob_gas_used": 0, "excess_blob_gas": 0, "parent_beacon_block_root": bytes(32)}),
    (Milestone.PRAGUE, {"requests_hash": bytes(32)}),
]


def test_exactly_the_fields_of_the_active_fork_are_present() -> None:
    fields: dict[str, Any] = {}
    headers = []
    for milestone, more in TAILS:
        fields = fields | more
        headers.append((milestone, child(**fields)))
    for milestone, _ in TAILS:
        fork = Fork(milestone, "", 0, None)
        for other, header in headers:
            if other is milestone:
                rules.check_tail(header, fork)
            else:
                with pytest.raises(InvalidHeader, match="present|absent"):
                    rules.check_tail(header, fork)


def test_fields_of_forks_to_come_are_refused() -> None:
    fields = {name: value for _, more in TAILS for name, value in more.items()}
    with pytest.raises(InvalidHeader, match="fields after requests hash"):
        rules.check_tail(child(**fields, block_access_list_hash=bytes(32)), Fork(Milestone.OSAKA, "", 0, None))


def blob_header(used: int, excess: int, base_fee: int = 7) -> Header:
    return child(blob_gas_used=used * BLOB, excess_blob_gas=excess, base_fee_per_gas=base_fee)


@pytest.mark.parametrize(
    ("excess", "used", "expected"),
    [
        (0, 0, 0),
        (0, 3, 0),
        (0, 4, BLOB),
        (2 * BLOB, 0, 0),
        (3 * BLOB, 0, 0),
        (5 * BLOB, 6, 8 * BLOB),
        (4 * BLOB, 1, 2 * BLOB),
    ],
)
def test_excess_blob_gas_adds_up_what_is_above_target(excess: int, used: int, expected: int) -> None:
    assert CANCUN.blobs is not None
    parent = blob_header(used, excess)
    assert rules.next_excess_blob_gas(parent, CANCUN, CANCUN.blobs) == expected
    rules.check_blobs(blob_header(0, expected), parent, CANCUN)
    with pytest.raises(InvalidHeader, match="excess blob gas"):
        rules.check_blobs(blob_header(0, expected + 1), parent, CANCUN)


def test_the_first_cancun_block_begins_without_excess() -> None:
    rules.check_blobs(blob_header(0, 0), PARENT, CANCUN)


def test_blob_gas_comes_in_whole_blobs_and_no_more_than_the_most() -> None:
    rules.check_blobs(blob_header(6, 0), PARENT, CANCUN)
    with pytest.raises(InvalidHeader, match="blob gas used: got 917504, expected at most 786432"):
        rules.check_blobs(blob_header(7, 0), PARENT, CANCUN)
    with pytest.raises(InvalidHeader, match="a multiple of 131072"):
        rules.check_blobs(child(blob_gas_used=1, excess_blob_gas=0), PARENT, CANCUN)


def test_from_osaka_on_cheap_blobs_do_not_get_cheaper_while_execution_is_dear() -> None:
    blobs = BlobParameters(6, 9, 5_007_716)
    dear = blob_header(6, 10 * BLOB, base_fee=10**9)
    cheap = blob_header(6, 10 * BLOB, base_fee=1)
    assert rules.next_excess_blob_gas(cheap, OSAKA, blobs) == 10 * BLOB
    assert rules.next_excess_blob_gas(dear, OSAKA, blobs) == 10 * BLOB + 6 * BLOB * 3 // 9
    assert rules.next_excess_blob_gas(dear, CANCUN, blobs) == 10 * BLOB


@pytest.mark.parametrize(
    ("excess", "fraction", "fee"),
    [(0, 3_338_477, 1), (2_314_057, 3_338_477, 1), (2_314_058, 3_338_477, 2), (10 * 1024 * 1024, 3_338_477, 23)],
)
def test_the_price_of_blobs_grows_exponentially(excess: int, fraction: int, fee: int) -> None:
    assert rules.blob_base_fee(excess, fraction) == fee


def test_a_spec_is_all_the_rules_need() -> None:
    assert isinstance(FRONTIER, ChainSpec)
    rules.check_no_ommers(child())
    with pytest.raises(InvalidHeader, match="ommers hash"):
        rules.check_no_ommers(child(ommers_hash=bytes(32)))
