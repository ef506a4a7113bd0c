"""Searches the logs of one block for many queries, in batches.

A block may have tens of thousands of logs, and hundreds of subscriptions may match all these logs, so that all results
together would take gigabytes. So a batch ends at a byte limit, and the next batch starts when its results have been
sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ophion.native.store import Store
from ophion.primitives.types import Hash32
from ophion.rpc.services.log_query import LogQuery

MAX_BYTES: Final = 1024 * 1024
MAX_QUERIES: Final = 64


def portion(store: Store, block: Hash32, is_removed: bool, queries: Iterable[LogQuery]) -> list[bytes]:
    """Search the logs of one block for each query, up to `MAX_QUERIES` queries or `MAX_BYTES` of results. Returns a
    JSON list for each query that ran. The caller passes the remaining queries to the next call.
    """
    texts, left = list[bytes](), MAX_BYTES
    for query in queries:
        text = store.block_logs_json(block, query.addresses, query.topics, is_removed)
        texts.append(b"[]" if text is None else bytes(text))
        left -= len(texts[-1])
        if left < 0 or len(texts) >= MAX_QUERIES:
            break
    return texts


def logs_of(text: bytes) -> Iterator[bytes]:
    """Split a list of logs at its separators. Parsing the JSON would hold the GIL too long."""
    start, end = 1, 0
    while len(text) > 2 and end >= 0:
        end = text.find(b"},{", start)
        yield text[start : end + 1 if end >= 0 else -1]
        start = end + 2
