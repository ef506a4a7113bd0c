"""Tests the queue: sequences and gaps, building order, replacement, eviction."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.pool.queue import PooledTransaction, Queue

A, B, C = (bytes([letter]) * 20 for letter in b"ABC")
_arrivals = iter(range(1, 10**9))


def pooled(
    sender: bytes, nonce: int, price: int = 10, local: bool = True, tip: int | None = None, size: int = 110
) -> PooledTransaction:
    arrival = next(_arrivals)
    max_tip = price if tip is None else tip
    return PooledTransaction(
        cast(Any, None), b"%d" % arrival, sender, nonce, 21_000, price, max_tip, size, local, 0.0, arrival
    )


def names(queue: Queue, base_fee: int = 0) -> list[tuple[str, int]]:
    return [(chr(item.sender[0]), item.nonce) for item in queue.best(base_fee)]


def filled(*items: PooledTransaction, limit: int = 100, start: int = 0) -> Queue:
    queue = Queue(limit)
    for item in items:
        queue.put(item, start)
    return queue


def test_the_highest_tip_comes_first_then_the_earliest_arrival() -> None:
    queue = filled(pooled(A, 0, 10), pooled(B, 0, 30), pooled(C, 0, 10))
    assert names(queue) == [("B", 0), ("A", 0), ("C", 0)]


def test_a_sender_keeps_the_order_of_its_nonces_whatever_they_pay() -> None:
    queue = filled(pooled(A, 1, 99), pooled(A, 0, 5), pooled(B, 0, 7))
    assert names(queue) == [("B", 0), ("A", 0), ("A", 1)]


def test_what_lies_behind_a_gap_waits_until_it_is_filled() -> None:
    queue = filled(pooled(A, 0), pooled(A, 2), pooled(A, 3))
    assert names(queue) == [("A", 0)]
    assert queue.executable() == 1
    queue.put(pooled(A, 1), 0)
    assert names(queue) == [("A", 0), ("A", 1), ("A", 2), ("A", 3)]


def test_the_effective_tip_depends_on_the_base_fee() -> None:
    queue = filled(pooled(A, 0, price=100, tip=1), pooled(B, 0, price=60, tip=50))
    assert names(queue, base_fee=5) == [("B", 0), ("A", 0)]
    assert names(queue, base_fee=59) == [("A", 0), ("B", 0)]
    assert names(queue, base_fee=80) == [("A", 0)]
    assert names(queue, base_fee=101) == []


def test_a_sender_that_does_not_pay_the_base_fee_holds_back_its_later_transactions() -> None:
    queue = filled(pooled(A, 0, price=1), pooled(A, 1, price=100))
    assert names(queue, base_fee=50) == []


def test_what_pays_less_than_the_least_price_waits() -> None:
    queue = filled(pooled(A, 0, price=10), pooled(B, 0, price=40, tip=5), pooled(C, 0, price=40, tip=30))
    assert [chr(item.sender[0]) for item in queue.best(0, least_price=10)] == ["C", "A"]
    assert [chr(item.sender[0]) for item in queue.best(5, least_price=10)] == ["C", "A", "B"]


def test_putting_the_same_nonce_replaces() -> None:
    first = pooled(A, 0, 10)
    queue = filled(first)
    second = pooled(A, 0, 20, local=False)
    assert queue.put(second, 0) is first
    assert queue.find(A, 0) is second
    assert (len(queue), queue.local_count) == (1, 0)
    assert first.hash not in queue.by_hash


def test_removing_one_strands_those_behind_it() -> None:
    middle = pooled(A, 1)
    queue = filled(pooled(A, 0), middle, pooled(A, 2))
    queue.remove(middle)
    assert names(queue) == [("A", 0)]
    queue.put(pooled(A, 1), 0)
    assert names(queue) == [("A", 0), ("A", 1), ("A", 2)]


def test_a_sender_without_transactions_is_forgotten() -> None:
    item = pooled(A, 0)
    queue = filled(item)
    queue.remove(item)
    assert not queue.senders
    assert queue.find(A, 0) is None


@pytest.mark.parametrize(
    ("nonces", "start", "stale", "run"),
    [
        ([0, 1, 2], 2, [0, 1], [2]),
        ([0, 1, 2], 3, [0, 1, 2], []),
        ([0, 2], 1, [0], []),
        ([0, 2], 2, [0], [2]),
        ([1, 2], 0, [], []),
    ],
)
def test_a_new_account_nonce_moves_the_run(nonces: list[int], start: int, stale: list[int], run: list[int]) -> None:
    queue = filled(*(pooled(A, nonce) for nonce in nonces))
    assert sorted(item.nonce for item in queue.move(A, start)) == stale
    assert [nonce for _, nonce in names(queue)] == run
    assert len(queue) == len(nonces) - len(stale)


def test_a_reorganisation_can_move_the_run_back() -> None:
    queue = filled(pooled(A, 5), pooled(A, 6), start=5)
    assert names(queue) == [("A", 5), ("A", 6)]
    assert queue.move(A, 4) == []
    assert names(queue) == []
    queue.put(pooled(A, 4), 4)
    assert names(queue) == [("A", 4), ("A", 5), ("A", 6)]


def test_eviction_takes_remote_before_local_then_the_cheapest_then_the_oldest() -> None:
    queue = filled(
        pooled(A, 0, 5, local=True),
        pooled(B, 0, 90, local=False),
        pooled(C, 0, 80, local=False),
        limit=1,
    )
    assert [item.sender for item in queue.evict()] == [C, B]
    queue = filled(pooled(A, 0, 7), pooled(B, 0, 7), limit=1)
    assert [item.sender for item in queue.evict()] == [A]


def test_eviction_takes_the_last_nonce_of_the_chosen_sender() -> None:
    queue = filled(pooled(A, 0, 1), pooled(A, 1, 50), pooled(B, 0, 9), limit=2)
    assert [(item.sender, item.nonce) for item in queue.evict()] == [(A, 1)]
    assert names(queue) == [("B", 0), ("A", 0)]
    queue = filled(pooled(A, 0, 1), pooled(A, 1, 1), pooled(A, 9, 1), pooled(A, 7, 1), pooled(B, 0, 9), limit=1)
    assert [item.nonce for item in queue.evict()] == [9, 7, 1, 0], "what waits beyond a gap, then the run"


def test_of_too_many_bytes_the_sender_with_most_of_them_loses_his_last() -> None:
    """If the pool has too many bytes, the sender with the most bytes loses its last transaction, at any price.
    Transactions that wait for a nonce cost their sender nothing, so a high price proves nothing.
    """
    small = [pooled(A, 0, 1, local=False), pooled(B, 0, 1, local=False)]
    large = [pooled(C, nonce, 99, size=400) for nonce in range(1, 4)]
    queue = Queue(100, 1200)
    for item in (*small, *large):
        queue.put(item, 0)
    assert queue.evict() == [large[2]]
    assert (queue.bytes, len(queue)) == (1020, 4)
    queue.put(replacement := pooled(C, 1, 100, size=700), 0)
    assert queue.evict() == [large[1]]
    assert queue.bytes == 920
    queue.put(too_large := pooled(A, 1, 100, size=5000), 0)
    assert queue.evict() == [too_large]
    assert queue.move(C, 2) == [replacement]
    assert (queue.bytes, set(queue.by_hash.values())) == (220, set(small))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), st.sampled_from("ppppmr")), max_size=60))
def test_who_has_most_bytes_loses_whatever_came_and_went_before(story: list[tuple[int, int, str]]) -> None:
    queue = Queue(1000, 4000)
    for nonce, (who, hundreds, what) in enumerate(story):
        sender = bytes([who]) * 20
        if what == "p":
            queue.put(pooled(sender, nonce, size=100 * hundreds), 0)
        elif what == "m" and (mined := queue.senders.get(sender)) is not None:
            first = mined.by_nonce[min(mined.by_nonce)]
            queue.take_mined([first.hash])
            queue.move(sender, first.nonce + 1)
        elif what == "r" and (rich := queue.senders.get(sender)) is not None:
            last = rich.last()
            queue.put(pooled(sender, last.nonce, size=100 * hundreds), 0)
        held = {sender: one.bytes for sender, one in queue.senders.items()}
        for item in queue.evict():
            assert held[item.sender] == max(held.values())
            assert sum(held.values()) > 4000
            held[item.sender] -= item.size
        assert queue.bytes == sum(held.values()) <= 4000


def test_eviction_goes_on_as_the_queue_stays_full() -> None:
    queue = Queue(10)
    evicted = []
    for price in range(1, 101):
        queue.put(pooled(bytes([price]) * 20, 0, price), 0)
        evicted += queue.evict()
    assert [item.max_fee for item in evicted] == list(range(1, 91))
    assert len(queue) == 10


def test_what_was_replaced_in_a_full_queue_is_let_go_of() -> None:
    queue = filled(*(pooled(A, nonce) for nonce in range(101)))
    assert len(queue.evict()) == 1
    for price in range(11, 3011):
        queue.put(pooled(A, price % 100, price), 0)
        assert queue.evict() == []
    assert len(queue) == 100
    assert queue._victims is None or len(queue._victims) <= 264
    assert not any(isinstance(part, PooledTransaction) for entry in queue._victims or () for part in entry)


def test_bytes_that_come_and_go_in_a_full_queue_leave_nothing_behind() -> None:
    queue = Queue(100, limit_bytes=1000)
    for sender in (A, B):
        queue.put(pooled(sender, 0, size=600), 0)
    assert len(queue.evict()) == 1
    queue.put(pooled(C, 0, size=350), 0)
    for price in range(11, 3011):
        queue.put(pooled(C, 0, price, size=350), 0)
        assert queue.evict() == []
    assert queue.bytes == 950
    assert queue._heaviest is None or len(queue._heaviest) <= 264


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 6), st.integers(1, 5), st.booleans()), max_size=40))
def test_counts_and_runs_stay_true_whatever_happens(story: list[tuple[str, int, int, bool]]) -> None:
    queue = Queue(12, 1500)
    for letter, nonce, price, is_put in story:
        sender = letter.encode() * 20
        if is_put:
            queue.put(pooled(sender, nonce, price, local=price > 2, size=50 * (nonce + 1)), 0)
            queue.evict()
        elif (found := queue.find(sender, nonce)) is not None:
            queue.remove(found)
        items = list(queue.by_hash.values())
        assert len(items) <= 12
        assert queue.bytes == sum(item.size for item in items) <= 1500
        assert queue.bytes == sum(sender_queue.bytes for sender_queue in queue.senders.values())
        assert queue.local_count == sum(item.is_local for item in items)
        assert sorted(item.hash for item in items) == sorted(
            item.hash for sender_queue in queue.senders.values() for item in sender_queue.by_nonce.values()
        )
        for sender_queue in queue.senders.values():
            assert sender_queue.by_nonce
            assert all(nonce in sender_queue.by_nonce for nonce in range(sender_queue.start, sender_queue.end))
            assert sender_queue.end not in sender_queue.by_nonce


def test_what_was_mined_leaves_and_the_run_goes_on() -> None:
    items = [pooled(A, nonce) for nonce in range(5)]
    queue = Queue(100)
    for item in [*items, pooled(B, 0)]:
        queue.put(item, 0)
    queue.take_mined([items[0].hash, b"unknown", items[1].hash])
    assert queue.move(A, 2) == []
    assert [item.nonce for item in queue.best(0) if item.sender == A] == [2, 3, 4]
    assert (len(queue), queue.bytes) == (4, sum(item.size for item in queue.by_hash.values()))
    queue.take_mined([item.hash for item in items[2:]])
    assert queue.move(A, 5) == []
    assert list(queue.senders) == [B]


def test_another_one_with_the_same_nonce_is_stale() -> None:
    mined, rival, behind = pooled(A, 0), pooled(A, 1), pooled(A, 2)
    queue = Queue(100)
    for item in (mined, rival, behind):
        queue.put(item, 0)
    queue.take_mined([mined.hash, b"the one that stands in the block"])
    assert queue.move(A, 2) == [rival]
    assert list(queue.best(0)) == [behind]


def test_nothing_is_built_where_the_next_nonce_has_gone() -> None:
    items = [pooled(A, nonce) for nonce in range(3)]
    queue = Queue(100)
    for item in items:
        queue.put(item, 0)
    queue.take_mined([items[0].hash])
    assert queue.move(A, 0) == []
    assert list(queue.best(0)) == []
    queue.put(pooled(A, 0), 0)
    assert [item.nonce for item in queue.best(0)] == [0, 1, 2]


@pytest.mark.parametrize("mined", [[0], [0, 1], [0, 1, 2, 3], [1, 2], [3]])
def test_what_is_mined_is_handed_out_and_counted_off(mined: list[int]) -> None:
    items = [pooled(A, nonce) for nonce in range(4)]
    queue = Queue(100)
    for item in [*items, pooled(B, 0)]:
        queue.put(item, 0)
    taken = [items[nonce] for nonce in mined]
    assert queue.take_mined([item.hash for item in taken]) == taken
    left = [item for item in items if item not in taken]
    assert list(queue.senders[A].by_nonce.values()) == left
    assert queue.senders[A].bytes == sum(item.size for item in left)
    assert queue.bytes == sum(item.size for item in queue.by_hash.values())
    assert queue.local_count == sum(item.is_local for item in queue.by_hash.values())
