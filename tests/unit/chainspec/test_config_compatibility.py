"""Tests the compatibility of a later genesis file with existing blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chainspec.config_compatibility import block_rules, check_rules, encode_rules
from ophion.chainspec.genesis import parse_genesis
from ophion.errors import GenesisError

_MEMBER, _OTHER = "0x" + "0a" * 20, "0x" + "0b" * 20
_QBFT = {"chainId": 1337, "berlinBlock": 0, "qbft": {"epochlength": 100, "blockreward": "5"}}
_ETHASH = {"chainId": 7, "homesteadBlock": 5, "londonBlock": 20, "ethash": {}}


def _refusal(before: dict[str, Any], after: dict[str, Any], number: int, timestamp: int = 0, **top: Any) -> str:
    """Return the reason why a chain with the genesis file `before` and its head at `number` refuses the genesis file
    `after`.

    The text is empty if the file is accepted.
    """
    first, second = (
        parse_genesis(json.dumps({"config": config, "difficulty": 1, "gasLimit": 5000, **more}))
        for config, more in ((before, {}), (after, top))
    )
    head = replace(first.header(bytes(32)), number=number, timestamp=timestamp)
    try:
        check_rules(encode_rules(block_rules(first.spec)), block_rules(second.spec), head)
    except GenesisError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("before", "change", "said"),
    [
        (_QBFT, {"chainId": 1338}, "chainId was 1337 and is 1338"),
        (_QBFT, {"berlinBlock": 3}, "berlinBlock was 0 and is 3"),
        (_QBFT, {"londonBlock": 10}, "londonBlock was not set and is 10"),
        (_QBFT, {"qbft": {"epochlength": 10, "blockreward": "5"}}, "qbft.epochlength was 100 and is 10"),
        (_QBFT, {"qbft": {"epochlength": 100}}, "qbft.blockreward was 5 and is 0"),
        (_QBFT, {"shanghaiTime": 1000}, "shanghaiTime was not set and is 1000"),
        (_QBFT, {"ibft2": {}}, "consensus was qbft and is ibft2"),
        (
            _QBFT,
            {"transitions": {"qbft": [{"block": 4, "validators": [_MEMBER]}]}},
            f"transitions.qbft.4.validators was not set and is ['{_MEMBER}']",
        ),
        (
            {**_QBFT, "londonBlock": 2, "zeroBaseFee": True},
            {"zeroBaseFee": False},
            "zeroBaseFee or fixedBaseFee was True and is False",
        ),
        (_ETHASH, {"homesteadBlock": 6}, "homesteadBlock was 5 and is 6"),
        (_ETHASH, {"muirGlacierBlock": 8}, "muirGlacierBlock was 20 and is 8"),
        (
            {**_QBFT, "cancunTime": 500},
            {"blobSchedule": {"cancun": {"target": 1, "max": 2, "baseFeeUpdateFraction": 3}}},
            "blobSchedule.cancun was [3, 6, 3338477] and is [1, 2, 3]",
        ),
    ],
)
def test_a_rule_of_blocks_that_exist_is_not_changed(before: dict[str, Any], change: dict[str, Any], said: str) -> None:
    refusal = _refusal(before, {**before, **change}, 10, 1000)
    assert said in refusal
    assert "up to block 10" in refusal
    assert "--genesis-file" in refusal
    assert "--data-path" in refusal


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (_QBFT, {"londonBlock": 11}),
        (_QBFT, {"shanghaiTime": 1001}),
        (_QBFT, {"byzantiumBlock": 0, "petersburgBlock": 0}),  # Berlin implies these two forks
        (_QBFT, {"muirGlacierBlock": 0}),  # Muir Glacier only delays the difficulty bomb, which QBFT does not have
        (_QBFT, {"qbft": {"epochlength": 200, "blockreward": "5"}}),
        (_QBFT, {"qbft": {"epochlength": 100, "blockreward": "5", "blockperiodseconds": 9}}),
        (_QBFT, {"contractSizeLimit": 100_000}),
        (_QBFT, {"transitions": {"qbft": [{"block": 11, "validators": [_MEMBER]}]}}),
        (_QBFT, {"transitions": {"qbft": [{"block": 4, "blockperiodseconds": 7}]}}),
        ({**_QBFT, "londonBlock": 11}, {"londonBlock": 12, "zeroBaseFee": True}),
        # the change is accepted, because old blocks stay valid (consensus.md 5.3)
        ({**_QBFT, "londonBlock": 2}, {"zeroBaseFee": True}),
        ({**_QBFT, "londonBlock": 2, "zeroBaseFee": True}, {"zeroBaseFee": False, "fixedBaseFee": True}),
        ({**_QBFT, "shanghaiTime": 0}, {"londonBlock": 0}),
        ({"ibft2": {}, "berlinBlock": 0}, {"qbft": {"startblock": 11, "epochlength": 5}}),
        ({"clique": {}, "chainId": 4}, {"clique": {"period": 3}}),
    ],
)
def test_rules_of_later_blocks_and_what_nothing_depends_on_may_be_changed(
    before: dict[str, Any], change: dict[str, Any]
) -> None:
    assert _refusal(before, {**before, **change}, 10, 1000) == ""


def test_the_move_to_another_protocol_is_not_made_afterwards() -> None:
    before = {"ibft2": {}, "berlinBlock": 0}
    said = _refusal(before, {**before, "qbft": {"startblock": 10}}, 10)
    assert "qbft.startblock was not set and is 10" in said
    moved = {**before, "qbft": {"startblock": 5}}
    assert "qbft.startblock was 5 and is not set" in _refusal(moved, before, 10)


def test_a_transition_that_has_taken_effect_stays() -> None:
    before = {**_QBFT, "transitions": {"qbft": [{"block": 4, "validators": [_MEMBER]}]}}
    assert "transitions.qbft.4.validators" in _refusal(before, _QBFT, 10)
    after = {**_QBFT, "transitions": {"qbft": [{"block": 4, "validators": [_OTHER]}]}}
    assert _OTHER in _refusal(before, after, 10)
    assert _refusal(before, after, 3) == ""


@pytest.mark.parametrize(
    ("entry", "member"),
    [
        ({"blockreward": "0x7"}, "blockreward"),
        ({"miningbeneficiary": _MEMBER}, "miningbeneficiary"),
        ({"miningbeneficiary": ""}, "miningbeneficiary"),
        ({"validatorselectionmode": "contract", "validatorcontractaddress": _MEMBER}, "validatorcontractaddress"),
    ],
)
def test_what_a_transition_has_changed_stays(entry: dict[str, Any], member: str) -> None:
    after = {**_QBFT, "transitions": {"qbft": [{"block": 4, **entry}]}}
    assert f"transitions.qbft.4.{member} was not set" in _refusal(_QBFT, after, 10)
    assert f"transitions.qbft.4.{member} was " in _refusal(after, _QBFT, 10)
    assert _refusal(_QBFT, after, 3) == ""


def test_a_transition_by_time_begins_at_its_second() -> None:
    before = {**_QBFT, "shanghaiTime": 0}
    for at, is_refused in ((900, True), (1001, False)):
        after = {**before, "transitions": {"qbft": [{"block": at, "blockreward": "0x7"}]}}
        assert (f"transitions.qbft.{at}.blockreward" in _refusal(before, after, 10, 1000)) is is_refused


def test_the_first_base_fee_stays_from_london_on() -> None:
    config = {**_QBFT, "londonBlock": 4}
    assert "baseFeePerGas was 1000000000 and is 7" in _refusal(config, config, 10, baseFeePerGas="0x7")
    assert _refusal(config, config, 3, baseFeePerGas="0x7") == ""


def test_before_the_first_block_everything_may_be_changed() -> None:
    assert _refusal(_QBFT, {**_QBFT, "chainId": 1, "berlinBlock": 9}, 0) == ""


def test_names_that_another_version_knows_are_no_difference() -> None:
    spec = parse_genesis(json.dumps({"config": _QBFT, "difficulty": 1, "gasLimit": 5000})).spec
    rules = block_rules(spec)
    head = replace(parse_genesis('{"config":{"ethash":{}},"difficulty":1,"gasLimit":5000}').header(bytes(32)), number=9)
    fewer = {name: rule for name, rule in rules.items() if name != "berlinBlock"}
    check_rules(encode_rules(fewer), rules, head)
    check_rules(encode_rules(rules), fewer, head)
