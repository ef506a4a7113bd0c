"""Local transactions across a restart: what the journal contains, and when it is rewritten."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import chain
from typing import Final

from ophion.errors import StorageError
from ophion.native.transactions import Transaction, decode_transactions, journal_lines
from ophion.pool.events import Admission, Rejected
from ophion.pool.journal import JournalEntry, TransactionJournal
from ophion.pool.queue import PooledTransaction, Queue

log = logging.getLogger(__name__)

_COMMON_LINE_BYTES: Final = 300
_MAY_PASS: Final = frozenset(
    {"gas-price-too-low", "base-fee", "gas-limit", "upfront-cost", "not-authorized", "fee-cap"}
)
"""Refusal reasons that may no longer apply after a change of options, rules or blocks."""


class LocalTransactions:
    """Writes the local transactions of a queue to a journal, and restores them at start."""

    def __init__(self, journal: TransactionJournal, queue: Queue) -> None:
        self.journal = journal
        self._queue = queue
        self._set_aside: list[JournalEntry] = []
        """Transactions of the last run that the pool refuses now, but that stay in the journal."""

    def append(self, entered: list[PooledTransaction], now: float) -> None:
        """Write the local transactions among `entered` to the journal, before their senders get a response."""
        local = [item.transaction for item in entered if item.is_local]
        if local:
            self.journal.append(journal_lines(local, int(now * 1000)))

    def restore(self, admit: Callable[[Transaction, float], Admission], oldest: float) -> list[JournalEntry]:
        """Admit the transactions of the last run again. Returns all entries of the journal.

        Keeps refused transactions in the journal if they may become valid and arrived after `oldest`.
        """
        entries, reason = self.journal.open(), ""
        for entry, decoded in zip(entries, decode_transactions([entry.raw for entry in entries]), strict=True):
            admission = None if isinstance(decoded, str) else admit(decoded, entry.added_at)
            if not isinstance(admission, Rejected) or entry.added_at < oldest:
                continue
            if admission.error.reason in _MAY_PASS:
                self._set_aside.append(entry)
                reason = admission.error.message
        if self._set_aside:
            count = len(self._set_aside)
            log.warning("local transactions refused and kept for the next start count=%d reason=%s", count, reason)
        return entries

    def settle(self, entries: list[JournalEntry]) -> None:
        """Rewrite the journal after `restore`, if its entries have changed."""
        live = self._live_entries()
        if live != entries:
            self.journal.rewrite(live)
            self.journal.sync()

    def compact(self) -> None:
        """Rewrite the journal when most of its lines belong to transactions that have left the pool."""
        # a cheap estimate with a typical line length often shows that no compaction is needed
        if not self.journal.is_wasteful(self._queue.local_count * _COMMON_LINE_BYTES):
            return
        items, kept = self._live_items(), tuple(self._set_aside)
        live_bytes = sum(2 * item.size for item in items) + sum(2 * len(entry.raw) for entry in kept)
        if not self.journal.is_wasteful(live_bytes):
            return
        try:
            # the journal reads most entries later, in another thread
            self.journal.rewrite(chain(map(_entry, items), kept))
        except StorageError as error:
            log.warning("journal keeps lines of mined transactions: free disk space error=%s", error.message)

    def _live_items(self) -> list[PooledTransaction]:
        return self._queue.matching(lambda item: item.is_local)

    def _live_entries(self) -> list[JournalEntry]:
        return [*map(_entry, self._live_items()), *self._set_aside]


def _entry(item: PooledTransaction) -> JournalEntry:
    return JournalEntry(item.transaction.raw, item.added_at)
