"""`ForkPoint`: the block at which a development chain forks another chain."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ophion.dev.block_json import decode_header, decode_word
from ophion.dev.fork.response_cache import find_point, keep_point
from ophion.dev.fork.settings import ForkSettings
from ophion.dev.fork.source_client import ForkSource
from ophion.errors import ForkSourceError
from ophion.primitives.header import HashedHeader
from ophion.primitives.hexcodec import data
from ophion.runtime.blocking_json_rpc import Failure


class ForkPoint(Struct, frozen=True):
    """Block and chain from which a fork continues."""

    chain_id: int
    header: HashedHeader
    is_cached: bool
    """Whether the block was read from the cache, without a request to the source."""

    @property
    def number(self) -> int:
        """Number of the forked block."""
        return self.header.number


def find(settings: ForkSettings, source: ForkSource) -> ForkPoint:
    """Return the block to fork, from the cache or from the source."""
    number, folder = settings.block_number, settings.cache_path
    if settings.transaction is not None:
        number = _block_of(source, settings.transaction) - 1
    elif number is not None and number < 0:
        number = _before_latest(source, -number)
    if number is not None and folder is not None:
        known = find_point(folder, settings.url, number)
        if known is not None:
            return ForkPoint(known[0], header_of(known[1]), is_cached=True)
    tag = "latest" if number is None else hex(number)
    chain_id, block = source.batch([("eth_chainId", []), ("eth_getBlockByNumber", [tag, False])])
    if isinstance(chain_id, Failure):
        raise ForkSourceError(f"The source of the fork, {source.name}, has no chain id: {chain_id.message}")
    if not isinstance(block, dict):
        reason = f": {block.message}" if isinstance(block, Failure) else ""
        raise ForkSourceError(f"The source of the fork, {source.name}, has no block {tag}{reason}")
    header = header_of(block)
    number_of_chain = _chain_id(source, chain_id)
    if folder is not None:
        kept = {name: value for name, value in block.items() if name != "transactions"}
        keep_point(folder, settings.url, header.number, number_of_chain, kept)
    return ForkPoint(number_of_chain, header, is_cached=False)


def _block_of(source: ForkSource, transaction: bytes) -> int:
    """Return the number of the block of a transaction."""
    (found,) = source.batch([("eth_getTransactionByHash", [data(transaction)])])
    try:
        number = int(found["blockNumber"], 16)
    except (TypeError, ValueError, KeyError):
        number = 0
    if number < 1:
        raise ForkSourceError(f"The source of the fork, {source.name}, has no block with {data(transaction)}")
    return number


def _before_latest(source: ForkSource, distance: int) -> int:
    """Return the number of the block that is `distance` blocks before the latest block of the source."""
    (latest,) = source.batch([("eth_blockNumber", [])])
    try:
        return max(0, int(latest, 16) - distance)
    except (TypeError, ValueError):
        raise ForkSourceError(f"The source of the fork, {source.name}, has no latest block") from None


def _chain_id(source: ForkSource, answer: Any) -> int:
    try:
        found = int(answer, 16)
    except (TypeError, ValueError):
        found = -1
    if not 0 <= found < 2**64:
        raise ForkSourceError(f"The source of the fork, {source.name}, has no valid chain id: {str(answer)[:80]!a}")
    return found


def header_of(block: dict[str, Any]) -> HashedHeader:
    """Read the header of a JSON-RPC block. The hash comes from the source, because the source may hash headers in
    another way.
    """
    try:
        return HashedHeader(decode_header(block), decode_word(block["hash"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ForkSourceError(f"The forked block cannot be read: {error}") from None
