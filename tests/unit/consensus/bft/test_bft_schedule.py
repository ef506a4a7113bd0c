"""Tests consensus parameters by block number."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.bft_schedule import BftSchedule
from tests.unit.consensus.bft.ledger import KEYS, genesis_of

ADDRESSES = tuple(key.address for key in KEYS)
FRIEND = "0x" + "09" * 20


def schedule(
    transitions: list[dict[str, object]], options: dict[str, object] | None = None, **config: object
) -> BftSchedule:
    base = {"blockperiodseconds": 2, **(options or {})}
    return BftSchedule(genesis_of("qbft", ADDRESSES, base, transitions={"qbft": transitions}, **config).spec)


def test_i_24_each_transition_inherits_from_the_one_before() -> None:
    found = schedule(
        [
            {"block": 10, "blockperiodseconds": 5, "miningbeneficiary": FRIEND},
            {"block": 20, "blockreward": "0x7", "xemptyblockperiodseconds": 30},
            {"block": 30, "miningbeneficiary": "", "blockperiodseconds": 1},
        ]
    )
    settings = [found.settings(number, 0) for number in (9, 10, 20, 30)]
    assert [entry.period_s for entry in settings] == [2, 5, 5, 1]
    assert [entry.reward_wei for entry in settings] == [0, 0, 7, 7]
    assert [entry.empty_period_s for entry in settings] == [0, 0, 30, 30]
    assert [entry.beneficiary is not None for entry in settings] == [False, True, True, False]


def test_a_transition_is_a_time_where_time_forks_lie_before_it() -> None:
    by_time = schedule([{"block": 100, "blockperiodseconds": 9}], londonBlock=0, shanghaiTime=0)
    assert by_time.settings(1, 99).period_s == 2
    assert by_time.settings(1, 100).period_s == 9
    later_fork = schedule([{"block": 100, "blockperiodseconds": 9}], londonBlock=0, shanghaiTime=2_000_000_000)
    assert later_fork.settings(99, 10**9).period_s == 2
    assert later_fork.settings(100, 0).period_s == 9


def test_validators_are_replaced_at_exactly_one_block() -> None:
    listed = ["0x" + address.hex() for address in ADDRESSES[:1]]
    found = schedule([{"block": 5, "validators": listed}])
    assert [number for number in range(1, 9) if found.override(number, 0, 0) is not None] == [5]


@pytest.mark.parametrize("key", ["blockperiodmilliseconds", "xblockperiodmilliseconds"])
def test_timestamps_may_be_equal_with_periods_below_a_second(key: str) -> None:
    short = schedule([], {key: 250}).settings(1, 0)
    assert short.target_period_s == 0.25
    assert short.least_distance_s == 0
    assert schedule([]).settings(1, 0).target_period_s == 2.0


def test_a_transition_begins_and_ends_short_periods() -> None:
    found = schedule(
        [
            {"block": 10, "blockperiodmilliseconds": 200, "emptyblockperiodseconds": 30},
            {"block": 20, "blockperiodmilliseconds": 0, "emptyblockperiodseconds": 0},
        ]
    )
    settings = [found.settings(number, 0) for number in (9, 10, 20)]
    assert [entry.target_period_s for entry in settings] == [2.0, 0.2, 2.0]
    assert [entry.least_distance_s for entry in settings] == [2, 0, 2]
    assert [entry.empty_period_s for entry in settings] == [0, 30, 0]


def test_epochs_are_counted_from_the_block_before_an_era() -> None:
    options = {"blockperiodseconds": 2}
    spec = genesis_of("ibft2", ADDRESSES, options, qbft={"startblock": 5, "epochlength": 3}).spec
    found = BftSchedule(spec)
    qbft = found.era(5)
    assert [number for number in range(4, 12) if qbft.is_epoch(number)] == [4, 7, 10]
    assert found.era(4).protocol.name == "ibft2"
    assert found.era_after(4) is qbft
    assert found.era(0).is_epoch(0)
