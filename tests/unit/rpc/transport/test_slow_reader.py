"""Tests clients that read slowly."""

from __future__ import annotations

from ophion.rpc.transport.slow_reader import MIN_BYTES, SlowReaderCheck


def test_what_is_taken_counts_when_it_is_enough() -> None:
    taking = SlowReaderCheck()
    taking.begin(1_000_000)
    assert not taking.has_read_enough(1_000_000)
    assert taking.has_read_enough(1_000_000 - MIN_BYTES)
    assert not taking.has_read_enough(1_000_000 - MIN_BYTES), "nothing since"


def test_single_bytes_count_together_and_not_each() -> None:
    taking = SlowReaderCheck()
    taking.begin(1_000_000)
    said = [taking.has_read_enough(1_000_000 - 1000 * number) for number in range(1, 300)]
    assert sum(said) == 299_000 // (MIN_BYTES + 1000)


def test_what_is_added_meanwhile_was_not_taken() -> None:
    taking = SlowReaderCheck()
    taking.begin(200_000)
    assert not taking.has_read_enough(900_000)
    assert not taking.has_read_enough(850_000)
    assert taking.has_read_enough(700_000)
