"""Polling filters on private logs: as those on public ones, each bound to its group.

They follow the follower, not the chain: a block is told of when its private transactions have been executed. One that
is executed again, because a payload came late, is told of again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ophion.errors import RpcError
from ophion.native.privacy import PrivateLedger
from ophion.rpc.errors import FILTER_NOT_FOUND, LOGS_FILTER_NOT_FOUND
from ophion.rpc.services.filters import ChainChange, FilterKind, Filters, LogChanges
from ophion.rpc.services.log_query import LogQuery
from ophion.rpc.services.private_logs import PrivateQuery, block_logs, of_group
from ophion.runtime.lanes import Lane

if TYPE_CHECKING:
    from ophion.privacy.execution_events import Followed  # a node without private transactions does not load it


class PrivateFilters:
    """All installed filters on private logs."""

    def __init__(self, filters: Filters, ledger: PrivateLedger) -> None:
        self._filters = filters
        self._ledger = ledger

    def on_followed(self, event: Followed) -> None:
        """Listener of the follower."""
        last = None
        for one in event.executed:
            change = ChainChange(one.place.block, one.place.number, one.is_removed)
            if change != last:
                self._filters.note(change)
            last = change

    def install(self, group: bytes, query: LogQuery, client: str) -> str:
        """A new filter on the logs of a group."""
        return self._filters.install(FilterKind.LOGS, of_group(query, group), client)

    def group_of(self, filter_id: str) -> bytes | None:
        """The group of a filter; None for an unknown filter."""
        query = self._filters.find(filter_id)
        return query.group if isinstance(query, PrivateQuery) else None

    def uninstall(self, group: bytes, filter_id: str) -> bool:
        """Whether there was such a filter of this group."""
        return self._of(group, filter_id) is not None and self._filters.uninstall(filter_id)

    def query(self, group: bytes, filter_id: str) -> PrivateQuery:
        """What a filter of this group looks for."""
        query = self._of(group, filter_id)
        if query is None:
            raise LOGS_FILTER_NOT_FOUND()
        return query

    async def changes(self, group: bytes, filter_id: str, lane: Lane) -> list[dict[str, Any]]:
        """Logs since it was last asked."""
        query = self._of(group, filter_id)
        if query is None:
            raise FILTER_NOT_FOUND()
        changes = self._filters.changes(filter_id)
        assert isinstance(changes, LogChanges)
        delivered = 0
        try:
            found = await lane.run(lambda: self._read(query, changes))
            delivered = len(changes.blocks)
        except RpcError:
            delivered = len(changes.blocks)  # too much for any answer: it would be too much again
            raise
        finally:
            self._filters.delivered(changes, delivered)
        return found

    def _read(self, query: PrivateQuery, changes: LogChanges) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for one in changes.wanted():
            found += block_logs(self._ledger, query, one.hash, one.number, one.is_removed)
        return found

    def _of(self, group: bytes, filter_id: str) -> PrivateQuery | None:
        query = self._filters.find(filter_id)
        return query if isinstance(query, PrivateQuery) and query.group == group else None
