"""Tasks run in the order of submission, in a limited number of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from ophion.data.task_threads import TaskThreads


@pytest.mark.parametrize("count", [1, 2, 5])
def test_tasks_begin_in_order_and_every_result_arrives(count: int) -> None:
    begun: list[int] = []

    def work(number: int) -> Callable[[], int]:
        def run() -> int:
            begun.append(number)
            return number * number

        return run

    with TaskThreads(count, "test") as threads:
        tasks = [threads.submit(work(number)) for number in range(100)]
        assert [task.result() for task in tasks] == [number * number for number in range(100)]
    assert sorted(begun) == list(range(100))
    assert count > 1 or begun == list(range(100))


def test_no_more_threads_run_than_asked_for() -> None:
    together = threading.Barrier(3)
    with TaskThreads(3, "test") as threads:
        for task in [threads.submit(lambda: (together.wait(), threading.current_thread().name)[1]) for _ in range(9)]:
            assert task.result() in {"test-0", "test-1", "test-2"}


def test_tasks_are_yielded_as_they_end() -> None:
    goes_on = threading.Event()
    with TaskThreads(2, "test") as threads:
        slow = threads.submit(goes_on.wait)
        quick = threads.submit(lambda: True)
        ended = threads.completed([slow, quick])
        assert next(ended) is quick
        goes_on.set()
        assert list(ended) == [slow]


def test_an_error_is_raised_where_the_result_is_read() -> None:
    with TaskThreads(1, "test") as threads:
        failed = threads.submit(lambda: [][1])
        fine = threads.submit(lambda: 7)
    with pytest.raises(IndexError):
        failed.result()
    assert fine.result() == 7


def test_a_cancelled_task_does_not_run() -> None:
    goes_on, ran = threading.Event(), []
    with TaskThreads(1, "test") as threads:
        first = threads.submit(goes_on.wait)
        second = threads.submit(lambda: ran.append(2))
        second.cancel()
        goes_on.set()
        assert set(threads.completed([first, second])) == {first, second}
    assert first.result()
    assert not ran
    with pytest.raises(RuntimeError, match="cancelled"):
        second.result()


def test_the_end_waits_for_all_tasks() -> None:
    ended: list[int] = []
    with TaskThreads(2, "test") as threads:
        for number in range(20):
            threads.submit(lambda number=number: ended.append(number))  # type: ignore[misc]
    assert sorted(ended) == list(range(20))


def test_all_functions_run_and_the_first_error_is_raised() -> None:
    ran: list[int] = []

    def work(number: int) -> Callable[[], None]:
        def run() -> None:
            ran.append(number)
            if number in (3, 5):
                raise ValueError(f"function {number}")

        return run

    with TaskThreads(2, "test") as threads:
        threads.run_all([work(number) for number in range(3)])
        with pytest.raises(ValueError, match="function 3"):
            threads.run_all([work(number) for number in range(3, 9)])
        threads.run_all([])
    assert sorted(ran) == list(range(9))
