"""Tests parameters of the engines: defaults, spellings, transitions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ophion.chainspec.consensus_parameters import (
    BftParameters,
    BftTransition,
    CliqueParameters,
    HeaderForm,
    ValidatorSelection,
    read_bft,
    read_clique,
    read_ethash,
)
from ophion.chainspec.genesis_fields import GenesisObject, parse_json
from ophion.errors import GenesisError

ALICE = "0x" + "aa" * 20
BOB = "bb" * 20


def members(value: dict[str, Any], path: str = "config.engine") -> GenesisObject:
    return GenesisObject(parse_json(json.dumps(value))[0], path)


def entries(*values: dict[str, Any]) -> list[GenesisObject]:
    return [members(value, f"config.transitions.engine[{index}]") for index, value in enumerate(values)]


def test_ethash_may_fix_the_difficulty() -> None:
    assert read_ethash(members({})).fixed_difficulty is None
    assert read_ethash(members({"fixedDifficulty": 100})).fixed_difficulty == 100
    with pytest.raises(GenesisError, match="must be at least 1"):
        read_ethash(members({"fixeddifficulty": 0}))


def test_clique_has_defaults() -> None:
    assert read_clique(members({}), []) == CliqueParameters(period_s=15, epoch_length=30_000)


@pytest.mark.parametrize(
    "value",
    [
        {"blockperiodseconds": 5, "epochlength": 100},
        {"BlockPeriodSeconds": "5", "EpochLength": "0x64"},
        {"period": 5, "epoch": 100},
        {"blockperiodseconds": 5, "epochlength": 100, "period": 5, "epoch": 100},
    ],
)
def test_clique_parameters_have_two_spellings(value: dict[str, Any]) -> None:
    assert read_clique(members(value), []) == CliqueParameters(period_s=5, epoch_length=100)


@pytest.mark.parametrize(
    "value",
    [
        {"blockperiodseconds": 0},
        {"blockperiodseconds": 5, "period": 6},
        {"epochlength": 0},
        {"epoch": 0},
        {"epochlength": 5, "epoch": 6},
        {"blockperiodseconds": "five"},
        {"createemptyblocks": 3},
    ],
)
def test_wrong_clique_parameters_are_refused(value: dict[str, Any]) -> None:
    with pytest.raises(GenesisError, match=r"Invalid config\.engine\."):
        read_clique(members(value), [])


def test_geth_knows_a_period_of_zero() -> None:
    assert read_clique(members({"period": 0}), []).period_s == 0


def test_clique_transitions_change_parameters_from_their_block_on() -> None:
    parameters = read_clique(
        members({"blockperiodseconds": 5}),
        entries({"block": 20, "createemptyblocks": False}, {"block": 10, "blockperiodseconds": 2}),
    )
    assert [parameters.period_at(number) for number in (9, 10, 30)] == [5, 2, 2]
    assert [parameters.creates_empty_blocks_at(number) for number in (19, 20)] == [True, False]


@pytest.mark.parametrize(
    ("transitions", "problem"),
    [
        ([{}], "missing value for 'config.transitions.engine\\[0\\].block'"),
        ([{"block": 0}], "must be at least 1"),
        ([{"block": 3}, {"block": 3}], "two transitions at one block"),
    ],
)
def test_transitions_need_distinct_blocks_above_zero(transitions: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(GenesisError, match=problem):
        read_bft(members({}), entries(*transitions))


def test_bft_has_defaults() -> None:
    assert read_bft(members({}), []) == BftParameters()


@pytest.mark.parametrize("spelling", ["duplicateMessageLimit", "duplicateMesageLimit"])
def test_the_published_misspelling_is_accepted(spelling: str) -> None:
    assert read_bft(members({spelling: 7}), []).duplicate_message_limit == 7


def test_bft_parameters_are_read() -> None:
    value = {
        "blockPeriodSeconds": 2,
        "epochLength": 50,
        "requestTimeoutSeconds": 4,
        "messageQueueLimit": 10,
        "futureMessagesLimit": 11,
        "futureMessagesMaxDistance": 12,
        "gossipedHistoryLimit": 13,
        "blockReward": "0x10",
        "miningBeneficiary": ALICE,
        "xEmptyBlockPeriodSeconds": 30,
        "validatorContractAddress": BOB,
        "startBlock": 100,
        "headerForm": "Short-Blobs",
    }
    assert read_bft(members(value), []) == BftParameters(
        block_period_s=2,
        epoch_length=50,
        request_timeout_s=4,
        message_queue_limit=10,
        future_messages_limit=11,
        future_messages_max_distance=12,
        gossiped_history_limit=13,
        block_reward=16,
        mining_beneficiary=b"\xaa" * 20,
        empty_block_period_s=30,
        validator_contract=b"\xbb" * 20,
        start_block=100,
        header_form=HeaderForm.SHORT_BLOBS,
    )


def test_short_and_empty_periods_have_two_spellings() -> None:
    besu = {"xblockperiodmilliseconds": 50, "xemptyblockperiodseconds": 30}
    parameters = read_bft(members(besu), [])
    assert (parameters.block_period_ms, parameters.empty_block_period_s) == (50, 30)
    both = {**besu, "blockPeriodMilliseconds": 200, "emptyBlockPeriodSeconds": 60}
    parameters = read_bft(members(both), entries({"block": 5, "blockperiodmilliseconds": 0}))
    assert (parameters.block_period_ms, parameters.empty_block_period_s) == (200, 60)
    assert parameters.transitions[0].block_period_ms == 0


def test_a_period_below_100_milliseconds_is_refused() -> None:
    with pytest.raises(GenesisError, match=r"config\.engine\.blockperiodmilliseconds.*99 \(0 or at least 100\)"):
        read_bft(members({"blockperiodmilliseconds": 99}), [])


def test_an_unknown_form_of_headers_is_refused() -> None:
    with pytest.raises(GenesisError, match=r"config\.engine\.headerform.*one of full, short, short-blobs"):
        read_bft(members({"headerForm": "long"}), [])


@pytest.mark.parametrize("key", ["blockperiodseconds", "epochlength", "requesttimeoutseconds"])
def test_bft_periods_must_be_positive(key: str) -> None:
    with pytest.raises(GenesisError, match="must be at least 1"):
        read_bft(members({key: 0}), [])


@pytest.mark.parametrize("value", ["soon", -1, 1.5, True, 2**31], ids=str)
def test_a_period_is_a_number_of_seconds(value: object) -> None:
    for read in (read_bft, read_clique):
        with pytest.raises(GenesisError, match=r"Invalid config\.engine\.blockperiodseconds"):
            read(members({"blockperiodseconds": value}), [])


def test_bft_transitions_are_kept_as_data() -> None:
    parameters = read_bft(
        members({}),
        entries(
            {"block": 9, "validatorSelectionMode": "Contract", "validatorContractAddress": ALICE},
            {"block": 5, "validators": [ALICE, BOB], "blockReward": "7", "miningBeneficiary": ""},
        ),
    )
    assert parameters.transitions == (
        BftTransition(block=5, validators=(b"\xaa" * 20, b"\xbb" * 20), block_reward=7, sets_mining_beneficiary=True),
        BftTransition(block=9, validator_selection=ValidatorSelection.CONTRACT, validator_contract=b"\xaa" * 20),
    )


@pytest.mark.parametrize(
    "transition",
    [
        {"block": 1, "validators": ALICE},
        {"block": 1, "validators": [5]},
        {"block": 1, "validators": ["0x12"]},
        {"block": 1, "validators": []},
        {"block": 1, "validators": [ALICE, ALICE]},
        {"block": 1, "validatorselectionmode": "lottery"},
        {"block": 1, "validatorselectionmode": "blockheader"},
        {"block": 1, "validatorselectionmode": "blockheader", "validators": []},
        {"block": 1, "validatorselectionmode": "contract"},
    ],
)
def test_wrong_transitions_are_refused_with_their_path(transition: dict[str, Any]) -> None:
    with pytest.raises(GenesisError, match=r"config\.transitions\.engine\[0\]\."):
        read_bft(members({}), entries(transition))
