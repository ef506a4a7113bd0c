"""Ranges are read ahead in other threads, in order and within a limit."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ophion.data.read_ahead import MAX_WAITING, read_ahead
from ophion.data.table_reader import LastTables

RANGES = [(at, at + 1) for at in range(0, 40, 2)]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_batches_are_in_order(workers: int) -> None:
    found = list(read_ahead(RANGES, lambda first, last: [first, last], workers))
    assert found == list(range(40))


@pytest.mark.parametrize("waiting", [1, 2])
def test_few_ranges_are_held_and_a_closed_iterator_reads_no_more(waiting: int) -> None:
    begun: list[int] = []

    def read(first: int, last: int) -> list[int]:
        begun.append(first)
        return [first]

    batches = read_ahead(RANGES, read, 2, waiting=waiting)
    assert next(batches) == 0
    batches.close()  # type: ignore[attr-defined]
    assert len(begun) <= 3 + waiting


def test_waiting_ranges_are_read_while_the_consumer_has_not_taken_the_first_one() -> None:
    begun: list[int] = []
    four = threading.Event()

    def read(first: int, last: int) -> list[LastTables]:
        begun.append(first)
        if len(begun) == 4:
            four.set()
        return [LastTables([first])]  # type: ignore[list-item]

    batches = read_ahead(RANGES, read, 2, waiting=2)
    assert next(batches) == [0]
    assert four.wait(10)
    batches.close()  # type: ignore[attr-defined]


def test_a_range_with_many_items_is_not_read_at_once() -> None:
    """The second range waits for the consumer of the first one."""
    read: list[tuple[int, int]] = []

    def items(first: int, last: int) -> Iterator[int]:
        for at in range(100):
            read.append((first, at))
            yield at

    batches = read_ahead(RANGES[:2], items, 2)
    for expected in range(100):
        assert next(batches) == expected
    assert sum(first == RANGES[1][0] for first, _ in read) <= MAX_WAITING
    assert list(batches) == list(range(100))
    assert len(read) == 200


def test_an_error_reaches_the_reader() -> None:
    def read(first: int, last: int) -> list[int]:
        if first == 6:
            raise ValueError("range 6")
        return [first]

    with pytest.raises(ValueError, match="range 6"):
        list(read_ahead(RANGES, read, 2))


def test_two_ranges_are_read_at_once() -> None:
    both = threading.Barrier(2, timeout=60)
    assert len(list(read_ahead(RANGES[:2], lambda first, last: [both.wait()], 2))) == 2


def test_a_thread_does_not_wait_for_the_consumer_of_the_last_tables_of_a_range() -> None:
    """The other thread reads ranges 2 and 3 while the first range is being read."""
    third = threading.Event()

    def read(first: int, last: int) -> Iterator[LastTables]:
        if first == RANGES[2][0]:
            third.set()
        assert first != RANGES[0][0] or third.wait(timeout=60)
        yield LastTables()

    assert len(list(read_ahead(RANGES, read, 2))) == len(RANGES)
