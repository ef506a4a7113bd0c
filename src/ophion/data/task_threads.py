"""A pool of threads that run tasks in the order of submission.

`concurrent.futures` does the same, but loads logging and 20 other modules, which takes a tenth of the start of an
export.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Task(Generic[T]):
    """A function that a thread of the pool calls once."""

    def __init__(self, work: Callable[[], T], changed: threading.Condition) -> None:
        self._work: Callable[[], T] | None = work
        self._changed = changed
        self._error: BaseException | None = None
        self._found: T
        self.is_done = False
        """Whether the call has ended, or was cancelled."""

    def run(self) -> None:
        """Call the function, unless the task was cancelled."""
        with self._changed:
            work, self._work = self._work, None
        if work is None:
            return
        try:
            self._found = work()
        except BaseException as error:  # noqa: BLE001 - `result` raises it in the thread that waits
            self._error = error
        finally:
            del work
            self._end()

    def cancel(self) -> None:
        """Skip the task if it has not begun."""
        with self._changed:
            was_waiting, self._work = self._work is not None, None
        if was_waiting:
            self._error = RuntimeError("the task was cancelled")
            self._end()

    def _end(self) -> None:
        with self._changed:
            self.is_done = True
            self._changed.notify_all()

    def result(self) -> T:
        """Wait for the end of the call. Returns its result, or raises its error."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_done)
        if self._error is not None:
            raise self._error
        return self._found


class TaskThreads:
    """A context manager. At its end, it waits for all tasks."""

    def __init__(self, count: int, name: str) -> None:
        self._count = max(count, 1)
        self._name = name
        self._changed = threading.Condition()
        self._waiting: deque[Task[object]] = deque()
        self._idle = 0
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def submit(self, work: Callable[[], T]) -> Task[T]:
        """Let a thread call a function as soon as the tasks before it have begun."""
        task = Task(work, self._changed)
        with self._changed:
            self._waiting.append(task)  # type: ignore[arg-type]  # the pool never reads results
            if self._idle >= len(self._waiting) or len(self._threads) >= self._count:
                self._changed.notify_all()
                return task
            thread = threading.Thread(target=self._serve, name=f"{self._name}-{len(self._threads)}")
            self._threads.append(thread)
        thread.start()
        return task

    def run_all(self, works: Sequence[Callable[[], None]]) -> None:
        """Call the first function in this thread, and all other functions in threads of the pool. Waits until all calls
        have ended, then raises the first error.
        """
        tasks = [self.submit(work) for work in works[1:]]
        errors = []
        for run in (*works[:1], *(task.result for task in tasks)):
            try:
                run()
            except BaseException as error:  # noqa: BLE001 - raised when all functions have ended
                errors.append(error)
        if errors:
            raise errors[0]

    def completed(self, tasks: Iterable[Task[T]]) -> Iterator[Task[T]]:
        """Yield tasks as they end."""
        left = list(tasks)
        while left:
            with self._changed:
                while not (ended := [task for task in left if task.is_done]):
                    self._changed.wait()
            left = [task for task in left if task not in ended]
            yield from ended

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                self._idle -= 1
                if not self._waiting:
                    return
                task = self._waiting.popleft()
            task.run()
            del task

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
