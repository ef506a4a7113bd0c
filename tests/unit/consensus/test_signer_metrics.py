"""Tests the count of blocks per validator or signer (consensus.md 4.2; scenario X-05)."""

from __future__ import annotations

import pytest

from ophion.consensus.signer_metrics import EmptyRange, SignerMetric, signer_metrics
from tests.unit.consensus.bft.ledger import KEYS, Ledger, genesis_of


def chain_of(blocks: int) -> Ledger:
    """Return a chain that the first three of four validators have built in turn."""
    ledger = Ledger(genesis_of("ibft2", [key.address for key in KEYS]))
    for number in range(blocks):
        ledger.add(KEYS[number % 3])
    return ledger


def counts(found: list[SignerMetric]) -> dict[bytes, tuple[int, int]]:
    return {entry.address: (entry.blocks, entry.last_block) for entry in found}


def test_x_05_the_defaults_count_the_hundred_blocks_before_the_head() -> None:
    ledger = chain_of(7)
    found = counts(signer_metrics(ledger.engine, ledger, 7))
    assert found == {
        bytes(20): (1, 0),
        KEYS[0].address: (2, 4),
        KEYS[1].address: (2, 5),
        KEYS[2].address: (2, 6),
        KEYS[3].address: (0, 0),
    }
    long = chain_of(130)
    found = counts(signer_metrics(long.engine, long, 130))
    assert sum(count for count, _ in found.values()) == 100
    assert bytes(20) not in found


def test_x_05_one_argument_counts_to_the_head_and_the_end_is_excluded() -> None:
    ledger = chain_of(7)
    found = counts(signer_metrics(ledger.engine, ledger, 7, first=4))
    assert {address: count for address, (count, _) in found.items() if count} == {
        KEYS[0].address: 1,
        KEYS[1].address: 1,
        KEYS[2].address: 1,
    }
    assert counts(signer_metrics(ledger.engine, ledger, 7, 3, 4))[KEYS[2].address] == (1, 3)


def test_x_05_an_end_beyond_the_head_is_the_head() -> None:
    ledger = chain_of(5)
    assert signer_metrics(ledger.engine, ledger, 5, 0, 900) == signer_metrics(ledger.engine, ledger, 5, 0, 5)


@pytest.mark.parametrize(("first", "end"), [(3, 3), (4, 3), (5, None), (9, 20)])
def test_x_05_an_empty_range_is_an_error(first: int, end: int | None) -> None:
    ledger = chain_of(5)
    with pytest.raises(EmptyRange):
        signer_metrics(ledger.engine, ledger, 5, first, end)


def test_a_chain_of_nothing_but_genesis_has_no_range() -> None:
    ledger = chain_of(0)
    with pytest.raises(EmptyRange):
        signer_metrics(ledger.engine, ledger, 0)
