"""Polling filters on private logs, each bound to its group.

The events of these filters come from the private executor, not from the chain. A filter reports a block once its
private transactions have been executed. If a late payload causes a second execution, the filter reports the block
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ophion.errors import RpcError
from ophion.native.privacy import PrivateLedger
from ophion.rpc.errors import FILTER_NOT_FOUND, LOGS_FILTER_NOT_FOUND
from ophion.rpc.services.filters import ChainChange, FilterKind, Filters, LogChanges
from ophion.rpc.services.log_query import LogQuery
from ophion.rpc.services.private_logs import PrivateQuery, block_logs, of_group
from ophion.runtime.thread_pools import Lane

if TYPE_CHECKING:
    from ophion.privacy.execution_events import ExecutorAdvanced


class PrivateFilters:
    """All filters on private logs that clients have installed."""

    def __init__(self, filters: Filters, ledger: PrivateLedger) -> None:
        self._filters = filters
        self._ledger = ledger

    def on_followed(self, event: ExecutorAdvanced) -> None:
        """Record the blocks whose private transactions have been executed."""
        last = None
        for one in event.executed:
            change = ChainChange(one.place.block, one.place.number, one.is_removed)
            if change != last:
                self._filters.record(change)
            last = change

    def install(self, group: bytes, query: LogQuery, client: str) -> str:
        """Install a filter on the logs of a group; returns its id."""
        return self._filters.install(FilterKind.LOGS, of_group(query, group), client)

    def group_of(self, filter_id: str) -> bytes | None:
        """Return the group of a filter; None if the filter is unknown."""
        query = self._filters.find(filter_id)
        return query.group if isinstance(query, PrivateQuery) else None

    def uninstall(self, group: bytes, filter_id: str) -> bool:
        """Remove a filter of this group. Returns False if the filter does not exist."""
        return self._of(group, filter_id) is not None and self._filters.uninstall(filter_id)

    def query(self, group: bytes, filter_id: str) -> PrivateQuery:
        """Return the query of a filter of this group."""
        query = self._of(group, filter_id)
        if query is None:
            raise LOGS_FILTER_NOT_FOUND()
        return query

    async def changes(self, group: bytes, filter_id: str, lane: Lane) -> list[dict[str, Any]]:
        """Return the logs that a filter has found since the last poll."""
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
            # count the blocks as delivered, because the next poll of the same blocks would exceed the limit again
            delivered = len(changes.blocks)
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
