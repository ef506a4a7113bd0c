"""Tests rate limits of peers."""

from __future__ import annotations

from ophion.peers.token_bucket import TokenBucket


def test_it_starts_full_and_fills_with_time() -> None:
    allowance = TokenBucket(10, 2.0)
    assert allowance.left(100.0) == 10
    assert allowance.spend(10, 100.0)
    assert not allowance.spend(1, 100.0)
    assert allowance.left(100.0) == -1
    assert allowance.left(101.0) == 1
    assert allowance.left(1000.0) == 10


def test_what_is_only_taken_is_never_owed() -> None:
    allowance = TokenBucket(2, 1.0)
    assert allowance.take(2, 100.0)
    for _ in range(50):
        assert not allowance.take(1, 100.0)
    assert allowance.take(1, 101.0)
