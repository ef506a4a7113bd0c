"""The fork schedule: the latest active milestone applies."""

from __future__ import annotations

import pytest

from ophion.chainspec.forks import BlobParameters, ForkSchedule, Milestone, evm_rules


def test_without_forks_everything_is_frontier() -> None:
    assert ForkSchedule({}).at(10**9, 10**10).milestone is Milestone.FRONTIER


def test_naming_a_later_fork_implies_the_earlier_ones() -> None:
    fork = ForkSchedule({Milestone.BERLIN: 5}).at(5, 0)
    assert all(fork.has(milestone) for milestone in Milestone if milestone <= Milestone.BERLIN)
    assert not fork.has(Milestone.LONDON)


def test_time_forks_follow_block_forks_and_the_merge_lies_between() -> None:
    schedule = ForkSchedule({Milestone.HOMESTEAD: 0, Milestone.LONDON: 10}, {Milestone.SHANGHAI: 1000})
    assert schedule.at(9, 999).milestone is Milestone.HOMESTEAD
    assert schedule.at(10, 999).milestone is Milestone.LONDON
    assert schedule.at(10, 999, merged=True).milestone is Milestone.PARIS
    assert schedule.at(1, 1000).milestone is Milestone.SHANGHAI


@pytest.mark.parametrize(
    ("milestone", "name"),
    [
        (Milestone.FRONTIER, "frontier"),
        (Milestone.TANGERINE, "tangerine"),
        (Milestone.CONSTANTINOPLE, "constantinople"),
        (Milestone.MUIR_GLACIER, "istanbul"),
        (Milestone.GRAY_GLACIER, "london"),
        (Milestone.PARIS, "paris"),
        (Milestone.BPO5, "osaka"),
    ],
)
def test_the_evm_knows_no_glaciers_and_no_blob_forks(milestone: Milestone, name: str) -> None:
    assert evm_rules(milestone) == name


@pytest.mark.parametrize(
    ("milestone", "delay"),
    [
        (Milestone.HOMESTEAD, 0),
        (Milestone.BYZANTIUM, 3_000_000),
        (Milestone.PETERSBURG, 5_000_000),
        (Milestone.ISTANBUL, 5_000_000),
        (Milestone.MUIR_GLACIER, 9_000_000),
        (Milestone.BERLIN, 9_000_000),
        (Milestone.LONDON, 9_700_000),
        (Milestone.ARROW_GLACIER, 10_700_000),
        (Milestone.GRAY_GLACIER, 11_400_000),
    ],
)
def test_each_fork_puts_the_bomb_off(milestone: Milestone, delay: int) -> None:
    assert ForkSchedule({milestone: 0}).at(0, 0).bomb_delay == delay


def test_blob_parameters_are_those_of_the_latest_fork_that_names_some() -> None:
    mine = BlobParameters(1, 2, 3)
    schedule = ForkSchedule({}, {Milestone.CANCUN: 0, Milestone.OSAKA: 10, Milestone.BPO2: 20})
    assert schedule.at(0, 0).blobs == BlobParameters(3, 6, 3_338_477)
    assert schedule.at(0, 10).blobs == schedule.at(0, 20).blobs == BlobParameters(6, 9, 5_007_716)
    with_mine = ForkSchedule(schedule.blocks, schedule.times, schedule.blob_schedule | {Milestone.BPO1: mine})
    assert with_mine.at(0, 20).blobs == mine
    assert ForkSchedule({Milestone.LONDON: 0}).at(0, 0).blobs is None
