"""`Topic`: broadcast from one publisher to many listeners, bounded.

There are two kinds of listeners:

- `listen(callback)` adds a callback that `publish` calls directly. The pool uses `listen`, so its content agrees with
  the new head when `publish` returns. A callback must be short and must not raise.

- `subscribe(...)` gives a bounded queue for `async for`. The subscriber chooses what happens when the queue is full:
  a metric may lose old values; a WebSocket client that does not read is disconnected.

A topic is used on the event loop only and needs no lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

from ophion.errors import OphionError

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class WhenFull(Enum):
    """What a full subscription does with the next event."""

    DROP_OLDEST = "drop oldest"
    DISCONNECT = "disconnect"


class SubscriptionLagged(OphionError):
    """Raised when a reader is slower than its queue allows and is disconnected."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        super().__init__(f"{name} fell more than {limit} events behind")


class Subscription(Generic[T]):
    """A bounded queue of events; read it with `async for`, end it with `close`."""

    __slots__ = ("_closed", "_concerns", "_events", "_lagged", "_limit", "_name", "_topic", "_waiter", "_when_full")

    def __init__(
        self, topic: Topic[T], name: str, limit: int, when_full: WhenFull, concerns: Callable[[T], object] | None
    ) -> None:
        self._concerns = concerns
        self._topic = topic
        self._name = name
        self._limit = limit
        self._when_full = when_full
        self._events: deque[T] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False
        self._lagged = False

    def __aiter__(self) -> Subscription[T]:
        return self

    async def __anext__(self) -> T:
        while not self._events:
            if self._lagged:
                raise SubscriptionLagged(self._name, self._limit)
            if self._closed:
                raise StopAsyncIteration
            from asyncio import get_running_loop  # lazy import: commands that only read a chain have no event loop

            self._waiter = get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._events.popleft()

    def close(self) -> None:
        """Stop receiving events. Queued events can still be read."""
        self._closed = True
        self._topic.drop(self)
        self._wake()

    def offer(self, event: T) -> None:
        """Queue an event. Only the topic calls this."""
        if self._concerns is not None and not self._concerns(event):
            return
        if len(self._events) >= self._limit:
            if self._when_full is WhenFull.DISCONNECT:
                self._events.clear()
                self._lagged = True
                self.close()
                return
            self._events.popleft()
        self._events.append(event)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Topic(Generic[T]):
    """Broadcasts each event to the current listeners."""

    __slots__ = ("_callbacks", "_subscriptions")

    def __init__(self) -> None:
        self._callbacks: list[Callable[[T], None]] = []
        self._subscriptions: list[Subscription[T]] = []

    def publish(self, event: T) -> None:
        """Run every callback in the order they were added, then queue the event for every subscription."""
        for callback in tuple(self._callbacks):
            callback(event)
        for subscription in tuple(self._subscriptions):
            subscription.offer(event)

    def listen(self, callback: Callable[[T], None], is_early: bool = False) -> Callable[[], None]:
        """Let `publish` call this callback directly. Returns a function that removes the callback.

        With `is_early`, the callback runs before all other listeners, because a client waits for its result.
        """
        if is_early:
            self._callbacks.insert(0, callback)
        else:
            self._callbacks.append(callback)

        def stop() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return stop

    def subscribe(
        self, name: str, limit: int, when_full: WhenFull, concerns: Callable[[T], object] | None = None
    ) -> Subscription[T]:
        """Return a bounded queue of future events. Events for which `concerns` is false do not wake the reader."""
        subscription = Subscription(self, name, limit, when_full, concerns)
        self._subscriptions.append(subscription)
        return subscription

    def drop(self, subscription: Subscription[T]) -> None:
        """Remove a subscription; `Subscription.close` calls this."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    @property
    def has_listeners(self) -> bool:
        """Return whether there is a listener. If not, a publisher can skip creating an event."""
        return bool(self._callbacks or self._subscriptions)
