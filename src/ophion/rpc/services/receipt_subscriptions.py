"""Receipts for subscriptions that name transactions.

Thousands of subscriptions may name the same transaction, and its receipt may have megabytes. So subscriptions to the
same receipts are grouped, and a message is rendered only when it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from ophion.primitives.types import Hash32
from ophion.rpc.errors import invalid_params
from ophion.rpc.schema.wire_types import decode_hash

_MAX_HASHES: Final = 200
"""Maximum number of transactions that one subscription may name."""

T = TypeVar("T")


def named_hashes(options: object) -> frozenset[Hash32] | None:
    """Decode `{"transactionHashes": [...]}`; None means all transactions."""
    hashes = options.get("transactionHashes") if isinstance(options, Mapping) else options
    if hashes is None or hashes == []:
        return None
    if not isinstance(hashes, list) or len(hashes) > _MAX_HASHES:
        raise invalid_params(f"transactionHashes: an array of at most {_MAX_HASHES} hashes is expected")
    return frozenset(map(decode_hash, hashes))


class ReceiptSubscriptions(Generic[T]):
    """Groups subscriptions that name the same receipts of one block."""

    def __init__(
        self, hashes: Iterable[Hash32], named: Iterable[tuple[T, frozenset[Hash32]]], read: Callable[[int], bytes]
    ) -> None:
        """Group the subscriptions in `named` by the transactions that they name.

        `hashes` are the transaction hashes of the block. `read` returns the receipt of the transaction at an index.
        """
        indexes = {hash: index for index, hash in enumerate(hashes)}
        self.wanted: dict[tuple[int, ...], list[T]] = {}
        """Subscriptions, grouped by the indexes of the transactions that they name."""
        for one, names in named:
            if chosen := sorted(indexes[name] for name in names if name in indexes):
                self.wanted.setdefault(tuple(chosen), []).append(one)
        self._texts = {index: read(index) for index in {index for chosen in self.wanted for index in chosen}}

    def text(self, indexes: Sequence[int]) -> bytes:
        """Return the receipts of the transactions at these indexes as a JSON list."""
        return b"[%b]" % b",".join([self._texts[index] for index in indexes])
