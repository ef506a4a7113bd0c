"""Requirements of private transactions on a network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.chainspec.genesis import parse_genesis
from ophion.errors import ConfigError
from ophion.node.config import NodeConfig
from ophion.node.privacy import check_forks, unpayable_markers


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
def test_unpayable_markers_cause_a_warning(forks: dict[str, int], options: dict[str, Path], has_warning: bool) -> None:
    default = NodeConfig()
    chosen = replace(default, privacy=replace(default.privacy, **options))
    warning = unpayable_markers(parse_genesis(config(**forks)).spec, chosen)
    assert (warning is not None) is has_warning
    assert warning is None or "--privacy-marker-transaction-signing-key-file" in warning
