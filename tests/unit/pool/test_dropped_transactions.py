"""Tests transactions that left the pool."""

from __future__ import annotations

from msgspec.structs import replace

from ophion.native.transactions import Transaction, decode_transactions
from ophion.pool.dropped_transactions import DroppedTransactions
from ophion.pool.events import Added, Dropped, DropReason
from ophion.pool.queue import PooledTransaction
from ophion.runtime.clock import ManualClock
from ophion.testing.signing import DEV_KEYS, legacy_transaction


def pooled(nonce: int) -> PooledTransaction:
    [transaction] = decode_transactions([legacy_transaction(DEV_KEYS[0], nonce)])
    assert isinstance(transaction, Transaction)
    return PooledTransaction(transaction, transaction.hash, transaction.sender, nonce, 21_000, 1, 1, 100, True, 0.0, 1)


def test_what_left_is_remembered_with_time_and_reason() -> None:
    clock = ManualClock()
    departures = DroppedTransactions(clock)
    first, second = pooled(0), pooled(1)
    departures.on_pool_event(Added((first, second)))
    assert departures.get(first.hash) is None
    departures.on_pool_event(Dropped((first, second), DropReason.INVALID, {first.hash: "too long"}))
    departure = departures.get(first.hash)
    assert departure is not None
    assert (departure.at, departure.reason, departure.detail) == (clock.now(), DropReason.INVALID, "too long")
    assert departures.get(second.hash) is not None


def test_the_oldest_is_forgotten_first() -> None:
    departures = DroppedTransactions(ManualClock())
    items = [replace(pooled(0), hash=number.to_bytes(32, "big")) for number in range(4097)]
    for item in items:
        departures.on_pool_event(Dropped((item,), DropReason.EVICTED))
    assert departures.get(items[0].hash) is None
    assert departures.get(items[1].hash) is not None
