"""`ForkSettings`: the chain and block to fork, and the connection to its node."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

DEFAULT_RETRIES = 5
DEFAULT_BACKOFF_S = 1.0
DEFAULT_TIMEOUT_S = 45.0


class ForkSettings(Struct, frozen=True):
    """The source of a fork: URL, block, retries and cache."""

    url: str
    block_number: int | None = None
    """Number of the block to fork; None for the latest block, -N for the block N blocks before the latest."""
    transaction: bytes | None = None
    """Hash of a transaction. If set, the fork begins before the transaction's block, and repeats the block up to this
    transaction.
    """
    other_urls: tuple[str, ...] = ()
    """Further nodes of the same chain, which are asked when the first one does not answer."""
    retries: int = DEFAULT_RETRIES
    backoff_s: float = DEFAULT_BACKOFF_S
    """Seconds before the first retry. The wait doubles with each retry."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    headers: tuple[str, ...] = ()
    """Additional HTTP headers, `Name: value`."""
    cache_path: Path | None = None
    """Folder of the cache; if None, nothing is cached."""

    @classmethod
    def split(cls, text: str) -> tuple[str, int | None]:
        """Split `URL@BLOCK` into URL and block. The block is None if the text is only a URL."""
        url, separator, number = text.rpartition("@")
        if separator and number.isdigit() and "://" in url:
            return url, int(number)
        return text, None
