"""Futures whose listener is told in the very step in which they are answered.

A plain future tells its listeners in the next turn of the loop, which costs a handle, a context and often a turn of its
own for each. Who answers thousands of clients a second uses these; who awaits one sees no difference.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Prompt(asyncio.Future[T]):
    """A future with one listener that does not wait for the next turn."""

    _listener: Callable[[asyncio.Future[T]], Any] | None = None

    def tell(self, listener: Callable[[asyncio.Future[T]], Any]) -> None:
        """Who is told, at once when the answer comes; not when this is cancelled, which the listener does itself."""
        if self.done():
            self.add_done_callback(listener)
        else:
            self._listener = listener

    def answer(self, result: T) -> None:
        """Answer, unless nobody waits any more."""
        if not self.done():
            self.set_result(result)
            self._pass_on()

    def fail(self, error: Exception) -> None:
        """The answer is an error."""
        if not self.done():
            self.set_exception(error)
            self._pass_on()

    def _pass_on(self) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            return
        try:
            listener(self)
        except Exception as error:  # noqa: BLE001  # who answers many must not stop because one cannot be told
            context = {"message": "somebody could not be told of an answer", "exception": error, "future": self}
            self.get_loop().call_exception_handler(context)
