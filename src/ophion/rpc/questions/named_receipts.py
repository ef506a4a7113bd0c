"""Receipts of the transactions that subscribers have named.

Thousands may have named the same one, and its receipt may be megabytes: so it is known who wants the same, and what
they are told is put together when it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

import orjson

from ophion.primitives.hexcodec import data
from ophion.rpc.errors import invalid_params
from ophion.rpc.language.wire_types import decode_hash

_MOST_HASHES: Final = 200
"""Transactions that one subscription may name."""

T = TypeVar("T")


def named_hashes(options: object) -> frozenset[str] | None:
    """`{"transactionHashes": [...]}`, or nothing for all transactions."""
    hashes = options.get("transactionHashes") if isinstance(options, Mapping) else options
    if hashes is None or hashes == []:
        return None
    if not isinstance(hashes, list) or len(hashes) > _MOST_HASHES:
        raise invalid_params(f"transactionHashes: an array of at most {_MOST_HASHES} hashes is expected")
    return frozenset(data(decode_hash(hash)) for hash in hashes)


class NamedReceipts(Generic[T]):
    """What of the receipts of a block somebody has named."""

    def __init__(self, receipts: bytes, named: Iterable[tuple[T, frozenset[str]]]) -> None:
        """`receipts`: those of a block, a list in JSON; `named`: who has named which."""
        found = {receipt["transactionHash"]: receipt for receipt in orjson.loads(receipts)}
        place = {hash: number for number, hash in enumerate(found)}
        self.wanted: dict[tuple[str, ...], list[T]] = {}
        """Who wants the same ones, in the order of the block."""
        for one, hashes in named:
            if chosen := sorted((hash for hash in hashes if hash in place), key=place.__getitem__):
                self.wanted.setdefault(tuple(chosen), []).append(one)
        used = {hash for chosen in self.wanted for hash in chosen}
        self._texts = {hash: orjson.dumps(found[hash]) for hash in used}

    def text(self, hashes: Sequence[str]) -> bytes:
        """Some of them, a list in JSON."""
        return b"[%b]" % b",".join([self._texts[hash] for hash in hashes])
