"""Tests requirements of private transactions on a network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.chainspec.genesis import parse_genesis
from ophion.errors import ConfigError
from ophion.node.config import NodeConfig
from ophion.node.privacy import check_forks, refused_markers


def config(**forks: int) -> str:
    members = {"chainId": 1, "ethash": {"fixeddifficulty": 100}, **forks}
    return json.dumps({"config": members, "difficulty": "0x1", "gasLimit": "0x1000000", "alloc": {}})


@pytest.mark.parametrize("fork", ["constantinopleFixBlock", "petersburgBlock", "istanbulBlock", "londonBlock"])
def test_networks_from_constantinople_fix_on_have_private_transactions(fork: str) -> None:
    check_forks(parse_genesis(config(**{fork: 10})).spec)


@pytest.mark.parametrize("fork", ["homesteadBlock", "byzantiumBlock", "constantinopleBlock"])
def test_older_networks_have_none(fork: str) -> None:
    with pytest.raises(ConfigError, match="the genesis must have constantinopleFixBlock"):
        check_forks(parse_genesis(config(**{fork: 0})).spec)


@pytest.mark.parametrize(
    ("forks", "options", "has_warning"),
    [
        ({"berlinBlock": 0}, {}, False),
        ({"londonBlock": 0}, {}, True),
        ({"londonBlock": 100}, {}, True),
        ({"londonBlock": 0, "zeroBaseFee": True}, {}, False),
        ({"londonBlock": 0, "fixedBaseFee": True}, {}, False),
        ({"londonBlock": 0}, {"marker_key_file": Path("key")}, False),
    ],
)
def test_refused_markers_cause_a_warning(forks: dict[str, int], options: dict[str, Path], has_warning: bool) -> None:
    default = NodeConfig()
    chosen = replace(default, privacy=replace(default.privacy, **options))
    warning = refused_markers(parse_genesis(config(**forks)).spec, chosen)
    assert (warning is not None) is has_warning
    assert warning is None or "--privacy-marker-transaction-signing-key-file" in warning


@pytest.mark.parametrize("rules", ["accounts_file_enabled", "accounts_contract_enabled"])
def test_markers_of_accounts_that_are_not_permitted_cause_a_warning(rules: str) -> None:
    default = NodeConfig()
    chosen = replace(default, permissions=replace(default.permissions, **{rules: True}))
    spec = parse_genesis(config(berlinBlock=0)).spec
    assert "account permissions" in (refused_markers(spec, chosen) or "")
    with_key = replace(chosen, privacy=replace(chosen.privacy, marker_key_file=Path("key")))
    assert refused_markers(spec, with_key) is None
