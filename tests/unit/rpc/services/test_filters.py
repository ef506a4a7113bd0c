"""Tests polling filters and their expiry."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chain.events import ChainBlock, Extended, Reorged
from ophion.errors import RpcError
from ophion.native.transactions import Body, Transaction, decode_transactions
from ophion.pool.events import Added, Dropped, DropReason
from ophion.pool.queue import PooledTransaction
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import EMPTY_BLOOM, EMPTY_OMMERS_HASH, EMPTY_TRIE_ROOT, ZERO_ADDRESS, ZERO_HASH, ZERO_NONCE
from ophion.rpc.services.filters import MAX_FILTERS, ChainChange, EventJournal, FilterKind, Filters, LogChanges
from ophion.rpc.services.log_query import LogQuery
from ophion.runtime.clock import ManualClock
from ophion.testing.signing import DEV_KEYS, legacy_transaction

HEADER = Header(
    ZERO_HASH, EMPTY_OMMERS_HASH, ZERO_ADDRESS, EMPTY_TRIE_ROOT, EMPTY_TRIE_ROOT, EMPTY_TRIE_ROOT, EMPTY_BLOOM,
    1, 0, 5000, 0, 0, b"", ZERO_HASH, ZERO_NONCE,
)  # fmt: skip


class Counting:
    """A source of predictable ids."""

    def __init__(self) -> None:
        self.drawn = 0

    def token(self, size: int) -> bytes:
        self.drawn += 1
        return self.drawn.to_bytes(size, "big")


def block(number: int, branch: int = 0) -> ChainBlock:
    header = HashedHeader(replace(HEADER, number=number), bytes([branch]) * 31 + bytes([number]))
    return ChainBlock(header, Body.of([], [], None))


def pooled(number: int) -> PooledTransaction:
    (transaction,) = decode_transactions([legacy_transaction(DEV_KEYS[0], number)])
    assert isinstance(transaction, Transaction)
    return PooledTransaction(
        transaction, transaction.hash, transaction.sender, number, 21_000, 1, 1, 100, True, 0.0, number
    )


def filters() -> tuple[Filters, ManualClock]:
    clock = ManualClock()
    return Filters(clock, Counting()), clock


def test_ids_are_quantities_without_leading_zeros() -> None:
    assert filters()[0].install(FilterKind.BLOCKS) == "0x1"


def test_a_block_filter_gives_what_arrived_since_it_was_asked_last() -> None:
    store, _ = filters()
    store.on_chain_event(Extended((block(1),)))
    found = store.install(FilterKind.BLOCKS)
    assert store.changes(found) == []
    store.on_chain_event(Extended((block(2), block(3))))
    assert store.changes(found) == [block(2).header.hash, block(3).header.hash]
    assert store.changes(found) == []


def test_a_reorganisation_gives_the_new_blocks_only() -> None:
    store, _ = filters()
    found = store.install(FilterKind.BLOCKS)
    store.on_chain_event(Reorged((block(2),), (block(2, 1), block(3, 1))))
    assert store.changes(found) == [block(2, 1).header.hash, block(3, 1).header.hash]


def test_a_pending_filter_gives_hashes_of_transactions_that_entered() -> None:
    store, _ = filters()
    store.on_pool_event(Added((pooled(1),)))
    found = store.install(FilterKind.PENDING)
    store.on_pool_event(Added((pooled(2), pooled(3))))
    store.on_pool_event(Dropped((pooled(2),), DropReason.EVICTED))
    assert store.changes(found) == [pooled(2).hash, pooled(3).hash]


def test_a_log_filter_gives_the_blocks_to_look_at_with_those_that_left() -> None:
    store, _ = filters()
    found = store.install(FilterKind.LOGS, LogQuery(from_block=100, to_block=3))
    store.on_chain_event(Extended((block(2),)))
    store.on_chain_event(Reorged((block(2),), (block(2, 1), block(3, 1), block(4, 1))))
    changes = store.changes(found)
    assert isinstance(changes, LogChanges)
    assert [one.number for one in changes.blocks] == [2, 2, 2, 3, 4]
    assert changes.wanted() == (
        ChainChange(block(2).header.hash, 2, False),
        ChainChange(block(2).header.hash, 2, True),
        ChainChange(block(2, 1).header.hash, 2, False),
        ChainChange(block(3, 1).header.hash, 3, False),
    )


def positions(changes: object) -> list[int]:
    assert isinstance(changes, LogChanges)
    return [one.number for one in changes.blocks]


def test_what_a_log_filter_could_not_deliver_comes_again() -> None:
    store, _ = filters()
    found = store.install(FilterKind.LOGS)
    store.on_chain_event(Extended(tuple(block(number) for number in range(1, 5))))
    first = store.changes(found)
    assert isinstance(first, LogChanges)
    store.on_chain_event(Extended((block(5),)))
    second = store.changes(found)
    assert isinstance(second, LogChanges)
    assert positions(second) == [5], "a second question in the meantime is not told the same"
    store.delivered(second, 1)
    store.delivered(first, 3)
    third = store.changes(found)
    assert isinstance(third, LogChanges)
    assert positions(third) == [4, 5], "once more rather than never"
    store.delivered(third, 2)
    assert positions(store.changes(found)) == []
    store.uninstall(found)
    store.delivered(third, 0)


def test_what_is_being_delivered_is_not_forgotten_for_others() -> None:
    store, _ = filters()
    slow, quick = store.install(FilterKind.LOGS), store.install(FilterKind.BLOCKS)
    store.on_chain_event(Extended(tuple(block(number % 250) for number in range(2000))))
    changes = store.changes(slow)
    assert isinstance(changes, LogChanges)
    store.changes(quick)
    store.delivered(changes, 0)
    assert len(positions(store.changes(slow))) == 2000


def test_filters_do_not_share_what_they_have_read() -> None:
    store, _ = filters()
    one, two = store.install(FilterKind.BLOCKS), store.install(FilterKind.BLOCKS)
    store.on_chain_event(Extended((block(1),)))
    assert len(store.changes(one)) == 1  # type: ignore[arg-type]
    store.on_chain_event(Extended((block(2),)))
    assert len(store.changes(one)) == 1  # type: ignore[arg-type]
    assert len(store.changes(two)) == 2  # type: ignore[arg-type]


def test_a_filter_is_gone_after_ten_idle_minutes() -> None:
    store, clock = filters()
    asked, idle = store.install(FilterKind.BLOCKS), store.install(FilterKind.BLOCKS)
    clock.advance(599)
    store.changes(asked)
    clock.advance(1)
    store.changes(asked)
    with pytest.raises(RpcError, match="Filter not found"):
        store.changes(idle)
    assert not store.uninstall(idle)


def test_asking_for_the_query_keeps_a_log_filter_alive() -> None:
    store, clock = filters()
    found = store.install(FilterKind.LOGS, LogQuery(from_block=7))
    for _ in range(5):
        clock.advance(400)
        assert store.log_query(found).from_block == 7


def test_only_log_filters_have_a_query() -> None:
    store, _ = filters()
    for unknown in (store.install(FilterKind.BLOCKS), store.install(FilterKind.PENDING), "0x99"):
        with pytest.raises(RpcError, match="Logs filter not found"):
            store.log_query(unknown)


def test_ids_are_compared_as_text() -> None:
    store, _ = filters()
    store.install(FilterKind.BLOCKS)
    assert not store.uninstall("0x01")
    assert store.uninstall("0x1")
    assert not store.uninstall("0x1")


def test_the_number_of_filters_is_bounded() -> None:
    store, clock = filters()
    first, second = store.install(FilterKind.BLOCKS), store.install(FilterKind.BLOCKS)
    clock.advance(61)
    store.changes(first)
    for number in range(MAX_FILTERS - 1):
        store.install(FilterKind.BLOCKS, client=str(number % 8))
    assert store.changes(first) == []
    assert not store.uninstall(second)


def test_filters_in_use_are_not_evicted() -> None:
    store, clock = filters()
    for number in range(MAX_FILTERS):
        store.install(FilterKind.BLOCKS, client=str(number % 8))
    with pytest.raises(RpcError, match="Number of filters exceeds the limit") as caught:
        store.install(FilterKind.BLOCKS)
    assert caught.value.code == -32005
    clock.advance(61)
    store.install(FilterKind.BLOCKS)
    assert len(store) == MAX_FILTERS


def test_a_journal_is_bounded_and_its_positions_stay_right() -> None:
    journal: EventJournal[int] = EventJournal(3)
    for number in range(5):
        journal.append(number)
    assert (len(journal), journal.end) == (3, 5)
    assert journal.since(0) == [2, 3, 4]
    assert journal.since(4) == [4]
    assert journal.since(5) == []
    journal.forget_before(4)
    assert journal.since(0) == [4]


def test_what_every_filter_has_read_is_forgotten() -> None:
    store, _ = filters()
    found = store.install(FilterKind.BLOCKS)
    for number in range(3000):
        store.on_chain_event(Extended((block(number % 256),)))
        if number % 100 == 0:
            store.changes(found)
    assert len(store._chain) < 1200


def test_a_transaction_looks_through_no_filters() -> None:
    class Unread(dict[str, Any]):
        def values(self) -> Any:
            raise AssertionError("all of them were looked at")

    store, _ = filters()
    store._filters = Unread()
    store.install(FilterKind.LOGS)
    store.on_pool_event(Added((pooled(1),)))
    pending = store.install(FilterKind.PENDING)
    store.on_pool_event(Added((pooled(2),)))
    assert store.changes(pending) == [pooled(2).hash]
    store.uninstall(pending)
    store.on_pool_event(Added((pooled(3),)))
    assert len(store._pool) == 0


def test_filters_of_disconnected_clients_leave_nothing() -> None:
    store, clock = filters()
    store.install(FilterKind.BLOCKS)
    store.install(FilterKind.PENDING)
    store.on_chain_event(Extended((block(1),)))
    store.on_pool_event(Added((pooled(1),)))
    clock.advance(601)
    store.on_chain_event(Extended((block(2),)))
    store.on_pool_event(Added((pooled(2),)))
    assert (len(store), len(store._chain), len(store._pool)) == (0, 0, 0)
    store.install(FilterKind.LOGS)
    clock.advance(601)
    store.record(ChainChange(block(3).header.hash, 3, False))
    assert (len(store), len(store._chain)) == (0, 0)


def test_one_client_cannot_use_the_whole_quota() -> None:
    clock = ManualClock()
    installed = Filters(clock, Counting(), most=8)
    mine = [installed.install(FilterKind.BLOCKS, client="greedy") for _ in range(2)]
    with pytest.raises(RpcError, match="Number of filters"):
        installed.install(FilterKind.BLOCKS, client="greedy")
    for client in ("a", "b", "c"):
        installed.install(FilterKind.BLOCKS, client=client)
    clock.advance(61)
    installed.changes(mine[1])
    newest = installed.install(FilterKind.BLOCKS, client="greedy")
    assert len(installed) == 5, "its own idle one has made room, nobody else's"
    with pytest.raises(RpcError):
        installed.changes(mine[0])
    assert installed.uninstall(newest)


def test_filters_hold_a_limited_number_of_bytes() -> None:
    clock = ManualClock()
    installed = Filters(clock, Counting())
    wide = LogQuery(topics=(tuple(number.to_bytes(32, "big") for number in range(10_000)),))
    assert wide.weight > 500_000
    share = 4 * 2**20 // wide.weight

    def install(client: str, count: int) -> None:
        for _ in range(count):
            installed.install(FilterKind.LOGS, wide, client)

    install("greedy", share)
    with pytest.raises(RpcError, match="Number of filters"):
        install("greedy", 1)
    for client in ("a", "b", "c"):
        install(client, share)
    with pytest.raises(RpcError, match="Number of filters"):
        install("d", share)
    clock.advance(601)
    install("greedy", 1)
    assert len(installed) == 1
