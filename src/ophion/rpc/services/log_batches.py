"""The logs of a block for many queries at the same time, some at a time.

A block may have ten thousands of logs, and hundreds of queries may want all of them: searched for at once they were
gigabytes. So a search ends when it has found as much as may be held, and the next one goes on when that has been used.
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
    """What the first of these find, each a list in JSON; the others are for another time."""
    texts, left = list[bytes](), MAX_BYTES
    for query in queries:
        text = store.block_logs_json(block, query.addresses, query.topics, is_removed)
        texts.append(b"[]" if text is None else bytes(text))
        left -= len(texts[-1])
        if left < 0 or len(texts) >= MAX_QUERIES:
            break
    return texts


def logs_of(text: bytes) -> Iterator[bytes]:
    """Each log of such a list. In a log are hexadecimal texts and a list of them, so what stands between two logs is
    known; reading all of them as JSON would keep everybody else waiting, in whichever thread it is done."""
    start, end = 1, 0
    while len(text) > 2 and end >= 0:
        end = text.find(b"},{", start)
        yield text[start : end + 1 if end >= 0 else -1]
        start = end + 2
