"""Blocks per signer: `clique_`, `ibft_` and `qbft_getSignerMetrics` (consensus.md 4.2)."""

from __future__ import annotations

from msgspec import Struct

from ophion.consensus.engine import Engine, HeaderReader
from ophion.errors import OphionError
from ophion.primitives.types import ZERO_ADDRESS, Address

DEFAULT_RANGE = 100
"""Number of blocks that are counted if the request names no range."""


class EmptyRange(OphionError):
    """Raised when the range has no blocks. The RPC method returns an `Invalid params` error."""

    def __init__(self, first: int, end: int) -> None:
        self.first = first
        self.end = end
        super().__init__(f"The range of blocks from {first} to {end} is empty")


class SignerMetric(Struct, frozen=True):
    """Number of blocks that one validator or signer has produced in a range."""

    address: Address
    blocks: int
    last_block: int
    """Number of the latest block in the range that this validator or signer produced, or 0."""


def signer_metrics(
    engine: Engine, chain: HeaderReader, head: int, first: int | None = None, end: int | None = None
) -> list[SignerMetric]:
    """Count blocks per author from `first` to `end - 1`. Validators or signers without blocks are included.

    `end` is at most the head, so by default the head is not counted. Missing blocks are skipped. The author of the
    genesis block is the zero address.
    """
    start = max(0, head - DEFAULT_RANGE) if first is None else first
    stop = head if end is None else min(end, head)
    if start >= stop:
        raise EmptyRange(start, stop)
    counts: dict[Address, int] = {}
    latest: dict[Address, int] = {}
    for number in range(start, stop):
        header = chain.canonical(number)
        if header is None:
            continue
        author = engine.author(header) if number else ZERO_ADDRESS
        counts[author] = counts.get(author, 0) + 1
        latest[author] = number
    last = chain.canonical(stop - 1)
    for member in engine.members(last, chain) if last is not None else ():
        counts.setdefault(member, 0)
    return [SignerMetric(address, count, latest.get(address, 0)) for address, count in counts.items()]
