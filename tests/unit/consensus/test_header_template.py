"""The header template of a new block passes the rules."""

from __future__ import annotations

import pytest

from ophion.consensus import header_rules as rules
from ophion.consensus.engine import BlockPreferences
from ophion.consensus.header_template import unsealed_header
from ophion.primitives.header import HashedHeader
from tests.unit.consensus.stories import genesis

CONFIGS = [
    {"berlinBlock": 0},
    {"londonBlock": 1},
    {"londonBlock": 0},
    {"shanghaiTime": 0},
    {"cancunTime": 10},
    {"pragueTime": 0},
    {"osakaTime": 0, "zeroBaseFee": True},
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: next(iter(config)))
def test_gas_limit_base_fee_and_tail_are_valid_under_every_fork(config: dict[str, int]) -> None:
    first = genesis({"ethash": {}, **config})
    spec = first.spec
    parent = HashedHeader(first.header(bytes(32)), b"\x01" * 32)
    header = unsealed_header(parent, BlockPreferences(timestamp=10, author=b"\x02" * 20, target_gas_limit=10**9), spec)
    fork = spec.fork_of(header)
    rules.check_parent(header, parent)
    rules.check_tail(header, fork)
    rules.check_gas_limit(header, parent.header, spec)
    rules.check_base_fee(header, parent.header, spec)
    rules.check_blobs(header, parent.header, fork)
    assert header.gas_limit > parent.header.gas_limit
    assert (header.coinbase, header.timestamp) == (b"\x02" * 20, 10)
