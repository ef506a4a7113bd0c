"""`DetachedTasks`: tasks that outlive the connection that started them, with a quota per peer.

For example, the import of a block continues when its sender disconnects. Unknown peers also share a common quota.
Validators, static nodes and permitted nodes have quotas of their own, so unknown peers cannot use up the capacity for
members.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Final, Generic, TypeVar

MAX_PER_PEER: Final = 32
MAX_OF_UNKNOWN: Final = 64
"""Limit of concurrent tasks of all unknown peers together (peers that are no network members)."""

Owner = TypeVar("Owner", bound=Hashable)


class DetachedTasks(Generic[Owner]):
    """Tasks that run until they end or the service stops. An exception in a task ends the service."""

    def __init__(
        self,
        is_member: Callable[[Owner], bool],
        max_per_peer: int = MAX_PER_PEER,
        max_of_unknown: int = MAX_OF_UNKNOWN,
    ) -> None:
        self._is_member = is_member
        self._max_per_peer = max_per_peer
        self._max_of_unknown = max_of_unknown
        self._group: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._by_owner: Counter[Owner] = Counter()
        self._of_unknown = 0

    def __len__(self) -> int:
        return len(self._running)

    async def run(self, ready: Callable[[], None]) -> None:
        """Run tasks until cancelled. Raises the exception of the first task that fails."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                try:
                    ready()
                    await asyncio.get_running_loop().create_future()
                finally:
                    self._group = None
                    for task in tuple(self._running):
                        task.cancel()
        except BaseExceptionGroup as failures:
            # raise only the first error, because several tasks may fail for the same reason, for example a full disk
            raise failures.exceptions[0] from None

    def spawn(self, work: Coroutine[Any, Any, None], owner: Owner | None = None) -> bool:
        """Start a task. Returns False and closes `work` when the owner's quota is used up or the service has stopped.

        Work without an owner belongs to the node itself and has no quota.
        """
        is_unknown = owner is not None and not self._is_member(owner)
        if self._group is None or (owner is not None and self._is_full(owner, is_unknown)):
            work.close()
            return False
        task = self._group.create_task(work)
        self._running.add(task)
        if owner is not None:
            self._by_owner[owner] += 1
            self._of_unknown += is_unknown
        task.add_done_callback(partial(self._finished, owner, is_unknown))
        return True

    def _is_full(self, owner: Owner, is_unknown: bool) -> bool:
        if self._by_owner[owner] >= self._max_per_peer:
            return True
        return is_unknown and self._of_unknown >= self._max_of_unknown

    def _finished(self, owner: Owner | None, is_unknown: bool, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if owner is None:
            return
        self._of_unknown -= is_unknown
        self._by_owner[owner] -= 1
        if not self._by_owner[owner]:
            del self._by_owner[owner]
