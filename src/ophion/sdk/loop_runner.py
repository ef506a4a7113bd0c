"""`LoopRunner`: runs coroutines of the node for synchronous callers.

The event loop has no thread of its own: the calling thread runs it until the coroutine is done, under a lock. A caller
inside of another event loop (a notebook, an asynchronous test) hands over to a helper thread, because one thread cannot
run two loops. While the chain is served over HTTP, a thread runs the loop all the time, and callers wait for their
results.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ophion.sdk.errors import ChainError

T = TypeVar("T")


class LoopRunner:
    """An event loop for callers of any thread, one at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.lock = threading.RLock()
        """Held while the loop runs for a caller."""
        self._owner = os.getpid()
        self._thread: threading.Thread | None = None
        self._helper: ThreadPoolExecutor | None = None
        self._is_closed = False

    def check(self) -> None:
        """Raise `ChainError` in a forked process, and after `close`."""
        if os.getpid() != self._owner:
            raise ChainError(
                f"This chain belongs to process {self._owner}. Create a Chain after the fork, one in each process."
            )
        if self._is_closed:
            raise ChainError("This chain is closed. Create a new Chain.")

    @property
    def has_thread(self) -> bool:
        """Whether a thread runs the loop all the time."""
        return self._thread is not None

    @property
    def is_owner(self) -> bool:
        """Whether this process has created the loop."""
        return os.getpid() == self._owner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result."""
        try:
            self.check()
        except ChainError:
            work.close()
            raise
        if _is_inside_loop() and self._thread is None:
            with self.lock:
                if self._helper is None:
                    self._helper = ThreadPoolExecutor(1, "ophion-chain")
            return self._helper.submit(self._run_here, work).result()
        return self._run_here(work)

    def _run_here(self, work: Coroutine[Any, Any, T]) -> T:
        with self.lock:
            if self._thread is None:
                return self.loop.run_until_complete(work)
        if threading.current_thread() is self._thread:
            work.close()
            raise ChainError("This method waits for the event loop that calls it. Call it from another thread.")
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def start_thread(self) -> None:
        """Run the loop in a thread from now on."""
        self.check()
        with self.lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self.loop.run_forever, name="ophion-chain-loop", daemon=True)
                self._thread.start()

    def stop_thread(self) -> None:
        """End the thread; callers run the loop again."""
        thread = self._thread
        if thread is not None:
            self.loop.call_soon_threadsafe(self.loop.stop)
            thread.join()
            with self.lock:
                self._thread = None

    def close(self) -> None:
        """Cancel all running tasks and close the loop."""
        if self._is_closed or not self.is_owner:
            self._is_closed = True
            return
        self.stop_thread()
        self._is_closed = True
        if self._helper is not None:
            self._helper.shutdown()
        if _is_inside_loop():
            # another event loop runs in this thread, so finish in a helper thread
            with ThreadPoolExecutor(1) as helper:
                helper.submit(self._finish).result()
        else:
            self._finish()

    def _finish(self) -> None:
        with self.lock:
            if self.loop.is_closed():
                return
            remaining = asyncio.all_tasks(self.loop)
            for task in remaining:
                task.cancel()
            if remaining:
                self.loop.run_until_complete(asyncio.gather(*remaining, return_exceptions=True))
            self.loop.close()


def _is_inside_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
