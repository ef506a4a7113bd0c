"""What private transactions ask of a network."""

from __future__ import annotations

import json

import pytest

from ophion.chainspec.genesis import parse_genesis
from ophion.errors import ConfigError
from ophion.node.privacy import check_forks


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
